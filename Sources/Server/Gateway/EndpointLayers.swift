import CoreMetrics
import Hummingbird
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// A request to an endpoint, with the client's address, not a proxy's. For a request through the router, the body is
/// added after admission.
struct GateRequest: Sendable {
    var method: HTTPMethod
    var headers: HTTPHeaders
    var address: IPAddress
    var body: [UInt8] = []
    /// The variable parts of the path, and the query. Only the router sets them.
    var path = Parameters()
    var query = Parameters()
}

/// What an endpoint does with every request before and after its handler.
struct EndpointLayers: Sendable {
    /// The pages of other origins that can read the responses (CORS).
    ///
    /// Allowing other origins is safe: requests carry no ambient authority such as cookies, only a secret or a token.
    struct Sharing: Sendable {
        /// Which origins `Access-Control-Allow-Origin` names. `all`: every page (`*`) if all origins are allowed,
        /// otherwise only the request's origin. `named`: always only the request's origin, if it is allowed.
        /// `namedWithCredentials` also allows credentials.
        enum Readers: Sendable { case all, named, namedWithCredentials }

        var readers = Readers.all
        /// The methods and headers that pages may send.
        var (methods, headers): (String, String)
        /// The response headers that pages may read in addition to those that CORS always allows; nil for none.
        var exposed: String?
    }

    /// Whether each request counts against the message budget of its address.
    var countsMessages = false
    /// Whether refused requests count in the metrics.
    var countsRefusals = false
    var point: Gateway.AdmissionPoint?
    /// Whether requests need a token that is signed with the API secret.
    var isForOperators = false
    /// Which pages of other origins can read the responses; nil if only this server's pages can.
    var sharing: Sharing?
    var response: @Sendable (WireError) -> GateResponse = { GateResponse($0) }

    /// Adds the CORS headers that let the page that sent the request read the response, if its origin is allowed. For
    /// `OPTIONS`, also adds those that answer a preflight request. Does nothing if `sharing` is nil.
    func share(
        _ response: inout GateResponse, with request: HTTPHeaders, _ method: HTTPMethod,
        _ configuration: ConfabConfiguration
    ) {
        guard let sharing else { return }
        let isForEveryPage = sharing.readers == .all && configuration.allowedOrigins.isEmpty
        let reader = isForEveryPage ? "*" : request.onlyOrigin.flatMap { configuration.allows(request) ? $0 : nil }
        if !isForEveryPage, reader != nil || sharing.readers == .all {
            response.headers.add(name: "Vary", value: "Origin")
        }
        guard let reader else { return }
        func allow(_ name: String, _ value: String) {
            response.headers.add(name: "Access-Control-\(name)", value: value)
        }
        allow("Allow-Origin", reader)
        if sharing.readers == .namedWithCredentials { allow("Allow-Credentials", "true") }
        if let exposed = sharing.exposed { allow("Expose-Headers", exposed) }
        guard method == .OPTIONS else { return }
        allow("Allow-Methods", sharing.methods)
        allow("Allow-Headers", sharing.headers)
        if sharing.readers == .all { allow("Max-Age", "86400") }
    }
}

extension Gateway {
    typealias Handler = @Sendable (Gateway, GateRequest) async throws(WireError) -> GateResponse?

    /// Admits a request to an endpoint, calls the handler, and adds the CORS headers to the response. Runs on the
    /// gateway's event loop.
    ///
    /// - Returns: nil if the handler accepts a WebSocket handshake.
    func respond(
        to request: GateRequest, _ layers: EndpointLayers,
        _ handler: (Gateway, GateRequest) async throws(WireError) -> GateResponse?
    ) async -> GateResponse? {
        var response: GateResponse
        do throws(WireError) {
            try admit(request, layers)
            guard let answer = try await handler(self, request) else { return nil }
            response = answer
        } catch {
            if layers.countsRefusals { metrics.refusedHellos.increment() }
            response = layers.response(error)
        }
        layers.share(&response, with: request.headers, request.method, configuration)
        return response
    }

    func admit(_ request: GateRequest, _ layers: EndpointLayers) throws(WireError) {
        if layers.countsMessages { try admitRequest(from: request.address, bytes: request.body.count) }
        guard configuration.allows(request.headers) else { throw .forbiddenOrigin }
        if let point = layers.point { try admit(request.address, at: point) }
        if layers.isForOperators { try authorize(request) }
    }

    /// Checks an operator's token. Only failures count against the address's budget for hellos, so that an application
    /// can create a token for each of its users.
    private func authorize(_ request: GateRequest) throws(WireError) {
        do throws(WireError) {
            guard let token = request.headers.only("X-OPENTOK-AUTH") ?? request.headers.bearerToken else {
                throw .requestTokenMissing
            }
            try reception.project.verifyRequestToken(token, now: runner.wallNow)
        } catch {
            if let wait = helloDelay(request.address) { throw AdmissionPoint.operation.tooOften(retryAfter: wait) }
            throw error
        }
    }
}

/// Runs tasks on an event loop, where they use the gateway without changing threads.
final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

extension WireError {
    fileprivate static let requestTokenMissing = WireError(
        .tokenMalformed,
        "Send a JWT signed with the API secret, as X-OPENTOK-AUTH: <JWT> or Authorization: Bearer <JWT>.")
}
