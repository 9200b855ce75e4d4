import RTC

/// Converts received video packets to an IVF file. Returns only whole frames to append to the file, so the file stays readable
/// if writing stops.
public struct VideoRecording {
    /// How long to wait for a missing packet. A missing packet is requested several times during this period.
    static let reorderDelay = MediaInterval.milliseconds(600)
    /// The longest interval between two frames, one hour at 90 kHz. A longer one comes from an invalid timestamp and counts as
    /// one frame.
    private static let maxPause: Int64 = 90_000 * 3_600
    private static let oneFrame: Int64 = 3_000

    private var order = PacketOrder(reorderDelay: reorderDelay)
    private var assembler = VP8Assembler()
    private var timestamps = TimestampUnwrapper()
    private var lastTimestamp: Int64 = 0
    /// The time of the most recent frame in the file, relative to the first frame.
    private var time: Int64 = 0
    public private(set) var frames = 0

    public init() {}

    /// Whether a keyframe must be requested, because nothing can be written before one arrives.
    public var needsKeyframe: Bool { assembler.needsKeyframe }

    /// - Parameter bytes: the array to which the data to write is appended.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime, into bytes: inout [UInt8]) {
        order.insert(packet, at: now)
        drain(now: now, into: &bytes)
    }

    /// Writes the packets that are still stored. Called at the end of the stream.
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

/// Converts received Opus packets to an Ogg file with one page per second.
public struct AudioRecording {
    /// How long to wait for a missing packet. This is shorter than for video, because audio is not retransmitted and only
    /// reordered packets can still arrive.
    static let reorderDelay = MediaInterval.milliseconds(300)
    /// The number of samples that a player discards at the start of the file, 80 ms. A decoder needs them to converge if the
    /// file starts in the middle of a stream (RFC 7845 §4.2).
    static let preSkip: UInt16 = 3_840
    /// The length of a page, one second in samples.
    private static let pageLength = Int64(OpusPacket.clockRate)
    /// The longest gap that is filled, five seconds in samples. Longer gaps are skipped, because otherwise one invalid
    /// timestamp could fill the disk.
    private static let maxFilled: Int64 = 240_000

    private var order = PacketOrder(reorderDelay: reorderDelay)
    private var writer: OggWriter
    private var timestamps = TimestampUnwrapper()
    /// The timestamp of the next packet if no packet is missing.
    private var expected: Int64?
    /// The number of samples in the file, and the number before the current page.
    private var samples: Int64 = 0
    private var pageBegan: Int64 = 0
    public private(set) var packets = 0

    /// - Parameter serial: the number that identifies the stream in its file. Any number is allowed.
    public init(serial: UInt32) { writer = OggWriter(serial: serial) }

    /// - Parameter bytes: the array to which the data to write is appended.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime, into bytes: inout [UInt8]) {
        order.insert(packet, at: now)
        drain(now: now, into: &bytes)
    }

    /// Writes the packets that are still stored, and ends the file.
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
