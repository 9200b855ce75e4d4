import NIOHTTP1

/// A request for an endpoint that bypasses the router.
enum EndpointRequest: Equatable {
    case socketIO(SocketIORequest)
    case whip(WHIPRequest)
    case perch(PerchHTTPRequest)

    /// Returns nil if the request is for the router.
    init?(_ head: HTTPRequestHead, allowsSocketIO: Bool, allowsPerch: Bool) {
        if allowsPerch, let request = PerchHTTPRequest(method: head.method, uri: head.uri) {
            self = .perch(request)
        } else if allowsSocketIO, let request = SocketIORequest(method: head.method, uri: head.uri) {
            self = .socketIO(request)
        } else if let request = WHIPRequest(method: head.method, uri: head.uri) {
            self = .whip(request)
        } else {
            return nil
        }
    }

    /// Creates the request that asks an endpoint to admit a WebSocket with a valid handshake. Returns nil for the
    /// native protocol, which has no such endpoint: its WebSockets always open, and `NativeSocket` then refuses
    /// clients with an error message. Pages can read that message, but not the HTTP response to a handshake.
    init?(handshake head: HTTPRequestHead) {
        if let request = SocketIORequest.webSocket(uri: head.uri) {
            self = .socketIO(request)
        } else if let (token, envelope) = PerchHTTPRequest.socket(uri: head.uri) {
            self = .perch(.webSocket(token, envelope))
        } else {
            return nil
        }
    }
}
