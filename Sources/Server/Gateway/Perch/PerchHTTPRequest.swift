import NIOHTTP1
import Wire

/// A request under `/xirsys/`, parsed from its method and URL (`protocol/perchrtc.md` §2).
enum PerchHTTPRequest: Equatable, Sendable {
    /// The functions of the HTTP API. PerchRTC's clients call each of them by an old or a newer name.
    enum Call: Equatable, Sendable { case token, list, servers }

    /// Maximum size of a body in bytes. A call of a function has six short fields.
    static let maxBodyBytes = 8 * 1024

    case call(Call)
    /// A valid WebSocket handshake, with its token and the envelope format of its messages.
    case webSocket(String, PerchEnvelope)
    /// A CORS preflight request.
    case preflight
    case wrongMethod
    case unknown

    private static let calls: [String: Call] = [
        "getToken": .token, "signal/token": .token, "wsList": .list, "signal/list": .list, "getIceServers": .servers,
        "ice": .servers,
    ]
    static let prefix = "/xirsys/"
    /// The path to which a token is appended to form the URL of a WebSocket.
    static let socketPath = "/xirsys/ws"

    /// Returns nil if the URL does not begin with ``prefix``.
    init?(method: HTTPMethod, uri: String) {
        guard uri.hasPrefix(Self.prefix) else { return nil }
        let path = uri.dropFirst(Self.prefix.count).prefix { $0 != "?" }
        guard let call = Self.calls[String(path)] else {
            self = .unknown
            return
        }
        switch method {
        case .POST: self = .call(call)
        case .OPTIONS: self = .preflight
        default: self = .wrongMethod
        }
    }

    /// Returns the token and envelope in the URL of an upgrade: `/xirsys/ws/<token>` or `/xirsys/ws/v2/<token>`.
    /// Returns nil for other URLs.
    static func socket(uri: String) -> (token: String, envelope: PerchEnvelope)? {
        guard uri.hasPrefix(socketPath + "/") else { return nil }
        let path = uri.dropFirst(socketPath.count + 1).prefix { $0 != "?" }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        switch parts.count {
        case 1 where !parts[0].isEmpty: return (String(parts[0]), .flat)
        case 2 where parts[0] == "v2" && !parts[1].isEmpty: return (String(parts[1]), .layered)
        default: return nil
        }
    }
}
