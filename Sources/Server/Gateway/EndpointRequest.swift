import NIOHTTP1

/// A request for an endpoint that bypasses the router.
enum EndpointRequest: Equatable {
    case socketIO(SocketIORequest)
    case whip(WHIPRequest)

    /// Returns nil if the request is for the router.
    init?(_ head: HTTPRequestHead, allowsSocketIO: Bool) {
        if allowsSocketIO, let request = SocketIORequest(method: head.method, uri: head.uri) {
            self = .socketIO(request)
        } else if let request = WHIPRequest(method: head.method, uri: head.uri) {
            self = .whip(request)
        } else {
            return nil
        }
    }

    /// Returns the request to admit a WebSocket whose handshake is valid. Nil if it needs no admission: `NativeSocket` refuses
    /// clients with an error that pages can read, which they cannot do with an HTTP response.
    init?(handshake head: HTTPRequestHead) {
        guard let id = SocketIORequest.webSocketID(uri: head.uri) else { return nil }
        self = .socketIO(.webSocket(id))
    }
}
