import RTC

/// Converts received video frames to an IVF file. Produces only whole frames to append to the file, so the file stays
/// readable if writing stops.
public struct VideoRecording {
    private static let clockRate: Int64 = 90_000

    /// The time of the first frame; nil before it.
    private var began: Duration?
    public private(set) var frames = 0

    public init() {}

    /// Appends a frame to the file's data. The first frame is preceded by the file's header.
    ///
    /// - Parameters:
    ///   - frame: a VP8 frame. The first one must be a keyframe, because the file's header contains its size.
    ///   - time: the frame's time, later than that of the previous frame.
    ///   - bytes: the array to which the data to write is appended.
    public mutating func take(_ frame: [UInt8], at time: Duration, into bytes: inout [UInt8]) {
        if began == nil {
            let header = frame.withUnsafeBytes { VP8FrameHeader($0) }
            let file = IVFHeader(
                width: header?.width ?? 0, height: header?.height ?? 0, unitNumerator: 1,
                unitDenominator: UInt32(Self.clockRate))
            bytes += file.bytes
        }
        let began = began ?? time
        self.began = began
        frames += 1
        bytes += IVFFrame.header(
            time: UInt64(clamping: (time - began).ticks(Self.clockRate)), size: frame.count)
        bytes += frame
    }
}

/// Converts received Opus packets to an Ogg file with one page per second.
public struct AudioRecording {
    /// The number of samples that a player discards at the start of the file, 80 ms. A decoder needs them to converge if the
    /// file starts in the middle of a stream (RFC 7845 §4.2).
    static let preSkip: UInt16 = 3_840
    /// The length of a page, one second in samples.
    private static let pageLength = Int64(OpusPacket.clockRate)
    /// The longest gap that is filled, five seconds in samples. Longer gaps are skipped, because otherwise one invalid
    /// timestamp could fill the disk.
    private static let maxFilled: Int64 = 240_000

    private var writer: OggWriter
    /// The time of the next packet in samples if no packet is missing; nil before the first packet.
    private var expected: Int64?
    /// The number of samples in the file.
    private var samples: Int64 = 0
    /// How many of the samples precede the current page.
    private var pageBegan: Int64 = 0
    public private(set) var packets = 0

    /// - Parameter serial: the number that identifies the stream in its file. Any number is allowed.
    public init(serial: UInt32) { writer = OggWriter(serial: serial) }

    /// Adds a packet. Invalid ones are skipped.
    ///
    /// - Parameters:
    ///   - packet: an Opus packet.
    ///   - time: the packet's time.
    ///   - bytes: the array to which the data to write is appended.
    public mutating func take(_ packet: [UInt8], at time: Duration, into bytes: inout [UInt8]) {
        packet.withUnsafeBytes { payload in
            guard payload.count <= OggFile.maxPacket, let length = OpusPacket.samples(payload) else { return }
            let position = time.ticks(Int64(OpusPacket.clockRate))
            if packets == 0 { begin(into: &bytes) }
            fill(upTo: position, like: payload[0], into: &bytes)
            write(payload, samples: length, into: &bytes)
            expected = position &+ Int64(length)
        }
    }

    /// Appends the last page of the file, or nothing if no packet was written.
    public mutating func finish(into bytes: inout [UInt8]) {
        if packets > 0 { bytes += writer.page(isLast: true) }
    }

    private mutating func begin(into bytes: inout [UInt8]) {
        // Always write two channels. Decoders can convert between mono and stereo, and Opus over RTP always states two channels
        // (RFC 7587 §7).
        OpusHead(channels: 2, preSkip: Self.preSkip).bytes.withUnsafeBytes {
            _ = writer.append($0, granulePosition: 0)
        }
        bytes += writer.page()
        OpusTags.bytes(vendor: "Confab").withUnsafeBytes { _ = writer.append($0, granulePosition: 0) }
        bytes += writer.page()
    }

    /// Fills a gap with packets that contain only the TOC byte. Decoders conceal them like lost packets (RFC 7845 §4.1).
    private mutating func fill(upTo position: Int64, like configuration: UInt8, into bytes: inout [UInt8]) {
        guard let expected, position &- expected > 0, position &- expected <= Self.maxFilled else { return }
        var missing = position &- expected
        let alone: [UInt8] = [configuration & 0xfc]
        alone.withUnsafeBytes { alone in
            guard let length = OpusPacket.samples(alone) else { return }
            while missing >= Int64(length) {
                write(alone, samples: length, into: &bytes)
                missing &-= Int64(length)
            }
        }
    }

    private mutating func write(_ packet: UnsafeRawBufferPointer, samples length: Int, into bytes: inout [UInt8]) {
        if samples &- pageBegan >= Self.pageLength || !writer.hasRoom(for: packet) {
            bytes += writer.page()
            pageBegan = samples
        }
        samples &+= Int64(length)
        // The granule position includes the pre-skip (RFC 7845 §4).
        guard writer.append(packet, granulePosition: UInt64(clamping: samples)) else { return }
        packets += 1
    }
}

extension Duration {
    /// Returns the duration in units of a clock with this rate in hertz, rounded. Fractions of a microsecond are
    /// ignored.
    fileprivate func ticks(_ rate: Int64) -> Int64 {
        let (seconds, attoseconds) = components
        return seconds &* rate &+ (attoseconds / 1_000_000_000_000 * rate + 500_000) / 1_000_000
    }
}
