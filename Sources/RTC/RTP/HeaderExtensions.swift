/// What is in the header extension elements that a router reads and writes. Each parser takes one element's bytes, and
/// has nil for one that is too short.
public enum HeaderExtensions {
    /// How loud the packet's sound is (RFC 6464 §3).
    public struct AudioLevel: Hashable, Sendable {
        /// In -dBov: 0 is the loudest, 127 silence.
        public var level: UInt8
        /// The sender's encoder takes it for speech.
        public var voice: Bool

        public init(level: UInt8, voice: Bool) { (self.level, self.voice) = (level & 0x7f, voice) }

        public init?(_ bytes: UnsafeRawBufferPointer) {
            guard let byte = bytes.first else { return nil }
            self.init(level: byte, voice: byte & 0x80 != 0)
        }

        public var byte: UInt8 { level | (voice ? 0x80 : 0) }
    }

    /// When the packet was sent, in 2^-18 seconds of a clock that wraps after 64 s
    /// (http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time).
    public static func absoluteSendTime(_ bytes: UnsafeRawBufferPointer) -> UInt32? {
        guard bytes.count >= 3 else { return nil }
        return UInt32(bytes[0]) << 16 | UInt32(bytes.bigEndian16(at: 1))
    }

    /// The number that counts all packets of a transport (draft-holmer-rmcat-transport-wide-cc-extensions-01 §2).
    public static func transportSequenceNumber(_ bytes: UnsafeRawBufferPointer) -> UInt16? {
        bytes.count >= 2 ? bytes.bigEndian16(at: 0) : nil
    }

    /// The coordination of video orientation, `0000 C F R R` (3GPP TS 26.114 §7.4.5): handed on as it is.
    public static func videoOrientation(_ bytes: UnsafeRawBufferPointer) -> UInt8? { bytes.first }
}

/// A mid, rid or repaired rid as it stands in a packet (RFC 7941, RFC 8852, RFC 8843 §15): up to 16 ASCII characters in
/// one fixed size, because it is looked up for packets whose source is not known yet.
public struct SDESLabel: Hashable, Sendable, CustomStringConvertible {
    /// What the one-byte form of RFC 8285 has room for; browsers' labels have 1 to 3 characters.
    public static let mostCharacters = 16

    private var high: UInt64 = 0
    private var low: UInt64 = 0
    public private(set) var count = 0

    /// Nil for none and for more than 16 bytes, and for bytes that are no visible ASCII character.
    public init?(_ bytes: UnsafeRawBufferPointer) { self.init(characters: bytes) }

    /// Nil for what a packet could not carry.
    public init?(_ text: String) { self.init(characters: text.utf8) }

    private init?(characters: some Sequence<UInt8>) {
        for byte in characters {
            guard count < Self.mostCharacters, (0x21...0x7e).contains(byte) else { return nil }
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(byte)
            count += 1
        }
        guard count > 0 else { return nil }
    }

    /// - Parameter index: 0..<count.
    private func byte(_ index: Int) -> UInt8 {
        let place = count - 1 - index
        return UInt8(truncatingIfNeeded: place < 8 ? low >> UInt64(place * 8) : high >> UInt64((place - 8) * 8))
    }

    public var description: String { String(decoding: (0..<count).map(byte), as: UTF8.self) }

    /// Its characters in memory that is good for the call; allocates nothing.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: Self.mostCharacters, alignment: 8) { memory in
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

    /// - Parameter time: 24 bits, see `NTPTime.absoluteSendTime`.
    @discardableResult
    public mutating func addAbsoluteSendTime(_ time: UInt32, id: UInt8) -> Bool {
        addExtension(id: id, value: time, length: 3)
    }

    @discardableResult
    public mutating func addTransportSequenceNumber(_ number: UInt16, id: UInt8) -> Bool {
        addExtension(id: id, value: UInt32(number), length: 2)
    }

    @discardableResult
    public mutating func addLabel(_ label: SDESLabel, id: UInt8) -> Bool {
        label.withBytes { addExtension(id: id, bytes: $0) }
    }
}
