import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import Wire

/// A receiver of traces for tests: a server that takes OTLP over HTTP, keeps the requests, and answers as the test says.
final class TraceReceiver: Sendable {
    struct Request: Sendable {
        var method: String
        var uri: String
        var headers: HTTPHeaders
        var body: [UInt8]
    }

    enum Reply: Sendable {
        case status(Int, headers: [(String, String)] = [])
        /// Answers with status 200 after this time.
        case late(TimeAmount)
        /// Never answers.
        case silence
    }

    /// A span as it arrived.
    struct Span: Sendable {
        var (trace, id, parent, name): (String, String, String?, String)
        var (start, end): (UInt64, UInt64)
        var attributes: [String: String]
    }

    fileprivate struct State {
        var requests: [Request] = []
        var reply: @Sendable (Int) -> Reply
    }

    private let channel: any Channel
    private let port: Int
    private let state: NIOLockedValueBox<State>

    /// - Parameter reply: returns the reply to a request. The argument is the request's number, starting at 0.
    static func start(
        _ reply: @escaping @Sendable (Int) -> Reply = { _ in .status(200) }
    ) async throws -> TraceReceiver {
        let state = NIOLockedValueBox(State(reply: reply))
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(TraceReceiverHandler(state))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return TraceReceiver(channel, state)
    }

    private init(_ channel: any Channel, _ state: NIOLockedValueBox<State>) {
        (self.channel, self.state) = (channel, state)
        port = channel.localAddress?.port ?? 0
    }

    /// The URL for `tracing.endpoint`.
    var endpoint: String { "http://127.0.0.1:\(port)" }
    var requests: [Request] { state.withLockedValue { $0.requests } }

    func stop() async { try? await channel.close() }

    /// All spans that arrived, in order.
    var spans: [Span] {
        requests.flatMap { request -> [JSONValue] in
            guard let body = try? JSONReader.parse(request.body) else { return [] }
            return Self.list(body, "resourceSpans").flatMap { Self.list($0, "scopeSpans") }
                .flatMap { Self.list($0, "spans") }
        }.compactMap(Self.span)
    }

    func span(_ name: String) -> Span? { spans.first { $0.name == name } }

    private static func list(_ value: JSONValue, _ name: String) -> [JSONValue] {
        if case .object(let object) = value, case .array(let elements)? = object[name] { elements } else { [] }
    }

    private static func text(_ value: JSONValue?) -> String? {
        if case .string(let text)? = value { text } else { nil }
    }

    private static func span(_ value: JSONValue) -> Span? {
        guard case .object(let object) = value, let trace = text(object["traceId"]), let id = text(object["spanId"]),
            let name = text(object["name"]), let start = text(object["startTimeUnixNano"]).flatMap({ UInt64($0) }),
            let end = text(object["endTimeUnixNano"]).flatMap({ UInt64($0) })
        else { return nil }
        var attributes: [String: String] = [:]
        for case .object(let attribute) in list(value, "attributes") {
            guard let key = text(attribute["key"]), case .object(let typed)? = attribute["value"] else { continue }
            attributes[key] = typed.members.first.flatMap { text($0.value) } ?? ""
        }
        return Span(
            trace: trace, id: id, parent: text(object["parentSpanId"]), name: name, start: start, end: end,
            attributes: attributes)
    }
}

/// Handles the requests of one connection.
private final class TraceReceiverHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let state: NIOLockedValueBox<TraceReceiver.State>
    private var request: TraceReceiver.Request?

    init(_ state: NIOLockedValueBox<TraceReceiver.State>) { self.state = state }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            request = TraceReceiver.Request(
                method: head.method.rawValue, uri: head.uri, headers: head.headers, body: [])
        case .body(let piece): request?.body += piece.readableBytesView
        case .end: answer(context)
        }
    }

    private func answer(_ context: ChannelHandlerContext) {
        guard let request else { return }
        let reply = state.withLockedValue { state in
            state.requests.append(request)
            return state.reply(state.requests.count - 1)
        }
        switch reply {
        case .status(let status, let fields): write(status, fields, context)
        case .late(let pause):
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: pause) { bound.value.0.write(200, [], bound.value.1) }
        case .silence: break
        }
    }

    private func write(_ status: Int, _ fields: [(String, String)], _ context: ChannelHandlerContext) {
        let headers = HTTPHeaders(fields + [("Content-Length", "0")])
        let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
