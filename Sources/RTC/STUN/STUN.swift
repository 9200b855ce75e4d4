/// Session Traversal Utilities for NAT (RFC 8489): the constants of the message format, and helper functions.
public enum STUN {
    /// The magic cookie (RFC 8489 §5). Requests without it follow the obsolete RFC 3489 and are sent today only in
    /// reflection attacks.
    public static let magicCookie: UInt32 = 0x2112_a442
    public static let headerLength = 20
    /// The maximum length of a message in bytes: one datagram (RFC 8489 §6.1). A browser's Binding request has about 150 bytes.
    public static let maxBytes = 1500
    /// The maximum number of attributes in a message. Browsers send seven or eight. A datagram could contain hundreds, because
    /// each takes only four bytes.
    public static let maxAttributes = 32
    /// The maximum number of unknown attributes to list in an error response (RFC 8489 §14.9).
    public static let maxUnknown = 8

    /// The Binding method (RFC 8489 §18.2).
    static let binding: UInt16 = 0x001
    /// The methods of TURN that a client needs to try its credentials (RFC 8656 §17).
    static let allocate: UInt16 = 0x003
    static let refresh: UInt16 = 0x004

    /// The attribute types (RFC 8489 §18.3, RFC 8445 §20.1, RFC 8656 §18).
    enum Attribute {
        static let username: UInt16 = 0x0006
        static let messageIntegrity: UInt16 = 0x0008
        static let errorCode: UInt16 = 0x0009
        static let unknownAttributes: UInt16 = 0x000a
        static let lifetime: UInt16 = 0x000d
        static let realm: UInt16 = 0x0014
        static let nonce: UInt16 = 0x0015
        static let xorRelayedAddress: UInt16 = 0x0016
        static let requestedTransport: UInt16 = 0x0019
        static let messageIntegritySHA256: UInt16 = 0x001c
        static let xorMappedAddress: UInt16 = 0x0020
        static let priority: UInt16 = 0x0024
        static let useCandidate: UInt16 = 0x0025
        static let fingerprint: UInt16 = 0x8028
        static let iceControlled: UInt16 = 0x8029
        static let iceControlling: UInt16 = 0x802a
    }

    /// The class of a message (RFC 8489 §5).
    public enum Class: UInt16, Sendable {
        case request = 0
        case indication = 1
        case success = 2
        case failure = 3
    }

    /// Returns the two username fragments in a Binding request (RFC 8445 §7.2.2). They identify the peer connection
    /// before the request is verified. Both point into `datagram`. Returns nil if the datagram is not a Binding
    /// request, or if its USERNAME is missing or has no colon.
    public static func username(
        of datagram: UnsafeRawBufferPointer
    ) -> (local: UnsafeRawBufferPointer, remote: UnsafeRawBufferPointer)? {
        guard let message = STUNMessage(datagram), message.class == .request, message.method == binding,
            let name = message.username, let colon = name.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return (
            UnsafeRawBufferPointer(rebasing: name[..<colon]), UnsafeRawBufferPointer(rebasing: name[(colon + 1)...])
        )
    }

    /// Returns the type field, in which the two bits of the class lie between the bits of the method (RFC 8489 §5).
    static func type(_ class: Class, _ method: UInt16) -> UInt16 {
        let low = `class`.rawValue & 1, high = `class`.rawValue >> 1
        return (method & 0xf80) << 2 | (method & 0x70) << 1 | method & 0xf | low << 4 | high << 8
    }

    /// Returns the CRC-32 of ITU V.42 for FINGERPRINT (RFC 8489 §14.7).
    static func crc32(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var register: UInt32 = 0xffff_ffff
        for byte in bytes { register = crcTable[Int((register ^ UInt32(byte)) & 0xff)] ^ (register >> 8) }
        return ~register
    }

    static let fingerprintMask: UInt32 = 0x5354_554e

    private static let crcTable: [UInt32] = (0..<256).map { (index: UInt32) in
        (0..<8).reduce(index) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
    }
}

/// A transaction id that matches a response to its request: 96 random bits (RFC 8489 §5).
public struct STUNTransaction: Hashable, Sendable {
    public var high: UInt32
    public var low: UInt64

    public init(high: UInt32, low: UInt64) { (self.high, self.low) = (high, low) }
    public init(using random: inout some RandomNumberGenerator) {
        self.init(high: random.next(), low: random.next())
    }
}
