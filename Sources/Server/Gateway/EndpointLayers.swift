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
    /// The variable parts of the path. Only the router sets them.
    var path = Parameters()
    /// The parameters in the query. Only the router sets them.
    var query = Parameters()
    /// The request's id, and its span. Of a request through the router, only the id is known.
    var trace: RequestTrace?
}

/// What an endpoint does with every request before and after its handler.
struct EndpointLayers: Sendable {
    /// The pages of other origins that can read the responses (CORS).
    ///
    /// Allowing other origins is safe: requests carry no ambient authority such as cookies, only a secret or a token.
    struct Sharing: Sendable {
        /// Which origins `Access-Control-Allow-Origin` names. `all`: every page (`*`) if all origins are allowed,
        /// otherwise only the request's origin. `named`: always only the request's origin, if it is allowed.
        /// `namedWithCredentials` also allows credentials. `everyone`: every page, also if not all origins are allowed,
        /// because the URL is meant to be given to other sites.
        enum Readers: Sendable { case all, named, namedWithCredentials, everyone }

        var readers = Readers.all
        /// The methods and headers that pages may send.
        var (methods, headers): (String, String)
        /// The response headers that pages may read in addition to those that CORS always allows; nil for none.
        var exposed: String?
    }

    /// The token that a request needs, in `X-OPENTOK-AUTH` or as a bearer token.
    enum Authorization: Sendable {
        /// The endpoint itself checks who may send the request.
        case none
        /// A token signed with the API secret of the main project.
        case operators
        /// A token signed for the project that the path or the token itself names, with its API secret or the private
        /// key of its application.
        case application
    }

    /// Whether each request counts against the message budget of its address.
    var countsMessages = false
    /// Whether refused requests count in the metrics.
    var countsRefusals = false
    /// The admission point at which each request is checked; nil for no such check.
    var point: Gateway.AdmissionPoint?
    /// The token that requests need.
    var authorization = Authorization.none
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
        let isForEveryPage =
            sharing.readers == .everyone || sharing.readers == .all && configuration.allowedOrigins.isEmpty
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
        if sharing.readers == .all || sharing.readers == .everyone { allow("Max-Age", "86400") }
    }
}

extension Gateway {
    typealias Handler = @Sendable (Gateway, GateRequest) async throws(WireError) -> GateResponse?

    /// Admits a request to an endpoint, calls the handler, and adds the CORS headers to the response. Runs on the
    /// gateway's event loop. What is logged meanwhile has the request's id.
    ///
    /// - Returns: nil if the handler accepts a WebSocket handshake.
    func respond(
        to request: GateRequest, _ layers: EndpointLayers,
        _ handler: (Gateway, GateRequest) async throws(WireError) -> GateResponse?
    ) async -> GateResponse? {
        await RequestTrace.$current.withValue(request.trace?.id) { await answer(request, layers, handler) }
    }

    private func answer(
        _ request: GateRequest, _ layers: EndpointLayers,
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
        let isForEveryone = layers.sharing?.readers == .everyone
        guard isForEveryone || configuration.allows(request.headers) else { throw .forbiddenOrigin }
        if let point = layers.point { try admit(request.address, at: point) }
        switch layers.authorization {
        case .none: return
        case .operators:
            try authorize(request) { token throws(WireError) in
                try reception.project.verifyRequestToken(token, now: runner.wallNow)
            }
        case .application:
            var apiKey = ""
            try authorize(request) { token throws(WireError) in
                let project = try project(of: request, token)
                try project.verifyApplicationToken(token, now: runner.wallNow)
                apiKey = project.apiKey
            }
            try takeRequest(of: apiKey)
        }
    }

    /// Checks the token of an operator or an application. Only failures count against the address's budget for
    /// hellos, so that an application can create a token for each of its users.
    private func authorize(
        _ request: GateRequest, _ verify: (String) throws(WireError) -> Void
    ) throws(WireError) {
        do throws(WireError) {
            guard let token = request.requestToken else { throw .requestTokenMissing }
            try verify(token)
        } catch {
            if let wait = helloDelay(request.address) { throw AdmissionPoint.operation.tooOften(retryAfter: wait) }
            throw error
        }
    }
}

extension Gateway {
    /// Returns the project that sent a request. Call this only after the request's token was verified.
    func application(of request: GateRequest) throws(WireError) -> Project {
        guard let token = request.requestToken else { throw .requestTokenMissing }
        return try project(of: request, token)
    }

    /// Charges a request to the budget of its project. Throws if the budget is used up.
    fileprivate func takeRequest(of apiKey: String) throws(WireError) {
        guard let wait = projectBudgets[apiKey].take(configuration.limits.projectRequests, now: runner.now) else {
            return
        }
        metrics.projectsOverBudget.increment()
        throw WireError(
            .rateLimited, "This project sends too many requests. Try again in \(wait.roundedText).", retryable: true,
            retryAfter: wait)
    }

    /// Charges a large response to the budget of the project, with the cost of the same number of bytes from an address. The
    /// size is known only now, so the project's later requests may have to wait.
    func charge(_ response: GateResponse, to apiKey: String) {
        let cost = response.body.count / AddressBudgets.bytesPerMessage
        projectBudgets[apiKey]?.spend(configuration.limits.projectRequests, cost: Double(cost), now: runner.now)
    }

    /// Returns the project in the request's path, or else the one that the token names. For an unknown project, throws the
    /// same error as for a wrong signature, so that the responses do not reveal which projects exist.
    private func project(of request: GateRequest, _ token: String) throws(WireError) -> Project {
        let projects = runner.hubSettings.projects
        let name = request.path.get("project") ?? Projects.unverifiedProject(in: token)
        guard let project = name.flatMap({ projects.project(named: $0) }) else {
            throw WireError(
                .tokenSignature, "Unknown project, or wrong API secret. Check the API key and the secret.")
        }
        return project
    }
}

extension GateRequest {
    /// The token of an operator or an application; nil if there is none.
    fileprivate var requestToken: String? { headers.only("X-OPENTOK-AUTH") ?? headers.bearerToken }
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
