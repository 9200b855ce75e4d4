import Crypto
import Wire

/// An API key and its secret. Anyone who has the secret can create sessions and tokens.
public struct Project: Sendable {
    public let apiKey: String
    let secret: SymmetricKey

    /// Minimum length of a secret in bytes: an HS256 key should be at least as long as the hash output (RFC 7518 §3.2).
    public static let shortestSecret = 32

    /// Creates a project, or returns `nil` if the key is not numeric or the secret is too short.
    public init?(apiKey: String, secret: String) {
        guard !apiKey.isEmpty, apiKey.utf8.count <= 32, apiKey.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            return nil
        }
        guard secret.utf8.count >= Self.shortestSecret else { return nil }
        self.init(apiKey: apiKey, key: SymmetricKey(data: Array(secret.utf8)))
    }

    /// Creates a project from a key and a secret that are known to be valid.
    init(apiKey: String, key: SymmetricKey) { (self.apiKey, secret) = (apiKey, key) }

    /// Returns random bytes as URL-safe text (base64url).
    public func randomText(bytes: Int, using generator: inout some RandomNumberGenerator) -> String {
        Base64URL.encode((0..<bytes).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    func authenticationCode(_ bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: secret))
    }
}

/// Compares two secrets. The time taken does not depend on where they differ. The length of a secret is not confidential.
func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (a, b) in zip(left, right) { difference |= a ^ b }
    return difference == 0
}
