import NIOHTTP1
import Signaling
import Wire

/// `POST /v1/roulette/sample`: a frame of the client's camera in a chat of the roulette (`protocol/README.md` §5).
///
/// The bearer token is the one with which the client publishes in the chat, so it also names the person.
enum SampleEndpoint {
    static let path = "/v1/roulette/sample"
    static let type = "image/jpeg"
    static let layers = EndpointLayers(
        countsMessages: true, sharing: .init(methods: "POST", headers: "Authorization, Content-Type"))

    static func post(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        guard let judge = gateway.sampleJudge else {
            throw WireError(.notFound, "This server checks no samples. Send them only if welcome has sampling.")
        }
        guard request.headers.hasContentType(type) else {
            throw WireError(.contentType, "Send a body of type \(type), without Content-Encoding.")
        }
        guard let token = request.headers.bearerToken else { throw .tokenMissing }
        let projects = gateway.runner.hubSettings.projects
        let grant = try projects.verifySessionToken(token, for: nil, now: gateway.runner.wallNow)
        guard let source = gateway.runner.hub.sampleSource(for: grant) else {
            throw WireError(
                .notMatched, "This chat is over, or it is not one of the roulette. Send samples only during a chat.")
        }
        _ = try SampleImage(request.body)
        try judge.take(request.body, of: source)
        return GateResponse(status: 204)
    }
}
