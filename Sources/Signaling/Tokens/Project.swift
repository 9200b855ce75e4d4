import Crypto
import Wire

/// An API key and its secret: whoever holds the secret can make sessions and tokens.
public struct Project: Sendable {
    public let apiKey: String
    let secret: SymmetricKey

    /// The shortest secret accepted, in bytes: HS256's key should be as long as its output (RFC 7518 §3.2).
    public static let shortestSecret = 32

    /// `nil` when the key is not numeric or the secret is too short.
    public init?(apiKey: String, secret: String) {
        guard !apiKey.isEmpty, apiKey.utf8.count <= 32, apiKey.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            return nil
        }
        guard secret.utf8.count >= Self.shortestSecret else { return nil }
        self.init(apiKey: apiKey, key: SymmetricKey(data: Array(secret.utf8)))
    }

    /// For a key and a secret that are as they must be.
    init(apiKey: String, key: SymmetricKey) { (self.apiKey, secret) = (apiKey, key) }

    /// Nobody can guess it, and it is safe in an address: base64url.
    public func randomText(bytes: Int, using generator: inout some RandomNumberGenerator) -> String {
        Base64URL.encode((0..<bytes).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    func authenticationCode(_ bytes: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: secret))
    }
}

/// Compares without leaking through time where two secrets differ. Their length is no secret.
func constantTimeEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (a, b) in zip(left, right) { difference |= a ^ b }
    return difference == 0
}
