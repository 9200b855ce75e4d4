import NIOHTTP1
import Wire

/// A request under `/socket.io/`, parsed from its method and URL. Requests of Engine.IO have no path below it.
enum SocketIORequest: Equatable, Sendable {
    case greeting
    /// - Parameter script: For JSONP, the number of the page's callback; otherwise nil.
    case handshake(script: Int?)
    /// A request of a version after 0.9.
    case engine(EngineIORequest)
    case poll(String, SocketIOConnection.Transport, script: Int)
    case post(String, SocketIOConnection.Transport, script: Int)
    /// A valid WebSocket handshake for the connection with this ID.
    case webSocket(String)
    case disconnect(String)
    /// A CORS preflight request.
    case preflight
    case wrongProtocol
    /// The transport is unsupported, or it is a WebSocket without a valid upgrade.
    case wrongTransport(script: Int?)
    case wrongMethod

    static let prefix = "/socket.io"

    /// True for JSONP. Any page can use it, because its responses are scripts.
    var isScript: Bool {
        switch self {
        case .handshake(let script), .wrongTransport(let script): script != nil
        case .engine(let request): request.script != nil
        case .poll(_, let transport, _), .post(_, let transport, _): transport == .jsonpPolling
        case .greeting, .webSocket, .disconnect, .preflight, .wrongProtocol, .wrongMethod: false
        }
    }

    /// Returns nil if the request is not part of the protocol, for example for the file `socket.io.js`.
    init?(method: HTTPMethod, uri: String) {
        guard uri.hasPrefix(Self.prefix) else { return nil }
        let (path, query) = Self.split(uri)
        // Keep empty parts of the path, because a browser's disconnect request has an empty transport. Ignore a
        // trailing slash.
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2)
        if parts.last?.isEmpty ?? false { parts.removeLast() }
        guard path == Self.prefix || path.hasPrefix(Self.prefix + "/") else { return nil }
        guard let version = parts.popFirst() else {
            let request = EngineIORequest(method, query, isWebSocket: false)
            if request != nil, method == .OPTIONS {
                self = .preflight
            } else {
                self = request.map { .engine($0) } ?? .greeting
            }
            return
        }
        guard !version.isEmpty, version.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        if version != "1" {
            self = .wrongProtocol
        } else if method == .OPTIONS {
            self = .preflight
        } else if method != .GET && method != .POST {
            self = .wrongMethod
        } else {
            self = Self.ofProtocol1(method, Array(parts), query)
        }
    }

    private static func ofProtocol1(
        _ method: HTTPMethod, _ parts: [Substring], _ query: [Substring: Substring]
    ) -> SocketIORequest {
        guard parts.count >= 2, !parts[1].isEmpty else {
            return .handshake(script: query["jsonp"].flatMap(scriptIndex))
        }
        let id = String(parts[1])
        if query["disconnect"] != nil { return .disconnect(id) }
        guard let transport = SocketIOConnection.Transport(rawValue: String(parts[0])), transport != .webSocket else {
            return .wrongTransport(script: parts[0] == "jsonp-polling" ? query["i"].flatMap(scriptIndex) : nil)
        }
        let script = query["i"].flatMap(scriptIndex) ?? 0
        return method == .GET ? .poll(id, transport, script: script) : .post(id, transport, script: script)
    }

    /// Returns the request of an upgrade: `/socket.io/1/websocket/<id>` with or without a trailing slash, or
    /// `/socket.io/?transport=websocket`. Returns nil for other URLs.
    static func webSocket(uri: String) -> SocketIORequest? {
        guard uri.hasPrefix(prefix) else { return nil }
        let (path, query) = split(uri)
        if path == prefix || path == prefix + "/" {
            guard let request = EngineIORequest(.GET, query, isWebSocket: true), request.isUpgrade else { return nil }
            return .engine(request)
        }
        return webSocketID(path).map { .webSocket($0) }
    }

    private static func webSocketID(_ path: Substring) -> String? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5 || (parts.count == 6 && parts[5].isEmpty), parts[0].isEmpty, parts[1] == "socket.io",
            parts[2] == "1", parts[3] == "websocket", !parts[4].isEmpty
        else { return nil }
        return String(parts[4])
    }

    /// Parses the callback number. Returns nil for anything but one to nine digits, because the number is written into
    /// a script.
    static func scriptIndex(_ text: Substring) -> Int? {
        guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return Int(text)
    }

    private static func split(_ uri: String) -> (path: Substring, query: [Substring: Substring]) {
        let path = uri.prefix { $0 != "?" }
        var query: [Substring: Substring] = [:]
        // Read at most 16 parameters. Clients send at most four.
        for pair in uri.dropFirst(path.count + 1).split(separator: "&").prefix(16) {
            let name = pair.prefix { $0 != "=" }
            query[name] = pair.dropFirst(name.count + 1)
        }
        return (path, query)
    }
}
