import NIOHTTP1
import Wire

/// A request of Engine.IO: `/socket.io/?EIO=4&transport=polling&sid=…`.
struct EngineIORequest: Equatable, Sendable {
    /// What the client requests.
    enum Action: Equatable, Sendable {
        case handshake(EngineIOVersion)
        case poll(String)
        case post(String)
        /// A valid WebSocket handshake. Without an id, it opens a new connection.
        case upgrade(String?, EngineIOVersion)
        /// The transport is `websocket`, but the request is no valid WebSocket handshake.
        case notUpgrade(String?)
        case invalid(EngineIOError)
    }

    var action: Action
    /// For JSONP, the number of the page's callback; otherwise nil.
    var script: Int?
    /// False for clients that do not support the recovery of dropped connections.
    var canRecover = true

    var isUpgrade: Bool { if case .upgrade = action { true } else { false } }

    /// Returns nil if the query is not one of Engine.IO.
    ///
    /// - Parameter isWebSocket: whether the request is a valid WebSocket handshake.
    init?(_ method: HTTPMethod, _ query: [Substring: Substring], isWebSocket: Bool) {
        guard query["EIO"] != nil || query["transport"] != nil else { return nil }
        action = Self.action(method, query, isWebSocket: isWebSocket)
        script = query["j"].flatMap { SocketIORequest.scriptIndex($0) }
        // The handlers of Python's client take a fixed number of arguments, so an additional one, the offset, would make them
        // fail. That client does not support recovery. Only its timestamps are decimal fractions.
        canRecover = query["t"].map { Double($0) == nil || !$0.contains(".") } ?? true
    }

    private static func action(
        _ method: HTTPMethod, _ query: [Substring: Substring], isWebSocket: Bool
    ) -> Action {
        let transport = query["transport"].flatMap { EngineIOConnection.Transport(rawValue: String($0)) }
        guard let transport else { return .invalid(.unknownTransport) }
        let id = query["sid"].flatMap { $0.isEmpty ? nil : String($0) }
        // The version matters only for a new connection.
        let version = query["EIO"].flatMap { UInt8($0) }.flatMap { EngineIOVersion(rawValue: $0) }
        switch (transport, id) {
        case (_, nil) where method == .GET && version == nil: return .invalid(.unsupportedVersion)
        case (.webSocket, _) where !isWebSocket: return .notUpgrade(id)
        case (.webSocket, .some): return .upgrade(id, version ?? .four)
        case (.polling, let id?):
            switch method {
            case .GET: return .poll(id)
            case .POST: return .post(id)
            default: return .invalid(.badRequest)
            }
        case (_, nil):
            guard method == .GET else { return .invalid(.badMethod) }
            guard let version else { return .invalid(.unsupportedVersion) }
            return transport == .webSocket ? .upgrade(nil, version) : .handshake(version)
        }
    }
}

/// An error of Engine.IO's protocol, as Socket.IO's own server reports it.
struct EngineIOError: Equatable, Sendable {
    let code: Int
    let message: String

    static let unknownTransport = EngineIOError(code: 0, message: "Transport unknown")
    static let unknownSession = EngineIOError(code: 1, message: "Session ID unknown")
    static let badMethod = EngineIOError(code: 2, message: "Bad handshake method")
    static let badRequest = EngineIOError(code: 3, message: "Bad request")
    static let unsupportedVersion = EngineIOError(code: 5, message: "Unsupported protocol version")

    /// The error for a client that is not admitted. Its text explains why.
    static func forbidden(_ message: String) -> EngineIOError { EngineIOError(code: 4, message: message) }

    /// The response with this error.
    ///
    /// - Parameter status: 400 for errors of the protocol.
    func response(status: Int = 400) -> GateResponse {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("code")
        writer.integer(code)
        writer.name("message")
        writer.string(message)
        writer.endObject()
        return GateResponse(status: status, type: "application/json", body: writer.bytes)
    }
}
