import NIOHTTP1

/// A request that has an endpoint of its own, apart from the router.
enum EndpointRequest {
    case socketIO(SocketIORequest)
    case whip(WHIPRequest)

    /// - Returns: `nil` for everything that is the router's.
    init?(_ head: HTTPRequestHead) {
        if let request = SocketIORequest(method: head.method, uri: head.uri) {
            self = .socketIO(request)
        } else if let request = WHIPRequest(method: head.method, uri: head.uri) {
            self = .whip(request)
        } else {
            return nil
        }
    }
}
