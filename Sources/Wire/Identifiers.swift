/// A 128-bit identifier, written as 32 lowercase hexadecimal digits.
///
/// The fixed size keeps hashing cheap and database rows small. Ids are safe to log: if an id is made from an
/// application's user name, it contains only 16 bytes of a hash.
public protocol Identifier128: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The first 8 bytes, big-endian.
    var high: UInt64 { get }
    /// The last 8 bytes, big-endian.
    var low: UInt64 { get }
    /// Creates an identifier from its two halves.
    init(high: UInt64, low: UInt64)
}

extension Identifier128 {
    /// Returns an identifier of 128 random bits.
    public static func random(using generator: inout some RandomNumberGenerator) -> Self {
        Self(high: generator.next(), low: generator.next())
    }

    /// Parses exactly 32 lowercase hexadecimal digits; nil for any other text.
    public init?(_ text: some StringProtocol) {
        var words: (UInt64, UInt64) = (0, 0)
        var count = 0
        for byte in text.utf8 {
            let digit: UInt64
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = UInt64(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
            guard count < 32 else { return nil }
            if count < 16 { words.0 = words.0 << 4 | digit } else { words.1 = words.1 << 4 | digit }
            count += 1
        }
        guard count == 32 else { return nil }
        self.init(high: words.0, low: words.1)
    }

    /// Creates an identifier from the first 16 bytes, big-endian. Returns nil if there are fewer.
    public init?(bytes: some Sequence<UInt8>) {
        // Arrays and data are contiguous. Their elements are not read one at a time, because this function is not specialized for
        // the callers in other modules.
        let contiguous = bytes.withContiguousStorageIfAvailable { Self.halves(of: UnsafeRawBufferPointer($0)) }
        let halves = contiguous ?? Array(bytes.prefix(16)).withUnsafeBytes { Self.halves(of: $0) }
        guard let halves else { return nil }
        self.init(high: halves.0, low: halves.1)
    }

    private static func halves(of bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64)? {
        guard bytes.count >= 16 else { return nil }
        return (
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }

    /// All 16 bytes, big-endian.
    public var bytes: [UInt8] {
        let (high, low) = (self.high, self.low)
        return [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            for index in 0..<8 {
                buffer.initializeElement(at: index, to: UInt8(truncatingIfNeeded: high >> UInt64(56 - 8 * index)))
                buffer.initializeElement(at: index + 8, to: UInt8(truncatingIfNeeded: low >> UInt64(56 - 8 * index)))
            }
            count = 16
        }
    }

    public var description: String {
        String(unsafeUninitializedCapacity: 32) { buffer in
            let digits: StaticString = "0123456789abcdef"
            for index in 0..<32 {
                let word = index < 16 ? high : low
                let nibble = Int(truncatingIfNeeded: word >> UInt64(60 - 4 * (index % 16))) & 15
                buffer[index] = digits.utf8Start[nibble]
            }
            return 32
        }
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}

/// The identity of a person across visits and devices: random for anonymous people, and derived from the project and the
/// token's `sub` for an application's own users. It is never sent to other clients.
public struct IdentityID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The id of a client connection. It stays the same after a resume. Other clients in a session know the client by this id.
public struct ConnectionID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The id of a stream that a connection publishes in a session.
public struct StreamID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The id of a match, which is one pairing of two strangers in the roulette. Session tokens of calls, rooms and legacy
/// clients are bound to ids of this type too.
public struct MatchID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The public id of a person or a device. It is derived from the identity with the server key, so it reveals nothing
/// about the identity.
public struct PersonID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The ID of a room. It is random, so that a later room with the same name has a different ID.
public struct RoomID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The id of a call from one person to another. It is random.
public struct CallID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// The call's id as a match id. The session tokens of a call are bound to this id, in the same way as the session tokens of
    /// a match are bound to the match.
    public var binding: MatchID { MatchID(high: high, low: low) }
}

/// The id of an archive, which is a recording of a session. It is random.
public struct ArchiveID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The id of a broadcast, in which the streams of a session are composed live. It is random.
public struct BroadcastID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}
