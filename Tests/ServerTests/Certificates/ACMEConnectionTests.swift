import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Testing

@testable import Server

@Suite("Requests to an ACME server", .ownThreads, .timeLimit(.minutes(3))) struct ACMEConnectionTests {
    /// Answers each request with a redirect and a body of 4 MiB.
    private final class HugeRedirect: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let headers: HTTPHeaders = ["Location": "/", "Replay-Nonce": "bm9uY2U"]
            let head = HTTPResponseHead(version: .http1_1, status: .found, headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            let piece = ByteBuffer(repeating: 0x78, count: 65536)
            for _ in 0..<64 { context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece))), promise: nil) }
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }

    @Test("redirects are not followed, little is read of a huge body, and only trusted authorities are used")
    func hostile() async throws {
        let folder = NSTemporaryDirectory() + "confab-acme-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let address = try #require(IPAddress("127.0.0.1"))
        let own = try LocalCertificateAuthority(dataDirectory: folder).material(addresses: [address], hostName: nil)
        let authorities = folder + "/trusted.pem"
        try Data(own.authorityPEM.utf8).write(to: URL(fileURLWithPath: authorities))
        let certificates = try NIOSSLCertificate.fromPEMBytes(Array(own.certificatePEM.utf8))
        let key = try NIOSSLPrivateKey(bytes: Array(own.privateKeyPEM.revealed.utf8), format: .pem)
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: certificates.map { .certificate($0) }, privateKey: .privateKey(key)))
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    try pipeline.configureHTTPServerPipeline()
                    try pipeline.addHandler(HugeRedirect())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let request = ACMERequest(method: .get, url: "https://127.0.0.1:\(port)/directory")

        let connection = ACMEConnection(authorities: authorities)
        let input = await connection.send(request)
        await connection.close()
        if case .received(let response) = input {
            #expect(response.status == 302 && response.headers["replay-nonce"] == "bm9uY2U")
            #expect(response.body.count == ACMEResponse.maxBodySize + 1 && response.object == nil)
        } else {
            Issue.record("there is no response: \(input)")
        }

        let other = ACMEConnection(authorities: nil)
        let refused = await other.send(request)
        await other.close()
        guard case .lost = refused else {
            Issue.record("an unknown authority is trusted: \(refused)")
            return
        }
        try await server.close()
    }
}
