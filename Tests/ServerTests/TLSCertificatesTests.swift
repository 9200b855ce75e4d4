import CoreMetrics
import Foundation
import Logging
import Metrics
import NIOCore
import NIOSSL
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

@Suite("Replacing the certificate", .ownThreads, .timeLimit(.minutes(3))) struct TLSCertificatesTests {
    /// A log that keeps the messages of warnings.
    private struct Warnings: LogHandler {
        final class Messages: Sendable {
            private let messages = Mutex<[String]>([])
            var all: [String] { messages.withLock { $0 } }
            func add(_ message: String) { messages.withLock { $0.append(message) } }
        }

        let messages: Messages
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info
        subscript(metadataKey key: String) -> Logger.MetadataValue? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if event.level == .warning { messages.add("\(event.message) \(event.metadata ?? [:])") }
        }

        static func logger() -> (Logger, Messages) {
            let messages = Messages()
            return (Logger(label: "test") { _ in Warnings(messages: messages) }, messages)
        }
    }

    private static func refused(_ outcome: TLSCertificates.Outcome) -> Bool {
        if case .refused = outcome { true } else { false }
    }

    @Test("a new pair of files gives a new context, and the metric follows")
    func replaced() throws {
        let (old, new) = (try CertificateFiles.Pair(age: 86400), try CertificateFiles.Pair())
        let files = try CertificateFiles(old)
        let (logger, warnings) = Warnings.logger()
        let prometheus = PrometheusMetrics()
        try withMetricsFactory(prometheus) {
            let certificates = try #require(try TLSCertificates(files.configuration, nil, logger))
            let first = certificates.contexts.server
            #expect(certificates.reload() == .unchanged)
            #expect(certificates.contexts.server === first)
            try files.write(certificate: new.certificatePEM)
            try files.write(key: new.keyPEM)
            #expect(certificates.reload() == .replaced)
            #expect(certificates.contexts.server !== first)
            #expect(certificates.reload() == .unchanged)
        }
        let expiry = try new.parsed.notValidAfter
        #expect(try expiry != old.parsed.notValidAfter)
        #expect(
            prometheus.exposition().contains("confab_tls_certificate_expiry_timestamp_seconds \(expiry)\n"))
        #expect(warnings.all == [])
    }

    @Test("a pair that cannot be used changes nothing, and is logged once until it changes")
    func broken() throws {
        let new = try CertificateFiles.Pair()
        let files = try CertificateFiles()
        let (logger, warnings) = Warnings.logger()
        let certificates = try #require(try TLSCertificates(files.configuration, nil, logger))
        let first = certificates.contexts.server
        let half = String(new.certificatePEM.prefix(new.certificatePEM.count / 2))
        for (number, text) in [new.certificatePEM, half, "", "no certificate"].enumerated() {
            try files.write(certificate: text)
            for _ in 0..<3 { #expect(Self.refused(certificates.reload()), "text \(number)") }
            #expect(certificates.contexts.server === first)
        }
        try FileManager.default.removeItem(atPath: files.certificate)
        for _ in 0..<3 { #expect(Self.refused(certificates.reload())) }
        #expect(!warnings.all.isEmpty && warnings.all.count <= 5, "\(warnings.all)")
        for warning in warnings.all {
            #expect(warning.contains("tls.privateKey") && !warning.contains("PRIVATE KEY"), "\(warning)")
        }
        try files.write(certificate: new.certificatePEM)
        try files.write(key: new.keyPEM)
        #expect(certificates.reload() == .replaced)
    }

    @Test("a server does not start with a key of another certificate")
    func startup() throws {
        let files = try CertificateFiles()
        try files.write(key: try CertificateFiles.Pair().keyPEM)
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        #expect(throws: (any Error).self) { try TLSCertificates(files.configuration, nil, logger) }
        #expect(try TLSCertificates(ConfabConfiguration(), nil, logger) == nil)
    }

    /// Asks a question on each connection and waits for the answers.
    private static func talk(_ clients: [SocketClient]) async throws {
        for client in clients {
            try await client.say(.roulette(.count))
            _ = try await client.hear("count") { if case .roulette(.count) = $0 { true } else { nil } }
        }
    }

    @Test("ten WebSockets go on while the certificate is replaced, and an eleventh sees the new one")
    func connections() async throws {
        let (old, new) = (try CertificateFiles.Pair(), try CertificateFiles.Pair())
        let files = try CertificateFiles(old)
        let tls = try CertificateFiles.trustingContext()
        try await TestServer.run({
            ($0.tls.certificate, $0.tls.privateKey) = (files.certificate, files.key)
            $0.tls.checkInterval = .milliseconds(20)
        }) { server in
            func connect() async throws -> (SocketClient, NIOSSLCertificate?) {
                let client = try await SocketClient.connect(port: server.port, tls: tls)
                try await client.greet()
                return (client, try await client.certificate)
            }
            var clients: [SocketClient] = []
            for _ in 0..<10 {
                let (client, certificate) = try await connect()
                #expect(try certificate == old.parsed)
                clients.append(client)
            }
            try await Self.talk(clients)
            // The key does not belong to the certificate yet, so the former pair stays.
            try files.write(certificate: new.certificatePEM)
            try await Self.talk(clients)
            let (between, certificate) = try await connect()
            #expect(try certificate == old.parsed)
            try files.write(key: new.keyPEM)
            try await eventually {
                try await Self.talk(clients)
                let (eleventh, seen) = try await connect()
                try await eleventh.close()
                return try seen == new.parsed ? nil : "new connections still get the old certificate"
            }
            try files.write(key: "half a key")
            let (last, seen) = try await connect()
            #expect(try seen == new.parsed)
            try await Self.talk(clients + [between, last])
            for client in clients { #expect(await client.closeCode == nil) }
        }
    }
}
