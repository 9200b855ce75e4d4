import RTC

/// What an Opus packet tells of itself (RFC 6716 §3).
public enum OpusPacket {
    /// Samples a second in which Opus, RTP and Ogg count (RFC 7587 §4.1, RFC 7845 §4).
    public static let clockRate = 48_000
    /// The longest packet: 120 ms (RFC 6716 §3.2.5).
    public static let mostSamples = 5_760

    /// How many samples at 48 kHz it has, or nil for what is no packet of Opus: empty, without its count of frames,
    /// with no frame, or longer than 120 ms.
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
        return (1...mostSamples).contains(samples) ? samples : nil
    }

    /// Of one frame, by the table in RFC 6716 §3.1.
    private static func frameSamples(_ configuration: UInt8) -> Int {
        let length = Int(configuration >> 3 & 3)
        switch configuration >> 3 {
        case 0..<12: return length == 3 ? 2_880 : 480 << length
        case 12..<16: return 480 << (length & 1)
        default: return 120 << length
        }
    }
}

/// The first packet of Opus in Ogg (RFC 7845 §5.1).
public struct OpusHead: Equatable, Sendable {
    public static let magic = Array("OpusHead".utf8)

    /// 1 or 2: RTP carries no more (RFC 7587 §7).
    public var channels: UInt8
    /// Samples at 48 kHz to be decoded and thrown away at the beginning.
    public var preSkip: UInt16
    /// Of what was encoded, in Hz, for information; 0 where nobody knows.
    public var inputSampleRate: UInt32
    /// In dB, times 256.
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
        else { throw MediaFileError(.damaged, "has a header of Opus that ends too early") }
        // The upper four bits change when older readers must give up.
        guard version & 0xf0 == 0 else { throw MediaFileError(.otherCodec, "has Opus of version \(version)") }
        guard family == 0, (1...2).contains(channels) else {
            throw MediaFileError(.otherCodec, "has sound of more than two channels; make it mono or stereo")
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

/// The second packet of Opus in Ogg (RFC 7845 §5.2), without comments.
public enum OpusTags {
    public static let magic = Array("OpusTags".utf8)

    /// - Parameter vendor: who wrote the file.
    public static func bytes(vendor: String) -> [UInt8] {
        var bytes = magic
        bytes.append(littleEndian: UInt32(truncatingIfNeeded: vendor.utf8.count))
        bytes += Array(vendor.utf8)
        bytes.append(littleEndian: UInt32(0))
        return bytes
    }
}

/// Opus in Ogg taken apart (RFC 7845).
///
/// Times come of the packets' own lengths. The granule positions say no more about a whole file, and a damaged one is
/// played as if nothing were missing.
public struct OpusFile: Equatable, Sendable {
    public struct Packet: Equatable, Sendable {
        /// When it begins, in samples at 48 kHz from the file's first.
        public let time: Int
        /// How long it is, in samples at 48 kHz.
        public let samples: Int
        /// Of `bytes`.
        public let range: Range<Int>
    }

    public let head: OpusHead
    public let packets: [Packet]
    public let bytes: [UInt8]
    /// Something is missing or was skipped.
    public let isDamaged: Bool

    /// The sum of the packets, in samples at 48 kHz.
    public var samples: Int { packets.last.map { $0.time + $0.samples } ?? 0 }

    /// - Parameter file: all its bytes.
    public init(_ file: UnsafeRawBufferPointer) throws(MediaFileError) {
        let ogg: OggFile
        do throws(MediaFileError) {
            ogg = try OggFile(file, startingWith: OpusHead.magic)
        } catch  where error.code == .otherCodec {
            throw MediaFileError(.otherCodec, "is an Ogg file without Opus in it")
        }
        bytes = ogg.bytes
        guard let first = ogg.packets.first else { throw MediaFileError(.damaged, "has no header of Opus") }
        head = try bytes.withRawBytes { bytes throws(MediaFileError) in
            try OpusHead(UnsafeRawBufferPointer(rebasing: bytes[first]))
        }
        var packets: [Packet] = []
        var time = 0
        var skipped = false
        bytes.withUnsafeBytes { bytes in
            // The second packet holds comments, however many, and the sound begins behind it.
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
