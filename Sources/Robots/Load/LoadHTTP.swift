import Confab
import NIOCore
import NIOHTTP1
import NIOPosix
import Peers

/// A minimal HTTP client for Janus and for metrics. Each request uses its own connection.
struct LoadHTTP: Sendable {
    private static let maxBody = 4 << 20
    /// The timeout of a request, longer than the 30 seconds for which Janus delays the response to a poll.
    private static let requestTimeout = TimeAmount.seconds(60)

    let place: HostEndpoint

    func get(_ path: String) async throws -> [UInt8] { try await request(.GET, path, []) }
    func post(_ path: String, _ body: [UInt8]) async throws -> [UInt8] { try await request(.POST, path, body) }

    private func request(_ method: HTTPMethod, _ path: String, _ body: [UInt8]) async throws -> [UInt8] {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let answer = loop.makePromise(of: [UInt8].self)
        let deadline = loop.scheduleTask(in: Self.requestTimeout) {
            answer.fail(RobotError("\(place.authority) did not respond."))
        }
        defer { deadline.cancel() }
        let channel: any Channel
        do {
            channel = try await ClientBootstrap(group: loop).connect(host: place.host, port: place.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHTTPClientHandlers()
                    try pipeline.addHandler(NIOHTTPClientResponseAggregator(maxContentLength: Self.maxBody))
                    try pipeline.addHandler(AnswerHandler(answer))
                    return channel
                }
            }
        } catch {
            answer.fail(error)
            throw RobotError("\(place.authority) cannot be reached: \(error)")
        }
        var head = HTTPRequestHead(version: .http1_1, method: method, uri: path)
        head.headers.add(name: "Host", value: place.authority)
        head.headers.add(name: "Connection", value: "close")
        if method == .POST {
            head.headers.add(name: "Content-Type", value: "application/json")
            head.headers.add(name: "Content-Length", value: "\(body.count)")
        }
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        if !body.isEmpty {
            channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
        }
        channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
        defer { channel.close(promise: nil) }
        return try await answer.futureResult.get()
    }
}

/// Collects the body of one response.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = NIOHTTPClientResponseFull

    private let answer: EventLoopPromise<[UInt8]>

    init(_ answer: EventLoopPromise<[UInt8]>) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let response = unwrapInboundIn(data)
        guard response.head.status == .ok else {
            return answer.fail(RobotError("The server responded with HTTP status \(response.head.status)."))
        }
        answer.succeed(response.body.map { Array($0.readableBytesView) } ?? [])
    }

    func channelInactive(context: ChannelHandlerContext) {
        answer.fail(RobotError("The server closed the connection without a response. See its log."))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
        context.close(promise: nil)
    }
}

extension LoadCounters {
    /// Fetches the server's metrics and returns the counters in them.
    ///
    /// - Parameter url: the address of the metrics, such as `http://127.0.0.1:9464/metrics`.
    static func read(_ url: String) async throws -> LoadCounters {
        let answer = try await LoadHTTP(place: HostEndpoint(url)).get("/metrics")
        return LoadCounters(exposition: String(decoding: answer, as: UTF8.self))
    }
}
