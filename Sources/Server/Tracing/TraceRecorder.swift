import Crypto
import NIOHTTP1
import Signaling
import Tracing
import Wire

/// Records traces: gives each HTTP request a span, and passes what happens on its socket to ``SocketTraces``. Used only on the gateway's
/// event loop.
///
/// Without tracing there is none, so that each place that uses it costs one branch.
final class TraceRecorder {
    private let tracer: OTLPTracer
    private var acceptsParents: Bool
    /// The same for the whole life of the process, so that a reload does not divide a trace.
    private let key: SymmetricKey
    private var sockets = SocketTraces()
    private var random = SystemRandomNumberGenerator()

    /// - Parameter key: the secret by which traces of clients are chosen.
    init(
        _ settings: ConfabConfiguration.Tracing, queue: TraceQueue, key: SymmetricKey = SymmetricKey(size: .bits256)
    ) {
        self.key = key
        tracer = OTLPTracer(queue: queue, sampler: TraceSampler(settings, key: key))
        acceptsParents = settings.acceptParents
    }

    /// Applies the settings that a reload changes. Requests that have begun keep theirs.
    func apply(_ settings: ConfabConfiguration.Tracing) {
        tracer.sampler = TraceSampler(settings, key: key)
        acceptsParents = settings.acceptParents
    }

    // MARK: HTTP

    /// Begins the span of a request. The request's id is that of the trace, also if the trace is not recorded.
    func begin(_ head: HTTPRequestHead, _ routes: RouteTemplates) -> HTTPExchange {
        var context = ServiceContext.topLevel
        if acceptsParents { tracer.extract(head.headers, into: &context, using: TraceHeaderExtractor()) }
        let method = HTTPExchange.known(head.method)
        let span = tracer.startSpan(method, context: context, ofKind: .server, at: TraceTime.now)
        var exchange = HTTPExchange(head, routes, id: OTLPTracer.parent(in: span.context)?.trace)
        guard span.isRecording else { return exchange }
        let (route, version) = (exchange.route, head.version == .http1_0 ? "1.0" : "1.1")
        span.operationName = "\(method) \(route)"
        span.updateAttributes { attributes in
            attributes["http.request.method"] = method
            attributes["http.route"] = route
            // The path itself could contain a token or the name of a room.
            attributes["url.path"] = route
            attributes["network.protocol.version"] = version
        }
        exchange.span = span
        return exchange
    }

    // MARK: Sockets

    /// A socket, or a WHIP or WHEP resource, was opened by a request.
    ///
    /// - Parameter text: the `traceparent` in the client's hello. If it is valid, the socket belongs to this trace instead of the request's.
    /// - Returns: the trace to which the socket belongs; nil if that is not recorded.
    @discardableResult
    func opened(_ socket: SocketID, by request: RequestTrace?, continuing text: String? = nil) -> TraceID? {
        if acceptsParents, let named = text.flatMap({ TraceParent(parsing: $0) }) {
            let parent = tracer.sampler.received(named)
            guard parent.isSampled else { return nil }
            sockets.opened(socket, in: parent.trace, parent: parent.span)
            return parent.trace
        }
        guard let request, let span = request.span else { return nil }
        sockets.opened(socket, in: request.id, parent: span)
        return request.id
    }

    func closed(_ socket: SocketID) {
        guard sockets.records(socket) else { return }
        sockets.closed(socket, at: .now)
        export()
    }

    func closedAll() {
        sockets.closedAll(at: .now)
        export()
    }

    /// The hub is about to handle this input.
    func received(_ input: Input) {
        guard !sockets.isEmpty else { return }
        switch input {
        case .message(let socket, let message):
            guard sockets.records(socket) else { return }
            sockets.received(message, on: socket, at: .now, using: &random)
        case .media(let event): sockets.reported(event, at: .now, using: &random)
        default: return
        }
        export()
    }

    /// The hub has handled this input, with these effects.
    func caused(_ effects: [Effect], by input: Input) {
        guard let socket = input.socket, sockets.records(socket) else { return }
        for case .media(.offer(let client, _, let number, let side, _)) in effects {
            sockets.offered(by: client, re: number, side, on: socket, at: .now, using: &random)
        }
    }

    /// A message is sent to a client. Reads it only if the socket is recorded.
    func transmitted(_ bytes: [UInt8], to socket: SocketID) {
        guard sockets.records(socket), let message = try? Envelope<ServerMessage>.decode(bytes).message else { return }
        sockets.sent(message, on: socket, at: .now)
        export()
    }

    private func export() { for span in sockets.takeFinished() { tracer.queue.add(span) } }
}

/// The request that a socket belongs to: its id, and its span if it is recorded.
struct RequestTrace: Equatable, Sendable {
    /// The id of the request whose handler runs, for the log.
    @TaskLocal static var current: TraceID?

    var id: TraceID
    /// The span of the HTTP request; nil if it is not recorded.
    var span: SpanID?
}

/// An HTTP request that is being answered. Its id is in the log and in the response, so that a person can report it.
struct HTTPExchange {
    /// The header of the response that contains the id, and the header under which the router's handlers find it.
    static let header = "X-Request-Id"

    let id: TraceID
    let method: HTTPMethod
    private let uri: String
    private let routes: RouteTemplates
    /// The request's span; nil if it is not recorded.
    fileprivate(set) var span: OTLPSpan?
    /// The status of the response; nil before it.
    var status: Int?

    /// - Parameters:
    ///   - routes: all routes, to find that of the request.
    ///   - id: nil for a random one.
    init(_ head: HTTPRequestHead, _ routes: RouteTemplates, id: TraceID? = nil) {
        var random = SystemRandomNumberGenerator()
        (self.id, method, uri) = (id ?? .random(using: &random), head.method, head.uri)
        self.routes = routes
    }

    /// The route of the path; see ``RouteTemplates``.
    var route: String { routes.route(of: uri) }

    var trace: RequestTrace {
        RequestTrace(id: id, span: span.flatMap { OTLPTracer.parent(in: $0.context)?.span })
    }

    /// Ends the span with the status of the response, or as failed if there was none.
    func end() {
        guard let span else { return }
        if let status {
            span.updateAttributes { $0["http.response.status_code"] = status }
            if status >= 500 { span.setStatus(SpanStatus(code: .error)) }
        } else {
            span.updateAttributes { $0["error.type"] = "connection_closed" }
            span.setStatus(SpanStatus(code: .error))
        }
        span.end(at: TraceTime.now)
    }

    /// Returns the method, or `_OTHER` for one that no standard names (OpenTelemetry's conventions for HTTP).
    static func known(_ method: HTTPMethod) -> String {
        switch method {
        case .GET, .HEAD, .POST, .PUT, .DELETE, .CONNECT, .OPTIONS, .TRACE, .PATCH: method.rawValue
        default: "_OTHER"
        }
    }
}

extension Input {
    /// The socket that caused the input, if it is one that can send offers.
    fileprivate var socket: SocketID? {
        switch self {
        case .message(let socket, _), .requested(let socket, _): socket
        case .resourceArrived(let arrival): arrival.socket
        default: nil
        }
    }
}
