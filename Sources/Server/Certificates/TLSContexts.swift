import NIOCore
import NIOSSL

/// What a new connection can use for TLS.
struct TLSContexts: Sendable {
    /// The context with the server's certificate.
    var server: NIOSSLContext
    /// The contexts for an authority that verifies domains (RFC 8737), by domain. Empty except while an order is in progress.
    var challenges: [String: NIOSSLContext] = [:]

    /// The context for a connection that begins with this message.
    func context(for hello: ClientHello) -> (context: NIOSSLContext, purpose: Purpose) {
        if let challenge = hello.challengeDomain.flatMap({ challenges[$0] }) { return (challenge, .verification) }
        return (server, .service)
    }

    /// What happens on a connection after the handshake.
    enum Purpose {
        /// The server serves the client.
        case service
        /// The connection ends. The handshake was all that the authority needs.
        case verification
    }

    /// Makes the context that presents a challenge's certificate.
    ///
    /// - Throws: an error if the certificate or its key cannot be used.
    static func verification(_ identity: SigningIdentity) throws -> NIOSSLContext {
        let pem = try identity.pem()
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(pem).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: pem, format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = [ClientHello.challengeProtocol]
        // How long the connection may stay open after the server has ended it.
        configuration.shutdownTimeout = .seconds(1)
        return try NIOSSLContext(configuration: configuration)
    }
}
