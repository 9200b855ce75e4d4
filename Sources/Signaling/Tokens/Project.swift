import Crypto
import CryptoExtras
import Wire

/// An API key, the secret that signs tokens, and the key that creates IDs. Anyone who has the secret can create tokens.
///
/// The secret can be rotated: for a while, tokens signed by the previous secret are also accepted. IDs do not depend on
/// the secret, so they survive a rotation.
public struct Project: Sendable, Equatable {
    public let apiKey: String
    /// The key that creates the IDs. It stays the same when the secret is rotated.
    public let serverKey: ServerKey
    private let signingKey: SymmetricKey
    private let previous: Previous?
    /// The application whose private key also signs tokens, as the vendor's newer SDKs do; nil if there is none.
    public var application: Application?
    /// Whether the project's server is notified of events in its sessions.
    public var hasWebhook = false
    /// The maximum number of connections in the project's sessions. Nil if only `Rules.connectionsPerProject` limits it.
    public var maxConnections: Int?

    /// Minimum length of a secret in bytes, the same as that of a server key.
    public static let shortestSecret = ServerKey.shortest

    /// The secret before the last rotation.
    public struct PreviousSecret: Sendable, Equatable {
        public var secret: String
        /// When the overlap ends. After that, tokens signed by this secret are refused.
        public var acceptedUntil: Timestamp

        public init(secret: String, acceptedUntil: Timestamp) {
            (self.secret, self.acceptedUntil) = (secret, acceptedUntil)
        }
    }

    /// The previous secret as a key.
    private struct Previous: Sendable, Equatable {
        let key: SymmetricKey
        let acceptedUntil: Timestamp
    }

    /// Creates a project. Returns `nil` if the API key does not consist of 1 to 32 digits, or if a secret is too
    /// short.
    ///
    /// - Parameter serverKey: the key that creates the IDs; nil if the secret creates them.
    public init?(
        apiKey: String, secret: String, serverKey: ServerKey? = nil, previous: PreviousSecret? = nil
    ) {
        guard !apiKey.isEmpty, apiKey.utf8.count <= 32, apiKey.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            return nil
        }
        guard secret.utf8.count >= Self.shortestSecret,
            previous.map({ $0.secret.utf8.count >= Self.shortestSecret }) ?? true
        else { return nil }
        let key = SymmetricKey(data: Array(secret.utf8))
        self.apiKey = apiKey
        self.serverKey = serverKey ?? ServerKey(key: key)
        signingKey = key
        self.previous = previous.map {
            Previous(key: SymmetricKey(data: Array($0.secret.utf8)), acceptedUntil: $0.acceptedUntil)
        }
    }

    /// An application of a project: its ID, and the public key with which its tokens (RS256) are verified.
    public struct Application: Sendable, Equatable {
        /// The ID in the claim `application_id`.
        public let id: String
        /// The public key in PEM format.
        public let publicKey: String
        private let key: _RSA.Signing.PublicKey

        /// Returns nil unless the text is an RSA public key of at least 2,048 bits in PEM format.
        public init?(id: String, publicKey: String) {
            guard publicKey.utf8.count <= 8192, let key = try? _RSA.Signing.PublicKey(pemRepresentation: publicKey)
            else { return nil }
            (self.id, self.publicKey, self.key) = (id, publicKey, key)
        }

        public static func == (left: Self, right: Self) -> Bool {
            (left.id, left.publicKey) == (right.id, right.publicKey)
        }

        func check(_ signature: [UInt8], of bytes: [UInt8]) throws(WireError) {
            let signature = _RSA.Signing.RSASignature(rawRepresentation: signature)
            guard key.isValidSignature(signature, for: SHA256.hash(data: bytes), padding: .insecurePKCS1v1_5) else {
                throw WireError(
                    .tokenSignature,
                    "The token was not signed with the private key of this project's application.")
            }
        }
    }

    /// Creates a project from a key and a secret that are known to be valid.
    init(apiKey: String, key: SymmetricKey) {
        (self.apiKey, serverKey, signingKey, previous) = (apiKey, ServerKey(key: key), key, nil)
    }

    /// Returns random bytes as URL-safe text (base64url).
    public func randomText(bytes: Int, using generator: inout some RandomNumberGenerator) -> String {
        Base64URL.encode((0..<bytes).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    // MARK: Signatures of tokens

    func signature(of bytes: [UInt8]) -> [UInt8] { Self.code(of: bytes, signingKey) }

    /// Throws if the signature is invalid. Accepts signatures made with the secret, and those made with the previous
    /// secret until the overlap ends.
    func check(_ signature: [UInt8], of bytes: [UInt8], now: Timestamp) throws(WireError) {
        try check(signature, of: bytes, now: now, Self.code)
    }

    /// Throws if the signature of a T1 token is invalid. Like `check`, accepts signatures made with the previous
    /// secret until the overlap ends.
    func checkT1(_ signature: [UInt8], of bytes: [UInt8], now: Timestamp) throws(WireError) {
        try check(signature, of: bytes, now: now, Self.codeOfT1)
    }

    /// Returns the signature of a T1 token. Only tests and fuzz targets create such tokens.
    func signatureOfT1(_ bytes: [UInt8]) -> [UInt8] { Self.codeOfT1(of: bytes, signingKey) }

    private static func codeOfT1(of bytes: [UInt8], _ key: SymmetricKey) -> [UInt8] {
        Array(HMAC<Insecure.SHA1>.authenticationCode(for: bytes, using: key))
    }

    private func check(
        _ signature: [UInt8], of bytes: [UInt8], now: Timestamp, _ code: ([UInt8], SymmetricKey) -> [UInt8]
    ) throws(WireError) {
        if constantTimeEquals(code(bytes, signingKey), signature) { return }
        guard let previous, constantTimeEquals(code(bytes, previous.key), signature) else {
            throw WireError(
                .tokenSignature, "The token was not signed with this project's API secret. Sign it with that secret.")
        }
        guard now < previous.acceptedUntil else {
            throw WireError(
                .tokenSignature,
                "The token was signed with a secret that has been replaced. Get a token signed with the new secret.")
        }
    }

    private static func code(of bytes: [UInt8], _ key: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: key))
    }
}

extension Project: CustomStringConvertible, CustomReflectable {
    /// Omits the keys, so that they are not printed by accident.
    public var description: String { "project \(apiKey)" }
    public var customMirror: Mirror { Mirror(self, children: ["apiKey": apiKey]) }
}

/// Returns whether two secrets are equal. The time taken does not depend on where they differ. It may reveal whether
/// their lengths are equal, because the length of a secret is not confidential.
package func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (a, b) in zip(left, right) { difference |= a ^ b }
    return difference == 0
}
