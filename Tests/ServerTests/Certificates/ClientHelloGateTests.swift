import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import SwiftASN1
import Testing
import X509

@testable import Server

@Suite("TLS connections while a challenge is pending", .ownThreads, .timeLimit(.minutes(3)))
struct ClientHelloGateTests {
    private static let challenge = ACMEChallenge(
        domain: "chat.example.org", token: "token", answer: "token.thumbprint")

    /// Returns what it receives.
    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(wrapOutboundOut(unwrapInboundIn(data)), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Writes before the client has sent anything, and closes the connection when it was written or refused.
    private final class Hasty: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelActive(context: ChannelHandlerContext) {
            let written = context.eventLoop.makePromise(of: Void.self)
            let channel = context.channel
            written.futureResult.whenComplete { _ in channel.close(promise: nil) }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "secret")), promise: written)
        }
    }

    /// A server whose connections all have the gate.
    private static func open(
        _ certificates: TLSCertificates, _ makeHandler: @escaping @Sendable () -> any ChannelHandler = { Echo() }
    ) async throws -> (channel: any Channel, port: Int) {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(ClientHelloGate(certificates.contexts))
                    try pipeline.addHandler(makeHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return (channel, try #require(channel.localAddress?.port))
    }

    private static func certificates(_ files: CertificateFiles) throws -> TLSCertificates {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        return try #require(try TLSCertificates(files.configuration, nil, logger))
    }

    /// Sends bytes without TLS, and returns what arrives until the server closes the connection.
    private static func exchange(_ text: String, port: Int) async throws -> String {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            var received = ""
            do {
                if !text.isEmpty { try await outbound.write(ByteBuffer(string: text)) }
                for try await part in inbound { received += String(buffer: part) }
            } catch {
                // The server has closed the connection while it was written to.
            }
            return received
        }
    }

    @Test("browsers get the server's certificate and are served, however their first message arrives")
    func browsers() async throws {
        let pair = try CertificateFiles.Pair()
        let files = try CertificateFiles(pair)
        let certificates = try Self.certificates(files)
        try certificates.present(Self.challenge)
        #expect(certificates.contexts.challenges.count == 1)
        let server = try await Self.open(certificates)
        let own = try pair.parsed.toDERBytes()
        let offers: [(name: String?, protocols: [String])] = [
            (nil, []), ("chat.example.org", []), ("chat.example.org", ["http/1.1"]),
            ("chat.example.org", ["acme-tls/1", "http/1.1"]), ("other.example.org", ["acme-tls/1"]),
            (nil, ["acme-tls/1"]),
        ]
        for offer in offers {
            for sendsSingleBytes in [false, true] {
                let visit = try await TLSVisit(
                    port: server.port, name: offer.name, protocols: offer.protocols, text: "hello",
                    sendsSingleBytes: sendsSingleBytes)
                #expect(visit.certificate == own && visit.chosenProtocol == nil, "\(offer)")
                #expect(visit.received == "hello", "\(offer)")
            }
        }
        try await server.channel.close()
    }

    @Test("an authority gets the challenge's certificate, and the connection ends after the handshake")
    func authority() async throws {
        let files = try CertificateFiles()
        let certificates = try Self.certificates(files)
        let other = ACMEChallenge(domain: "www.example.org", token: "other", answer: "other.thumbprint")
        for challenge in [Self.challenge, other] { try certificates.present(challenge) }
        let server = try await Self.open(certificates)
        for challenge in [Self.challenge, other] {
            for sendsSingleBytes in [false, true] {
                let visit = try await TLSVisit(
                    port: server.port, name: challenge.domain, protocols: ["acme-tls/1"],
                    sendsSingleBytes: sendsSingleBytes)
                #expect(visit.chosenProtocol == "acme-tls/1" && visit.received == "")
                let certificate = try Certificate(derEncoded: visit.certificate)
                let names = try #require(try certificate.extensions.subjectAlternativeNames)
                #expect(Array(names) == [.dnsName(challenge.domain)])
                let expected = try ChallengeCertificate.make(for: challenge, now: Date()).certificate
                let identifier = ChallengeCertificate.identifier
                #expect(certificate.extensions[oid: identifier] == expected.extensions[oid: identifier])
            }
        }
        certificates.withdrawChallenges()
        let late = try await TLSVisit(
            port: server.port, name: "chat.example.org", protocols: ["acme-tls/1"], text: "hello")
        #expect(late.chosenProtocol == nil && late.received == "hello")
        try await server.channel.close()
    }

    @Test("a new certificate is used while a challenge is pending, and the challenge stays")
    func reload() throws {
        let files = try CertificateFiles()
        let certificates = try Self.certificates(files)
        try certificates.present(Self.challenge)
        let before = certificates.contexts
        let new = try CertificateFiles.Pair()
        try files.write(certificate: new.certificatePEM)
        try files.write(key: new.keyPEM)
        #expect(certificates.reload() == .replaced)
        let after = certificates.contexts
        #expect(after.server !== before.server)
        #expect(after.challenges["chat.example.org"] === before.challenges["chat.example.org"])
    }

    @Test("bytes that are not TLS reach no handler, and nothing is sent without encryption")
    func plain() async throws {
        let files = try CertificateFiles()
        let certificates = try Self.certificates(files)
        try certificates.present(Self.challenge)
        let server = try await Self.open(certificates)
        let received = try await Self.exchange("GET / HTTP/1.1\r\nHost: chat.example.org\r\n\r\n", port: server.port)
        #expect(!received.contains("GET"), "\(received)")
        try await server.channel.close()
        let hasty = try await Self.open(certificates) { Hasty() }
        #expect(try await Self.exchange("", port: hasty.port) == "")
        try await hasty.channel.close()
    }
}
