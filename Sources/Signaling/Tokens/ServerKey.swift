import Crypto

/// The key that creates session IDs, identity secrets and public person IDs.
///
/// All of these are verified by computing them again instead of being stored, so the key must never change. With
/// another key, every session ID would be invalid and every anonymous identity would be refused.
public struct ServerKey: Sendable, Equatable {
    private let key: SymmetricKey
    /// The code of nothing, to be continued. It has hashed the key already.
    private let begun: HMAC<SHA256>

    /// Minimum length in bytes: an HS256 key should be at least as long as the hash output (RFC 7518 §3.2).
    public static let shortest = 32

    /// Creates a key, or returns `nil` if there are too few bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count >= Self.shortest else { return nil }
        self.init(key: SymmetricKey(data: bytes))
    }

    init(key: SymmetricKey) { (self.key, begun) = (key, HMAC(key: key)) }

    public static func == (left: ServerKey, right: ServerKey) -> Bool { left.key == right.key }

    func authenticationCode(_ bytes: [UInt8]) -> [UInt8] {
        var code = begun
        code.update(data: bytes)
        return Array(code.finalize())
    }
}

extension ServerKey: CustomStringConvertible, CustomReflectable {
    /// Omits the key, so that it is not printed by accident.
    public var description: String { "server key" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
