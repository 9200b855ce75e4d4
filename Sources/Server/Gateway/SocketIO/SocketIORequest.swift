import NIOHTTP1
import Wire

/// What a request under `/socket.io/` asks for, read from its method and address alone.
enum SocketIORequest: Equatable, Sendable {
    case greeting
    /// A page that loads scripts names its callback by a number.
    case handshake(script: Int?)
    case poll(String, SocketIOConnection.Transport, script: Int)
    case post(String, SocketIOConnection.Transport, script: Int)
    case disconnect(String)
    /// A browser asks before it posts something unusual across origins.
    case preflight
    case wrongProtocol
    /// Either the transport is not one of ours, or it needs an upgrade that was not asked for properly.
    case wrongTransport(script: Int?)
    case wrongMethod

    static let prefix = "/socket.io"

    /// - Returns: `nil` for what is none of Socket.IO's business, such as the file `socket.io.js`.
    init?(method: HTTPMethod, uri: String) {
        guard uri.hasPrefix(Self.prefix) else { return nil }
        let (path, query) = Self.split(uri)
        // Empty parts are kept: a browser's goodbye has an empty transport. A slash at the end makes one more.
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2)
        if parts.last?.isEmpty ?? false { parts.removeLast() }
        guard path == Self.prefix || path.hasPrefix(Self.prefix + "/") else { return nil }
        guard let version = parts.popFirst() else {
            self = .greeting
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

    /// The connection that an upgrade is for: `/socket.io/1/websocket/<id>`, with or without a slash at its end.
    static func webSocketID(uri: String) -> String? {
        let parts = split(uri).path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5 || (parts.count == 6 && parts[5].isEmpty), parts[0].isEmpty, parts[1] == "socket.io",
            parts[2] == "1", parts[3] == "websocket", !parts[4].isEmpty
        else { return nil }
        return String(parts[4])
    }

    /// Only digits: the number is written into a script.
    private static func scriptIndex(_ text: Substring) -> Int? {
        guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return Int(text)
    }

    private static func split(_ uri: String) -> (path: Substring, query: [Substring: Substring]) {
        let path = uri.prefix { $0 != "?" }
        var query: [Substring: Substring] = [:]
        // No client sends more than four.
        for pair in uri.dropFirst(path.count + 1).split(separator: "&").prefix(16) {
            let name = pair.prefix { $0 != "=" }
            query[name] = pair.dropFirst(name.count + 1)
        }
        return (path, query)
    }
}
