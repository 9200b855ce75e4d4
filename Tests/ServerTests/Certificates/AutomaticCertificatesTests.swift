import Crypto
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import SwiftASN1
import Synchronization
import TestSupport
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

    /// Waits until the authority has issued `count` certificates, before clients connect to see the last one. Polling with connections
    /// could exceed the server's limits, because the server waits a minute after a failed attempt.
    private static func waitForCertificates(_ count: Int, _ log: LogLines) async throws {
        try await eventually {
            log.all.count { $0.contains("issued a certificate") } >= count ? nil : "\(log.all.suffix(5))"
        }
    }

    /// Connects until the certificate is from Pebble and is not `old`.
    private static func connect(
        _ server: TestServer, otherThan old: Certificate? = nil, _ log: LogLines
    ) async throws -> (client: SocketClient, certificate: Certificate) {
        try await waitForCertificates(old == nil ? 1 : 2, log)
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
            #expect(log.all.count { $0.contains("issued a certificate") } == 2, "\(log.all.suffix(5))")
            #expect(!log.contains("PRIVATE KEY"))
        }
    }

    /// Two people who chat in the session of a match.
    private struct Chat: Sendable {
        var ann: SocketClient
        var bob: SocketClient
        var joined: SessionNotice.Joined

        init(_ server: TestServer) async throws {
            let tls = try CertificateFiles.trustingContext()
            let ann = try await SocketClient.connect(port: server.port, tls: tls)
            let bob = try await SocketClient.connect(port: server.port, tls: tls)
            try await ann.greet()
            try await bob.greet()
            async let annMeets = ann.meet()
            async let bobMeets = bob.meet()
            let (first, second) = try await (annMeets, bobMeets)
            (self.ann, self.bob) = (ann, bob)
            joined = try await ann.join(first.publish)
            _ = try await bob.join(second.publish)
        }

        /// Checks that a message of one person reaches the other.
        func relay(_ text: String) async throws {
            try await ann.say(.session(.signal(.init(session: joined.session, type: "chat", data: text))))
            let heard = try await bob.hear(text) {
                if case .session(.signal(let signal)) = $0, signal.data == text { signal.from } else { nil }
            }
            #expect(heard == joined.connection.id)
        }
    }

    @Test("ten chats continue while the certificate is renewed")
    func tenChats() async throws {
        let pebble = try await RunningPebble()
        let log = LogLines()
        try await TestServer.run(logger: log.logger, { Self.configure(&$0, pebble, port: pebble.httpPort) }) { server in
            let (_, issued) = try await Self.connect(server, log)
            var chats: [Chat] = []
            for _ in 0..<10 { chats.append(try await Chat(server)) }
            for (index, chat) in chats.enumerated() { try await chat.relay("before \(index)") }
            try FileManager.default.removeItem(atPath: try Self.files(pebble, server.dataDirectory).certificatePath)
            _ = try await Self.connect(server, otherThan: issued, log)
            for (index, chat) in chats.enumerated() {
                try await chat.relay("after \(index)")
                for client in [chat.ann, chat.bob] {
                    #expect(await client.closeCode == nil)
                    let certificate = try #require(try await client.certificate)
                    #expect(try Certificate(derEncoded: certificate.toDERBytes()) == issued, "the first connection")
                }
            }
        }
    }

    /// The machine's clocks, which a test can set forward as after a sleep of the machine.
    private final class ShiftedClock: Sendable {
        private let shift = Mutex(Duration.zero)

        var source: ClockSource {
            ClockSource(
                wall: { ClockSource.system.wall() + self.shift.withLock { $0 } }, awake: ClockSource.system.awake,
                total: { ClockSource.system.total() + self.shift.withLock { $0 } })
        }

        func sleep(_ duration: Duration) { shift.withLock { $0 += duration } }
    }

    @Test("a stored certificate is renewed when its time has come, and a WebSocket stays open")
    func renewalByTime() async throws {
        let pebble = try await RunningPebble()
        let folder = NSTemporaryDirectory() + "confab-renewal-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = LogLines()
        let issued = try await TestServer.run(
            dataDirectory: folder, logger: log.logger, { Self.configure(&$0, pebble, port: pebble.httpPort) }
        ) { server in
            let (client, certificate) = try await Self.connect(server, log)
            try await client.close()
            return certificate
        }
        let clock = ShiftedClock()
        let lifetime = issued.notValidAfter.timeIntervalSince(issued.notValidBefore)
        try await TestServer.run(
            dataDirectory: folder, logger: log.logger, clock: clock.source,
            { Self.configure(&$0, pebble, port: pebble.httpPort) }
        ) { server in
            let (client, stored) = try await Self.connect(server, log)
            #expect(stored == issued)
            clock.sleep(.seconds(lifetime / 2))
            let (second, early) = try await Self.connect(server, log)
            #expect(early == issued, "it was renewed too early")
            clock.sleep(.seconds(lifetime / 4))
            let (third, renewed) = try await Self.connect(server, otherThan: issued, log)
            #expect(renewed.publicKey != issued.publicKey)
            for client in [client, second, third] {
                try await client.say(.roulette(.count))
                _ = try await client.hear("count") { if case .roulette(.count) = $0 { true } else { nil } }
                #expect(await client.closeCode == nil)
            }
        }
    }

    private static func files(_ pebble: RunningPebble, _ directory: String) throws -> ACMEFiles {
        try #require(ACMEFiles(configuration(pebble, directory)))
    }

    private static func configuration(_ pebble: RunningPebble, _ directory: String) -> ConfabConfiguration {
        var configuration = ConfabConfiguration()
        configure(&configuration, pebble, port: pebble.httpPort)
        configuration.dataDirectory = directory
        return configuration
    }

    @Test("the account gets a new key, with which the server gets its next certificate")
    func keyRotation() async throws {
        let pebble = try await RunningPebble()
        let log = LogLines()
        try await TestServer.run(logger: log.logger, { Self.configure(&$0, pebble, port: pebble.httpPort) }) { server in
            let (_, issued) = try await Self.connect(server, log)
            let files = try Self.files(pebble, server.dataDirectory)
            let old = try files.accountKey()
            let configuration = Self.configuration(pebble, server.dataDirectory)
            #expect(try await AccountKeyRotation.run(configuration) == "The account has a new key.")
            let new = try files.accountKey()
            #expect(new.rawRepresentation != old.rawRepresentation)
            #expect(!FileManager.default.fileExists(atPath: files.nextAccountPath) && files.exposures() == [])
            try FileManager.default.removeItem(atPath: files.certificatePath)
            _ = try await Self.connect(server, otherThan: issued, log)
            #expect(try files.accountKey().rawRepresentation == new.rawRepresentation)
            #expect(!log.contains("No certificate."), "\(log.all.suffix(5))")
        }
    }

    @Test("a server is verified on its HTTPS port, gets a certificate and another one, and serves others meanwhile")
    func verificationOverTLS() async throws {
        let pebble = try await RunningPebble()
        let log = LogLines()
        try await TestServer.run(
            logger: log.logger,
            {
                Self.configure(&$0, pebble, port: pebble.httpPort)
                ($0.acme.challenge, $0.port) = (.tls, pebble.tlsPort)
            }
        ) { server in
            let (first, issued) = try await Self.connect(server, log)
            let names = try #require(try issued.extensions.subjectAlternativeNames)
            #expect(Set(names) == [.dnsName("chat.example.org"), .dnsName("www.example.org")])
            let files = try Self.files(pebble, server.dataDirectory)
            try FileManager.default.removeItem(atPath: files.certificatePath)
            let (second, renewed) = try await Self.connect(server, otherThan: issued, log)
            #expect(renewed.publicKey != issued.publicKey)
            for client in [first, second] {
                try await client.say(.roulette(.count))
                _ = try await client.hear("count") { if case .roulette(.count) = $0 { true } else { nil } }
                #expect(await client.closeCode == nil)
            }
            #expect(!log.contains("No certificate."), "\(log.all.suffix(5))")
        }
    }

    @Test("while an authority verifies a domain over TLS, it gets a special certificate, and clients are served")
    func pendingOverTLS() async throws {
        let pebble = try await RunningPebble()
        // Takes the place of the server for the authority, and does not answer. So the challenge stays pending.
        let (connections, connected) = AsyncStream<Void>.makeStream()
        let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                connected.yield()
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: pebble.tlsPort).get()
        let log = LogLines()
        try await TestServer.run(
            logger: log.logger,
            {
                Self.configure(&$0, pebble, port: pebble.httpPort)
                ($0.acme.challenge, $0.acme.domains) = (.tls, ["chat.example.org"])
            }
        ) { server in
            for await _ in connections { break }
            let visit = try await TLSVisit(port: server.port, name: "chat.example.org", protocols: ["acme-tls/1"])
            #expect(visit.chosenProtocol == "acme-tls/1" && visit.received == "", "\(log.all.suffix(5))")
            let special = try Certificate(derEncoded: visit.certificate)
            #expect(special.extensions[oid: ChallengeCertificate.identifier]?.critical == true)
            let (client, certificate) = try await Self.connect(server)
            #expect(certificate.extensions[oid: ChallengeCertificate.identifier] == nil)
            try await client.close()
        }
        try await silent.close()
        withExtendedLifetime(pebble) {}
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
        let port = try TestPorts.next()
        try await TestServer.run(logger: log.logger, { Self.configure(&$0, pebble, port: port) }) { server in
            try await eventually { log.contains("could not verify the domain") ? nil : "\(log.all.suffix(5))" }
            let line = try #require(log.all.first { $0.contains("could not verify the domain") })
            #expect(line.contains("The authority says:") && line.contains("port 80"), "\(line)")
            #expect(line.contains("challenge_failed"), "\(line)")
            let failure = try #require(try Self.files(pebble, server.dataDirectory).failure())
            #expect(failure.event.contains("The authority says:"), "\(failure)")
            // What `confab doctor` says about it.
            let machine = MachineProbe(configuration: Self.configuration(pebble, server.dataDirectory))
            let finding = try #require(machine.certificateFiles(now: Timestamp(milliseconds: 0)))
            #expect(finding.outcome == .failed && finding.seen.contains(failure.event), "\(finding)")
            #expect(finding.fix?.contains("port 80") == true, "\(finding)")
            let (client, certificate) = try await Self.connect(server)
            #expect(certificate.notValidAfter <= Date(), "nobody should trust this certificate")
            try await client.close()
        }
    }

    @Test("an authority that cannot be reached is logged, and the server keeps running")
    func down() async throws {
        let log = LogLines()
        let port = try TestPorts.next()
        let authority = try RefusingPort()
        try await TestServer.run(
            logger: log.logger,
            {
                $0.acme.domains = ["chat.example.org"]
                $0.acme.directory = "https://127.0.0.1:\(authority.number)/dir"
                $0.acme.agreeToTerms = true
                $0.acme.httpPort = port
            }
        ) { server in
            try await eventually { log.contains("The authority does not respond") ? nil : "\(log.all.suffix(5))" }
            let (client, _) = try await Self.connect(server)
            try await client.close()
        }
        withExtendedLifetime(authority) {}
    }
}
