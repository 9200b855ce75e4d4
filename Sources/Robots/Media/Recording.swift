import RTC

/// Turns received video packets into an IVF file. It returns whole frames to append to the file, so the file stays
/// readable if writing stops.
public struct VideoRecording {
    /// By then, a missing packet has been requested several times.
    static let reorderDelay = MediaInterval.milliseconds(600)
    /// One hour at 90 kHz. A longer step is an invalid timestamp and counts as one frame.
    private static let maxPause: Int64 = 90_000 * 3_600
    private static let oneFrame: Int64 = 3_000

    private var order = PacketOrder(reorderDelay: reorderDelay)
    private var assembler = VP8Assembler()
    private var timestamps = TimestampUnwrapper()
    private var lastTimestamp: Int64 = 0
    /// Time of the last frame in the file, relative to its first.
    private var time: Int64 = 0
    public private(set) var frames = 0

    public init() {}

    /// True until a keyframe arrives. Nothing can be written before it, so request one.
    public var needsKeyframe: Bool { assembler.needsKeyframe }

    /// - Parameter bytes: the data to write is appended to it.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime, into bytes: inout [UInt8]) {
        order.insert(packet, at: now)
        drain(now: now, into: &bytes)
    }

    /// Flushes the packets that are held, at the end of the stream.
    public mutating func finish(at now: MediaTime, into bytes: inout [UInt8]) {
        order.giveUp()
        drain(now: now, into: &bytes)
    }

    private mutating func drain(now: MediaTime, into bytes: inout [UInt8]) {
        while let step = order.next(now: now) {
            switch step {
            case .gap: assembler.skipGap()
            case .packet(let packet):
                let frame = packet.payload.withUnsafeBytes {
                    assembler.take($0, timestamp: packet.timestamp, marker: packet.marker)
                }
                if let frame { write(frame, into: &bytes) }
            }
        }
    }

    private mutating func write(_ frame: VP8Assembler.Frame, into bytes: inout [UInt8]) {
        let timestamp = timestamps.unwrap(frame.timestamp)
        if frames == 0 {
            let header = frame.bytes.withUnsafeBytes { VP8FrameHeader($0) }
            let file = IVFHeader(
                width: header?.width ?? 0, height: header?.height ?? 0, unitNumerator: 1, unitDenominator: 90_000)
            bytes += file.bytes
        } else {
            let step = timestamp &- lastTimestamp
            time &+= step > 0 && step <= Self.maxPause ? step : Self.oneFrame
        }
        lastTimestamp = timestamp
        frames += 1
        bytes += IVFFrame.header(time: UInt64(clamping: time), size: frame.bytes.count)
        bytes += frame.bytes
    }
}

/// Turns received Opus packets into an Ogg file, with one page per second.
public struct AudioRecording {
    /// Shorter than for video, because audio is not retransmitted: only reordered packets are worth waiting for.
    static let reorderDelay = MediaInterval.milliseconds(300)
    /// A file that starts in the middle of a stream discards 80 ms until the decoder has converged (RFC 7845 §4.2).
    static let preSkip: UInt16 = 3_840
    /// One second, in samples.
    private static let pageLength = Int64(OpusPacket.clockRate)
    /// Five seconds, in samples. Shorter gaps are filled. Longer ones are skipped, because otherwise one invalid
    /// timestamp could fill the disk.
    private static let maxFilled: Int64 = 240_000

    private var order = PacketOrder(reorderDelay: reorderDelay)
    private var writer: OggWriter
    private var timestamps = TimestampUnwrapper()
    /// The timestamp of the next packet if none is missing.
    private var expected: Int64?
    /// Samples in the file, and samples at the start of the current page.
    private var samples: Int64 = 0
    private var pageBegan: Int64 = 0
    public private(set) var packets = 0

    /// - Parameter serial: identifies the stream in its file; any number works.
    public init(serial: UInt32) { writer = OggWriter(serial: serial) }

    /// - Parameter bytes: the data to write is appended to it.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime, into bytes: inout [UInt8]) {
        order.insert(packet, at: now)
        drain(now: now, into: &bytes)
    }

    /// Flushes the packets that are held and ends the file.
    public mutating func finish(at now: MediaTime, into bytes: inout [UInt8]) {
        order.giveUp()
        drain(now: now, into: &bytes)
        if packets > 0 { bytes += writer.page(isLast: true) }
    }

    private mutating func drain(now: MediaTime, into bytes: inout [UInt8]) {
        while let step = order.next(now: now) {
            guard case .packet(let packet) = step else { continue }
            packet.payload.withUnsafeBytes { payload in
                guard payload.count <= OggFile.maxPacket, let length = OpusPacket.samples(payload) else { return }
                let timestamp = timestamps.unwrap(packet.timestamp)
                if packets == 0 { begin(into: &bytes) }
                fill(upTo: timestamp, like: payload[0], into: &bytes)
                write(payload, samples: length, into: &bytes)
                expected = timestamp &+ Int64(length)
            }
        }
    }

    private mutating func begin(into bytes: inout [UInt8]) {
        // Decoders can convert between mono and stereo, and Opus over RTP always says two channels (RFC 7587 §7).
        OpusHead(channels: 2, preSkip: Self.preSkip).bytes.withUnsafeBytes {
            _ = writer.append($0, granulePosition: 0)
        }
        bytes += writer.page()
        OpusTags.bytes(vendor: "Confab").withUnsafeBytes { _ = writer.append($0, granulePosition: 0) }
        bytes += writer.page()
    }

    /// Fills a gap with packets that have only the TOC byte, which decoders conceal like lost packets (RFC 7845 §4.1).
    private mutating func fill(upTo timestamp: Int64, like configuration: UInt8, into bytes: inout [UInt8]) {
        guard let expected, timestamp &- expected > 0, timestamp &- expected <= Self.maxFilled else { return }
        var missing = timestamp &- expected
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
