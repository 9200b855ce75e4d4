import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// The answers to the challenges of an order that is in progress.
final class ChallengeAnswers: Sendable {
    private let answers = Mutex<[String: String]>([:])

    /// Answers this challenge until ``withdrawAll()``.
    func publish(_ challenge: ACMEChallenge) { answers.withLock { $0[challenge.token] = challenge.answer } }
    /// Answers no challenge.
    func withdrawAll() { answers.withLock { $0 = [:] } }
    /// The answer to the challenge with this token; nil if it is not published.
    func answer(to token: String) -> String? { answers.withLock { $0[token] } }
}

/// The response to a plain HTTP request: the answer to a challenge, or a redirect to HTTPS.
struct PlainHTTPResponse: Equatable {
    /// The status.
    var status: HTTPResponseStatus
    /// Where a redirect leads; nil for other responses.
    var location: String?
    /// A plain text.
    var body: String

    /// - Parameters:
    ///   - host: the `Host` header. A redirect leads to this host if it is one of the domains, otherwise to the first domain.
    ///   - port: the port of the public URL; 443 is left out of the redirect.
    init(
        _ method: HTTPMethod, _ uri: String, host: String?, domains: [String], port: Int, answers: ChallengeAnswers
    ) {
        guard method == .GET || method == .HEAD else {
            (status, body) = (.methodNotAllowed, "Use HTTPS.\n")
            return
        }
        if uri.hasPrefix(ACMEChallenge.path) {
            let answer = answers.answer(to: String(uri.dropFirst(ACMEChallenge.path.count)))
            (status, body) = answer.map { (.ok, $0) } ?? (.notFound, "There is no such challenge.\n")
            return
        }
        let named = host.map { $0.prefix { $0 != ":" }.lowercased() }
        let domain = named.flatMap { domains.contains($0) ? $0 : nil } ?? domains.first ?? "localhost"
        let isPath = uri.hasPrefix("/") && uri.utf8.count <= 2048 && uri.utf8.allSatisfy { (0x21...0x7e).contains($0) }
        (status, body) = (.permanentRedirect, "Use HTTPS.\n")
        location = "https://\(domain)\(port == 443 ? "" : ":\(port)")\(isPath ? uri : "/")"
    }
}

/// Serves plain HTTP for the authority, which looks at port 80 (`http-01`), and redirects everyone else to HTTPS.
///
/// Its connections count like those of the public port. Each is closed after its first response, or after ``timeLimit``.
struct ChallengeListener: Sendable {
    private static let timeLimit: TimeAmount = .seconds(10)

    /// Admits the connections.
    let gateway: NIOLoopBound<Gateway>
    /// The address, the public port and the domains.
    let configuration: ConfabConfiguration
    /// The port to open.
    let port: Int
    /// What the authority gets.
    let answers: ChallengeAnswers

    /// Opens the port.
    ///
    /// - Throws: an error if it cannot be opened.
    func open() async throws -> any Channel {
        let (gateway, configuration, answers) = (gateway, configuration, answers)
        return try await ServerBootstrap(group: gateway.eventLoop)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard gateway.value.admitConnection(channel) else { return channel.close(promise: nil) }
                    let timer = channel.eventLoop.scheduleTask(in: Self.timeLimit) { channel.close(promise: nil) }
                    channel.closeFuture.whenComplete { _ in timer.cancel() }
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false)
                    try pipeline.addHandler(Handler(configuration, answers))
                }
            }
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .bind(host: configuration.host, port: port).get()
    }

    /// Responds to the first request of a connection, and closes it.
    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let configuration: ConfabConfiguration
        private let answers: ChallengeAnswers
        private var hasResponded = false

        init(_ configuration: ConfabConfiguration, _ answers: ChallengeAnswers) {
            (self.configuration, self.answers) = (configuration, answers)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .head(let head) = unwrapInboundIn(data), !hasResponded else { return }
            hasResponded = true
            let response = PlainHTTPResponse(
                head.method, head.uri, host: head.headers.first(name: "host"), domains: configuration.acme.domains,
                port: configuration.redirectPort, answers: answers)
            var headers = HTTPHeaders([
                ("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", "\(response.body.utf8.count)"),
                ("Cache-Control", "no-store"), ("Connection", "close"),
            ])
            if let location = response.location { headers.add(name: "Location", value: location) }
            let start = HTTPResponseHead(version: .http1_1, status: response.status, headers: headers)
            context.write(wrapOutboundOut(.head(start)), promise: nil)
            if head.method != .HEAD {
                let body = context.channel.allocator.buffer(string: response.body)
                context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            }
            let channel = context.channel
            context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
