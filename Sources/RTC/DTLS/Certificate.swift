import COpenSSL

/// The fingerprint of a certificate. Signaling carries it so that each side can authenticate its DTLS peer (RFC 8122 §5).
public struct Fingerprint: Hashable, Sendable {
    /// The accepted hash functions. RFC 8122 §5 lists others too, but those are weak.
    public enum Algorithm: String, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha384 = "sha-384"
        case sha512 = "sha-512"

        public var length: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }

        fileprivate var digest: OpaquePointer? {
            switch self {
            case .sha256: EVP_sha256()
            case .sha384: EVP_sha384()
            case .sha512: EVP_sha512()
            }
        }
    }

    public let algorithm: Algorithm
    public let bytes: [UInt8]

    /// Creates a fingerprint from its bytes.
    ///
    /// - Returns: nil if `bytes` does not have the algorithm's length.
    public init?(_ algorithm: Algorithm, _ bytes: [UInt8]) {
        guard bytes.count == algorithm.length else { return nil }
        (self.algorithm, self.bytes) = (algorithm, bytes)
    }

    /// Computes the fingerprint of an `X509`. Returns nil if OpenSSL fails.
    init?(_ algorithm: Algorithm, of certificate: OpaquePointer) {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let made = bytes.withUnsafeMutableBufferPointer {
            X509_digest(certificate, algorithm.digest, $0.baseAddress, &count)
        }
        guard made == 1, Int(count) == algorithm.length else { return nil }
        (self.algorithm, self.bytes) = (algorithm, Array(bytes.prefix(algorithm.length)))
    }

    /// Returns whether two fingerprints are equal. The comparison takes constant time.
    func matches(_ other: Fingerprint) -> Bool {
        guard algorithm == other.algorithm, bytes.count == other.bytes.count else { return false }
        return bytes.withUnsafeBytes { ours in
            other.bytes.withUnsafeBytes { CRYPTO_memcmp(ours.baseAddress, $0.baseAddress, ours.count) == 0 }
        }
    }
}

/// A self-signed certificate with a P-256 key, and the OpenSSL context that uses it for DTLS.
///
/// All peers of a process share one certificate. Signaling exchanges its fingerprint, so peers need not know the certificate in
/// advance.
///
/// Threads can share a certificate, because nothing changes after `make` and OpenSSL counts references atomically.
public final class DTLSCertificate: @unchecked Sendable {
    /// The maximum size of the peer's certificates. A self-signed certificate has 300 to 1500 bytes.
    static let maxCertificateBytes = 8192

    public let fingerprint: Fingerprint
    let context: OpaquePointer

    private init(fingerprint: Fingerprint, context: OpaquePointer) {
        (self.fingerprint, self.context) = (fingerprint, context)
    }

    deinit { SSL_CTX_free(context) }

    /// Creates a self-signed certificate with a new P-256 key.
    ///
    /// - Returns: nil if OpenSSL fails because memory or randomness is missing, or because its configuration forbids the curve.
    public static func make() -> DTLSCertificate? {
        guard let key = confab_p256_key() else { return nil }
        defer { EVP_PKEY_free(key) }
        guard let certificate = confab_self_signed(key) else { return nil }
        defer { X509_free(certificate) }
        guard let fingerprint = Fingerprint(.sha256, of: certificate),
            let context = confab_dtls_context(key, certificate, maxCertificateBytes, DTLSConnection.mtu)
        else { return nil }
        return DTLSCertificate(fingerprint: fingerprint, context: context)
    }
}
