import CoreMetrics
import Foundation
import Metrics
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import Server

@Suite("HTTPS that Confab handles", .ownThreads, .timeLimit(.minutes(3))) struct StrictTransportTests {
    /// Returns the head of the response.
    private static func ask(_ path: String, port: Int) async throws -> String {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        let context = try NIOSSLContext(configuration: configuration)
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = try NIOSSLClientHandler(context: context, serverHostname: nil)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let request = "GET \(path) HTTP/1.1\r\nHost: chat.example.org\r\nConnection: close\r\n\r\n"
            try await outbound.write(ByteBuffer(string: request))
            var text = ""
            for try await part in inbound {
                text += String(buffer: part)
                if let end = text.range(of: "\r\n\r\n") { return String(text[..<end.lowerBound]) }
            }
            return text
        }
    }

    @Test("pages, answers and refusals tell browsers to use only HTTPS, once each")
    func header() async throws {
        let files = try CertificateFiles()
        try await TestServer.run({
            $0.tls.certificate = files.certificate
            $0.tls.privateKey = files.key
        }) { server in
            for path in ["/", "/health", "/ready", "/v1/socket", "/socket.io/1/", "/whip/none", "/no/such/page"] {
                let head = try await Self.ask(path, port: server.port)
                #expect(head.hasPrefix("HTTP/1.1 "), "\(path)")
                let lines = head.components(separatedBy: "\r\n").filter {
                    $0.lowercased().hasPrefix("strict-transport-security:")
                }
                #expect(lines.count == 1 && lines[0].hasSuffix(" max-age=31536000"), "\(path): \(head)")
            }
        }
    }

    @Test("the header is not sent without HTTPS, with --lan, or if it is turned off")
    func configuration() async throws {
        var configuration = ConfabConfiguration()
        #expect(configuration.strictTransport == nil)
        configuration.tls.certificate = "certificate.pem"
        #expect(configuration.strictTransport == "max-age=31536000")
        configuration.lan = true
        #expect(configuration.strictTransport == nil)
        configuration.lan = false
        configuration.tls.hsts = false
        #expect(configuration.strictTransport == nil)
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let answer = try await place.ask("GET", "/")
            #expect(answer["Strict-Transport-Security"] == nil)
            let policy = try #require(answer["Content-Security-Policy"])
            #expect(policy.contains("connect-src 'self';"), "connections to other servers are not needed")
        }
    }

    @Test("the metrics say when the certificate expires")
    func expiry() throws {
        let files = try CertificateFiles()
        let certificate = try #require(try NIOSSLCertificate.fromPEMFile(files.certificate).first)
        let prometheus = PrometheusMetrics()
        withMetricsFactory(prometheus) { OperatingMetrics.record(expiryOf: certificate) }
        let line = "confab_tls_certificate_expiry_timestamp_seconds \(certificate.notValidAfter)\n"
        #expect(prometheus.exposition().contains(line))
        #expect(Double(certificate.notValidAfter) > Date().timeIntervalSince1970)
    }
}
