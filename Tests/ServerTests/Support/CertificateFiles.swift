import Foundation
import NIOSSL
import Testing

@testable import Server

/// A certificate and its key as PEM files, removed with the value.
final class CertificateFiles: Sendable {
    /// A new certificate with its own key.
    struct Pair: Sendable {
        let certificatePEM: String
        let keyPEM: String

        /// - Parameter age: how long ago the certificate was issued. Certificates of different ages expire at different times.
        init(age: TimeInterval = 0) throws {
            let directory = NSTemporaryDirectory() + "confab-authority-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let address = try #require(IPAddress("127.0.0.1"))
            let made = try LocalCertificateAuthority(dataDirectory: directory)
                .material(addresses: [address], hostName: nil, now: Date() - age)
            (certificatePEM, keyPEM) = (made.certificatePEM, made.privateKeyPEM.revealed)
        }

        var parsed: NIOSSLCertificate {
            get throws { try #require(try NIOSSLCertificate.fromPEMBytes(Array(certificatePEM.utf8)).first) }
        }
    }

    let directory = NSTemporaryDirectory() + "confab-tls-\(UUID().uuidString)"
    var certificate: String { directory + "/certificate.pem" }
    var key: String { directory + "/key.pem" }

    init(_ pair: Pair? = nil) throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let pair = try pair ?? Pair()
        try write(certificate: pair.certificatePEM)
        try write(key: pair.keyPEM)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    func write(certificate text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: certificate)) }
    func write(key text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: key)) }

    /// A configuration with these files.
    var configuration: ConfabConfiguration {
        var configuration = ConfabConfiguration()
        (configuration.tls.certificate, configuration.tls.privateKey) = (certificate, key)
        return configuration
    }

    /// A client's context that trusts every certificate.
    static func trustingContext() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        return try NIOSSLContext(configuration: configuration)
    }
}
