import Wire

/// `POST` and `GET /logging/ClientEvent`: where pages send OpenTok's log events, and where OpenTok's network test checks that it can.
///
/// The response is always the same, and nothing is kept. Requests count against the message budget of the address.
enum ClientEventEndpoint {
    static let path = "/logging/ClientEvent"
    static let layers = EndpointLayers(
        countsMessages: true, sharing: .init(methods: "GET, POST", headers: "Content-Type"))

    static func respond(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        GateResponse(status: 200, type: "application/json", body: "{}\n".utf8)
    }
}
