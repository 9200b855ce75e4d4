import RTC

/// A parser for Opus packet headers (RFC 6716 §3).
public enum OpusPacket {
    /// The clock rate of Opus in RTP and Ogg, in hertz (RFC 7587 §4.1, RFC 7845 §4).
    public static let clockRate = 48_000
    /// The duration of the longest packet in samples at 48 kHz, which is 120 ms (RFC 6716 §3.2.5).
    public static let maxSamples = 5_760

    /// Returns a packet's duration in samples at 48 kHz. Returns nil if the packet is invalid, because it is empty, lacks its
    /// frame count, has no frames, or is longer than 120 ms.
    public static func samples(_ packet: UnsafeRawBufferPointer) -> Int? {
        guard let configuration = packet.first else { return nil }
        let frames: Int
        switch configuration & 3 {
        case 0: frames = 1
        case 1, 2: frames = 2
        default:
            guard packet.count >= 2 else { return nil }
            frames = Int(packet[1] & 0x3f)
        }
        let samples = frames * frameSamples(configuration)
        return (1...maxSamples).contains(samples) ? samples : nil
    }

    /// Returns the duration of one frame in samples, from the table in RFC 6716 §3.1.
    private static func frameSamples(_ configuration: UInt8) -> Int {
        let length = Int(configuration >> 3 & 3)
        switch configuration >> 3 {
        case 0..<12: return length == 3 ? 2_880 : 480 << length
        case 12..<16: return 480 << (length & 1)
        default: return 120 << length
        }
    }
}

/// The first packet of an Ogg Opus stream, which is its header (RFC 7845 §5.1).
public struct OpusHead: Equatable, Sendable {
    public static let magic = Array("OpusHead".utf8)

    /// The number of channels, 1 or 2. RTP carries at most two channels (RFC 7587 §7).
    public var channels: UInt8
    /// The number of samples at 48 kHz that a decoder discards at the beginning.
    public var preSkip: UInt16
    /// The sample rate of the original input in hertz, for information only; 0 if unknown.
    public var inputSampleRate: UInt32
    /// The output gain in dB, multiplied by 256.
    public var outputGain: Int16

    public init(channels: UInt8, preSkip: UInt16, inputSampleRate: UInt32 = 48_000, outputGain: Int16 = 0) {
        (self.channels, self.preSkip) = (channels, preSkip)
        (self.inputSampleRate, self.outputGain) = (inputSampleRate, outputGain)
    }

    init(_ packet: UnsafeRawBufferPointer) throws(MediaFileError) {
        var reader = ByteReader(packet)
        guard let magic = reader.take(8), magic.elementsEqual(Self.magic), let version = reader.u8(),
            let channels = reader.u8(), let preSkip = reader.littleEndian16(), let rate = reader.littleEndian32(),
            let gain = reader.littleEndian16(), let family = reader.u8()
        else { throw MediaFileError(.damaged, "has an Opus header that is too short") }
        // Readers must reject a version whose upper four bits are not zero.
        guard version & 0xf0 == 0 else { throw MediaFileError(.otherCodec, "has unsupported Opus \(version)") }
        guard family == 0, (1...2).contains(channels) else {
            throw MediaFileError(.otherCodec, "has more than two audio channels; make it mono or stereo")
        }
        self.init(
            channels: channels, preSkip: preSkip, inputSampleRate: rate, outputGain: Int16(bitPattern: gain))
    }

    public var bytes: [UInt8] {
        var bytes = Self.magic + [1, channels]
        bytes.append(littleEndian: preSkip)
        bytes.append(littleEndian: inputSampleRate)
        bytes.append(littleEndian: outputGain)
        bytes.append(0)
        return bytes
    }
}

/// The second packet of an Ogg Opus stream, written without comments (RFC 7845 §5.2).
public enum OpusTags {
    public static let magic = Array("OpusTags".utf8)

    /// Returns the bytes of an Opus comment header (RFC 7845 §5.2) without any comments.
    ///
    /// - Parameter vendor: the name of the program that wrote the file.
    public static func bytes(vendor: String) -> [UInt8] {
        var bytes = magic
        bytes.append(littleEndian: UInt32(truncatingIfNeeded: vendor.utf8.count))
        bytes += Array(vendor.utf8)
        bytes.append(littleEndian: UInt32(0))
        return bytes
    }
}

/// A parsed Ogg Opus file (RFC 7845).
///
/// Packet times are computed from packet durations, not from granule positions. For a complete file, both give the same result.
/// A damaged file is played without its gaps.
public struct OpusFile: Equatable, Sendable {
    /// An audio packet of the file, with its time.
    public struct Packet: Equatable, Sendable {
        /// The packet's start, in samples at 48 kHz from the beginning of the file.
        public let time: Int
        /// The packet's duration in samples at 48 kHz.
        public let samples: Int
        /// The range of the packet in the file's `bytes`.
        public let range: Range<Int>
    }

    public let head: OpusHead
    public let packets: [Packet]
    public let bytes: [UInt8]
    /// Whether data is missing or packets were skipped.
    public let isDamaged: Bool

    /// The duration of all packets together, in samples at 48 kHz.
    public var samples: Int { packets.last.map { $0.time + $0.samples } ?? 0 }

    /// Parses a file.
    ///
    /// - Parameter file: the contents of the file.
    public init(_ file: UnsafeRawBufferPointer) throws(MediaFileError) {
        let ogg: OggFile
        do throws(MediaFileError) {
            ogg = try OggFile(file, startingWith: OpusHead.magic)
        } catch  where error.code == .otherCodec {
            throw MediaFileError(.otherCodec, "is an Ogg file without an Opus stream")
        }
        bytes = ogg.bytes
        guard let first = ogg.packets.first else { throw MediaFileError(.damaged, "has no Opus header") }
        head = try bytes.withRawBytes { bytes throws(MediaFileError) in
            try OpusHead(UnsafeRawBufferPointer(rebasing: bytes[first]))
        }
        var packets: [Packet] = []
        var time = 0
        var skipped = false
        bytes.withUnsafeBytes { bytes in
            // The first packet is the header, and the second contains comments. Audio starts with the third.
            for range in ogg.packets.dropFirst(2) {
                guard let samples = OpusPacket.samples(UnsafeRawBufferPointer(rebasing: bytes[range])) else {
                    skipped = true
                    continue
                }
                packets.append(Packet(time: time, samples: samples, range: range))
                time += samples
            }
        }
        self.packets = packets
        isDamaged = ogg.isDamaged || skipped
    }
}
