/// Parsers and values for the header extension elements that a router uses. Each parser takes the bytes of one element and
/// returns nil if they are too few.
public enum HeaderExtensions {
    /// The audio level of a packet (RFC 6464 §3).
    public struct AudioLevel: Hashable, Sendable {
        /// The level in -dBov: 0 is the loudest, 127 is silence.
        public var level: UInt8
        /// Whether the sender detected speech in the packet.
        public var voice: Bool

        public init(level: UInt8, voice: Bool) { (self.level, self.voice) = (level & 0x7f, voice) }

        public init?(_ bytes: UnsafeRawBufferPointer) {
            guard let byte = bytes.first else { return nil }
            self.init(level: byte, voice: byte & 0x80 != 0)
        }

        public var byte: UInt8 { level | (voice ? 0x80 : 0) }
    }

    /// Reads the send time of a packet, in 2^-18 seconds of a clock that wraps after 64 s
    /// (http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time).
    public static func absoluteSendTime(_ bytes: UnsafeRawBufferPointer) -> UInt32? {
        guard bytes.count >= 3 else { return nil }
        return UInt32(bytes[0]) << 16 | UInt32(bytes.bigEndian16(at: 1))
    }

    /// Reads the transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01 §2).
    public static func transportSequenceNumber(_ bytes: UnsafeRawBufferPointer) -> UInt16? {
        bytes.count >= 2 ? bytes.bigEndian16(at: 0) : nil
    }

    /// Returns the byte of a video orientation element, `0000 C F R R` (3GPP TS 26.114 §7.4.5), unchanged.
    public static func videoOrientation(_ bytes: UnsafeRawBufferPointer) -> UInt8? { bytes.first }
}

/// A MID, RID or repaired RID in a packet (RFC 7941, RFC 8852, RFC 8843 §15): up to 16 ASCII characters. The type has
/// a fixed size and needs no allocation, because packets with an unknown source must not cost much.
public struct SDESLabel: Hashable, Sendable, CustomStringConvertible {
    /// The maximum number of characters, which is that of the one-byte form in RFC 8285. Browsers use 1 to 3 characters.
    public static let maxCharacters = 16

    private var high: UInt64 = 0
    private var low: UInt64 = 0
    public private(set) var count = 0

    /// Returns nil unless `bytes` are 1 to 16 visible ASCII characters.
    public init?(_ bytes: UnsafeRawBufferPointer) { self.init(characters: bytes) }

    /// Returns nil unless the text has 1 to 16 visible ASCII characters.
    public init?(_ text: String) { self.init(characters: text.utf8) }

    private init?(characters: some Sequence<UInt8>) {
        for byte in characters {
            guard count < Self.maxCharacters, (0x21...0x7e).contains(byte) else { return nil }
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(byte)
            count += 1
        }
        guard count > 0 else { return nil }
    }

    /// Returns a character.
    ///
    /// - Parameter index: the character's position, in 0..<count.
    private func byte(_ index: Int) -> UInt8 {
        let place = count - 1 - index
        return UInt8(truncatingIfNeeded: place < 8 ? low >> UInt64(place * 8) : high >> UInt64((place - 8) * 8))
    }

    public var description: String { String(decoding: (0..<count).map(byte), as: UTF8.self) }

    /// Calls `body` with the characters. Their memory is valid only during the call, and none is allocated.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: Self.maxCharacters, alignment: 8) { memory in
            for index in 0..<count { memory[index] = byte(index) }
            return body(UnsafeRawBufferPointer(rebasing: memory[..<count]))
        }
    }
}

extension RTPHeaderWriter {
    @discardableResult
    public mutating func addAudioLevel(_ level: HeaderExtensions.AudioLevel, id: UInt8) -> Bool {
        addExtension(id: id, value: UInt32(level.byte), length: 1)
    }

    /// Adds the extension with the send time. Returns false if it could not be added.
    ///
    /// - Parameter time: the send time in 24 bits, from `NTPTime.absoluteSendTime`.
    @discardableResult
    public mutating func addAbsoluteSendTime(_ time: UInt32, id: UInt8) -> Bool {
        addExtension(id: id, value: time, length: 3)
    }

    @inlinable
    @inline(__always)
    @discardableResult
    public mutating func addTransportSequenceNumber(_ number: UInt16, id: UInt8) -> Bool {
        addExtension(id: id, value: UInt32(number), length: 2)
    }

    @discardableResult
    public mutating func addLabel(_ label: SDESLabel, id: UInt8) -> Bool {
        label.withBytes { addExtension(id: id, bytes: $0) }
    }
}
