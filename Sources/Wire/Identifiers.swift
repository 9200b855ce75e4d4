/// A 128-bit identifier, written as 32 lower-case hexadecimal digits.
///
/// One fixed size keeps hashing cheap, rows small and log lines inert: whatever name a program uses for its users, what
/// travels here is sixteen bytes of it.
public protocol Identifier128: Hashable, Comparable, Sendable, CustomStringConvertible {
    var high: UInt64 { get }
    var low: UInt64 { get }
    init(high: UInt64, low: UInt64)
}

extension Identifier128 {
    public static func random(using generator: inout some RandomNumberGenerator) -> Self {
        Self(high: generator.next(), low: generator.next())
    }

    /// `nil` unless `text` is exactly 32 lower-case hexadecimal digits.
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

    /// From the first 16 bytes, big-endian; `nil` when there are fewer.
    public init?(bytes: some Sequence<UInt8>) {
        var words: (UInt64, UInt64) = (0, 0)
        var count = 0
        for byte in bytes.prefix(16) {
            if count < 8 { words.0 = words.0 << 8 | UInt64(byte) } else { words.1 = words.1 << 8 | UInt64(byte) }
            count += 1
        }
        guard count == 16 else { return nil }
        self.init(high: words.0, low: words.1)
    }

    /// The 16 bytes, big-endian.
    public var bytes: [UInt8] {
        (0..<16).map { index in
            let word = index < 8 ? high : low
            return UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * (index % 8)))
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

/// Who somebody is, across visits and devices: random for anonymous people, derived from (project, `sub`) for a
/// program's own users. Peers never see it.
public struct IdentityID: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One client connection: it survives a resume and is what peers know somebody by.
public struct ConnectionID: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One published stream.
public struct StreamID: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One pairing of two strangers.
public struct MatchID: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// How others know a person: made from the identity under the project's key, so that it tells nothing about it.
public struct PersonID: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One call.
public struct CallID: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// What the tokens of its session are bound to, as those of a match are to the match.
    public var binding: MatchID { MatchID(high: high, low: low) }
}
