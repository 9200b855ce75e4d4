import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import SwiftASN1
import Testing
import Wire
import X509

@testable import Server

/// A complete server with another implementation of ACME.
@Suite(
    "Certificates from Pebble", .ownThreads, .timeLimit(.minutes(3)),
    .enabled(if: RunningPebble.isInstalled, "pebble is not installed, so the server is not tested with it."))
struct AutomaticCertificatesTests {
    private static func configure(_ configuration: inout ConfabConfiguration, _ pebble: RunningPebble, port: Int) {
        configuration.acme.domains = ["chat.example.org", "www.example.org"]
        configuration.acme.directory = pebble.directoryURL
        configuration.acme.agreeToTerms = true
        configuration.acme.email = "admin@example.org"
        configuration.acme.httpPort = port
        configuration.acme.authorities = pebble.authorities
        configuration.tls.checkInterval = .milliseconds(20)
    }

    private static func connect(_ server: TestServer) async throws -> (client: SocketClient, certificate: Certificate) {
        let client = try await SocketClient.connect(port: server.port, tls: try CertificateFiles.trustingContext())
        try await client.greet()
        let certificate = try #require(try await client.certificate)
        return (client, try Certificate(derEncoded: try certificate.toDERBytes()))
    }

    /// Connects until the certificate is from Pebble and is not `old`.
    private static func connect(
        _ server: TestServer, otherThan old: Certificate? = nil, _ log: LogLines
    ) async throws -> (client: SocketClient, certificate: Certificate) {
        var found: (client: SocketClient, certificate: Certificate)?
        try await eventually {
            let (client, certificate) = try await connect(server)
            if "\(certificate.issuer)".contains("Pebble"), certificate != old {
                found = (client, certificate)
                return nil
            }
            try await client.close()
            return "no new certificate: \(log.all.suffix(5))"
        }
        return try #require(found)
    }

    /// Returns all that a connection receives until the server closes it.
    private static func get(_ path: String, port: Int) async throws -> String {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: www.example.org\r\n\r\n"))
            var text = ""
            for try await part in inbound { text += String(buffer: part) }
            return text
        }
    }

    @Test("a server gets a certificate and another one, and a WebSocket stays open")
    func renewal() async throws {
        let pebble = try await RunningPebble()
        let log = LogLines()
        try await TestServer.run(logger: log.logger, { Self.configure(&$0, pebble, port: pebble.httpPort) }) { server in
            let (first, issued) = try await Self.connect(server, log)
            let names = try #require(try issued.extensions.subjectAlternativeNames)
            #expect(Set(names) == [.dnsName("chat.example.org"), .dnsName("www.example.org")])
            var configuration = ConfabConfiguration()
            Self.configure(&configuration, pebble, port: pebble.httpPort)
            configuration.dataDirectory = server.dataDirectory
            let files = try #require(ACMEFiles(configuration))
            for path in [files.certificatePath, files.accountPath] {
                let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
                #expect(mode?.intValue == 0o600, "\(path)")
            }
            let account = try Data(contentsOf: URL(fileURLWithPath: files.accountPath))
            try FileManager.default.removeItem(atPath: files.certificatePath)
            let (second, renewed) = try await Self.connect(server, otherThan: issued, log)
            #expect(renewed.publicKey != issued.publicKey)
            #expect(try Data(contentsOf: URL(fileURLWithPath: files.accountPath)) == account)
            for client in [first, second] {
                try await client.say(.roulette(.count))
                _ = try await client.hear("count") { if case .roulette(.count) = $0 { true } else { nil } }
                #expect(await client.closeCode == nil)
            }
            try await eventually {
                log.all.count { $0.contains("issued a certificate") } == 2 ? nil : "\(log.all.suffix(5))"
            }
            #expect(!log.contains("PRIVATE KEY"))
        }
    }

    @Test("plain HTTP leads to HTTPS")
    func redirect() async throws {
        let pebble = try await RunningPebble()
        let log = LogLines()
        try await TestServer.run(logger: log.logger, { Self.configure(&$0, pebble, port: pebble.httpPort) }) { server in
            _ = try await Self.connect(server, log)
            let redirect = try await Self.get("/?guest=1", port: pebble.httpPort)
            #expect(redirect.hasPrefix("HTTP/1.1 308 "), "\(redirect)")
            #expect(redirect.contains("https://www.example.org") && redirect.contains("/?guest=1\r\n"), "\(redirect)")
            let unknown = try await Self.get(ACMEChallenge.path + "unknown", port: pebble.httpPort)
            #expect(unknown.hasPrefix("HTTP/1.1 404 "), "\(unknown)")
        }
    }

    @Test("a domain that does not lead here is logged with the authority's sentence, and the server keeps running")
    func wrongPort() async throws {
        let pebble = try await RunningPebble()
        let log = LogLines()
        let port = try await RunningPebble.freePort()
        try await TestServer.run(logger: log.logger, { Self.configure(&$0, pebble, port: port) }) { server in
            try await eventually { log.contains("could not verify the domain") ? nil : "\(log.all.suffix(5))" }
            let line = try #require(log.all.first { $0.contains("could not verify the domain") })
            #expect(line.contains("The authority says:") && line.contains("port 80"), "\(line)")
            #expect(line.contains("challenge_failed"), "\(line)")
            let (client, certificate) = try await Self.connect(server)
            #expect(certificate.notValidAfter <= Date(), "nobody should trust this certificate")
            try await client.close()
        }
    }

    @Test("an authority that cannot be reached is logged, and the server keeps running")
    func down() async throws {
        let log = LogLines()
        let port = try await RunningPebble.freePort()
        let free = try await RunningPebble.freePort()
        try await TestServer.run(
            logger: log.logger,
            {
                $0.acme.domains = ["chat.example.org"]
                $0.acme.directory = "https://127.0.0.1:\(free)/dir"
                $0.acme.agreeToTerms = true
                $0.acme.httpPort = port
            }
        ) { server in
            try await eventually { log.contains("The authority does not respond") ? nil : "\(log.all.suffix(5))" }
            let (client, _) = try await Self.connect(server)
            try await client.close()
        }
    }
}
