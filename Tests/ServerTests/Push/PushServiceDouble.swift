import Crypto
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import SwiftASN1
import X509

@testable import Server

/// A local push service for tests, with HTTPS over HTTP/2 or HTTP/1.1. It records the requests and sends the answers
/// that the test defines.
final class PushServiceDouble: Sendable {
    struct Request: Sendable {
        var method: String
        var uri: String
        var headers: [(name: String, value: String)]
        var body: [UInt8]
        var isHTTP2: Bool
        var host: String?

        subscript(name: String) -> String? {
            let found = headers.filter { $0.name.lowercased() == name }
            return found.count == 1 ? found.first?.value : nil
        }
    }

    enum Reply: Sendable {
        case answer(Int, headers: [(String, String)] = [], body: String = "")
        /// Accepts the request and never answers.
        case silence
        /// Starts an answer and sends a byte every 20 ms, without end.
        case trickle(Int)
        /// Sends an endless body as fast as the client reads it.
        case flood(Int)
    }

    let port: Int
    private let channel: any Channel
    private let state: NIOLockedValueBox<State>

    struct State {
        var requests: [Request] = []
        var connections = 0
        var pieces = 0
        var respond: @Sendable (Int, Request) -> Reply
    }

    /// - Parameters:
    ///   - protocols: the offered protocols (ALPN).
    ///   - respond: returns the reply to a request. The first argument is the request's number, starting at 0.
    static func start(
        _ certificate: TestCertificate, protocols: [String] = ["h2", "http/1.1"],
        respond: @escaping @Sendable (Int, Request) -> Reply = { _, _ in .answer(201) }
    ) async throws -> PushServiceDouble {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(certificate.certificate)], privateKey: .privateKey(certificate.key))
        tls.applicationProtocols = protocols
        let context = try NIOSSLContext(configuration: tls)
        let state = NIOLockedValueBox(State(respond: respond))
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                state.withLockedValue { $0.connections += 1 }
                do {
                    try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                } catch {
                    return channel.eventLoop.makeFailedFuture(error)
                }
                return channel.configureCommonHTTPServerPipeline { stream in
                    stream.eventLoop.makeCompletedFuture {
                        try stream.pipeline.syncOperations.addHandler(PushServiceHandler(state))
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return PushServiceDouble(channel, state)
    }

    private init(_ channel: any Channel, _ state: NIOLockedValueBox<State>) {
        (self.channel, self.state) = (channel, state)
        port = channel.localAddress?.port ?? 0
    }

    var requests: [Request] { state.withLockedValue { $0.requests } }
    var connections: Int { state.withLockedValue { $0.connections } }
    /// The number of pieces sent so far in endless answers.
    var pieces: Int { state.withLockedValue { $0.pieces } }

    func stop() async { try? await channel.close() }
}

/// Handles one request.
private final class PushServiceHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let state: NIOLockedValueBox<PushServiceDouble.State>
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var isOpen = true

    init(_ state: NIOLockedValueBox<PushServiceDouble.State>) { self.state = state }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): (self.head, body) = (head, [])
        case .body(let piece): body += piece.readableBytesView
        case .end: answer(context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { isOpen = false }
    /// Ignore the error, because some tests disconnect during an answer.
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func answer(_ context: ChannelHandlerContext) {
        guard let head else { return }
        let isHTTP2 = context.channel.parent?.parent != nil
        let request = PushServiceDouble.Request(
            method: head.method.rawValue, uri: head.uri, headers: head.headers.map { ($0.name, $0.value) }, body: body,
            isHTTP2: isHTTP2, host: head.headers.first(name: "host"))
        let (number, respond) = state.withLockedValue { state in
            state.requests.append(request)
            return (state.requests.count - 1, state.respond)
        }
        switch respond(number, request) {
        case .silence: break
        case .answer(let status, let headers, let text):
            begin(context, status, headers + [("content-length", String(text.utf8.count))])
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        case .trickle(let status):
            begin(context, status, [])
            drip(context, size: 1, pause: .milliseconds(20))
        case .flood(let status):
            begin(context, status, [])
            drip(context, size: 16384, pause: .milliseconds(1))
        }
    }

    private func begin(_ context: ChannelHandlerContext, _ status: Int, _ headers: [(String, String)]) {
        let head = HTTPResponseHead(
            version: .http1_1, status: .init(statusCode: status), headers: HTTPHeaders(headers))
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    private func drip(_ context: ChannelHandlerContext, size: Int, pause: TimeAmount) {
        guard isOpen, context.channel.isActive else { return }
        state.withLockedValue { $0.pieces += 1 }
        let piece = ByteBuffer(repeating: UInt8(ascii: "x"), count: size)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece))), promise: nil)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: pause) { bound.value.0.drip(bound.value.1, size: size, pause: pause) }
    }
}

/// A server certificate, and the path of a file with the certificate authority that issued it.
struct TestCertificate {
    let certificate: NIOSSLCertificate
    let key: NIOSSLPrivateKey
    let authorities: String
    let directory: String

    init(_ names: [String]) throws {
        let authority = try LocalCertificateAuthority.makeAuthority(hostName: "push", now: Date())
        let server = try LocalCertificateAuthority.issue(names, by: authority, now: Date())
        certificate = try NIOSSLCertificate(
            bytes: Array(try server.certificate.serializeAsPEM().pemString.utf8), format: .pem)
        key = try NIOSSLPrivateKey(bytes: Array(server.key.pemRepresentation.utf8), format: .pem)
        directory = FileManager.default.temporaryDirectory.path + "/confab-push-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        authorities = directory + "/authority.pem"
        try authority.certificate.serializeAsPEM().pemString.write(
            toFile: authorities, atomically: true, encoding: .utf8)
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }
}
