import RTC

/// Makes an IVF file of the video that comes in packets: bytes to be appended to the file, each time whole frames, so
/// that it can be read however its writing ends.
public struct VideoRecording {
    /// A missing packet has been asked for several times by then.
    static let patience = MediaInterval.milliseconds(600)
    /// In the timestamps' units, 90 kHz: an hour. A longer pause is a timestamp from nowhere, and counts as one frame.
    private static let mostPause: Int64 = 90_000 * 3_600
    private static let oneFrame: Int64 = 3_000

    private var order = PacketOrder(patience: patience)
    private var assembler = VP8Assembler()
    private var timestamps = TimestampUnwrapper()
    private var lastTimestamp: Int64 = 0
    /// Of the last frame in the file, from its first.
    private var time: Int64 = 0
    public private(set) var frames = 0

    public init() {}

    /// Nothing can be written before a keyframe comes: ask for one.
    public var needsKeyframe: Bool { assembler.needsKeyframe }

    /// - Parameter bytes: what is to be written is appended here.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime, into bytes: inout [UInt8]) {
        order.insert(packet, at: now)
        drain(now: now, into: &bytes)
    }

    /// Nothing comes any more.
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
            time &+= step > 0 && step <= Self.mostPause ? step : Self.oneFrame
        }
        lastTimestamp = timestamp
        frames += 1
        bytes += IVFFrame.header(time: UInt64(clamping: time), size: frame.bytes.count)
        bytes += frame.bytes
    }
}

/// Makes an Ogg file of the Opus that comes in packets, a page each second.
public struct AudioRecording {
    /// Sound is not asked for again as often as a picture; what comes out of order comes soon.
    static let patience = MediaInterval.milliseconds(300)
    /// A file that begins in the midst of a stream drops 80 ms in which the decoder finds its feet (RFC 7845 §4.2).
    static let preSkip: UInt16 = 3_840
    /// In samples.
    private static let pageLength = Int64(OpusPacket.clockRate)
    /// In samples: five seconds. A shorter hole is filled, a longer one is left out, or one timestamp from nowhere
    /// would fill the disk.
    private static let mostFilled: Int64 = 240_000

    private var order = PacketOrder(patience: patience)
    private var writer: OggWriter
    private var timestamps = TimestampUnwrapper()
    /// The timestamp that the next packet has unless something is missing.
    private var expected: Int64?
    /// Samples in the file, and those of its last whole page.
    private var samples: Int64 = 0
    private var pageBegan: Int64 = 0
    public private(set) var packets = 0

    /// - Parameter serial: names the stream in its file; any number.
    public init(serial: UInt32) { writer = OggWriter(serial: serial) }

    /// - Parameter bytes: what is to be written is appended here.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime, into bytes: inout [UInt8]) {
        order.insert(packet, at: now)
        drain(now: now, into: &bytes)
    }

    /// Nothing comes any more.
    public mutating func finish(at now: MediaTime, into bytes: inout [UInt8]) {
        order.giveUp()
        drain(now: now, into: &bytes)
        if packets > 0 { bytes += writer.page(isLast: true) }
    }

    private mutating func drain(now: MediaTime, into bytes: inout [UInt8]) {
        while let step = order.next(now: now) {
            guard case .packet(let packet) = step else { continue }
            packet.payload.withUnsafeBytes { payload in
                guard payload.count <= OggFile.mostPacket, let length = OpusPacket.samples(payload) else { return }
                let timestamp = timestamps.unwrap(packet.timestamp)
                if packets == 0 { begin(into: &bytes) }
                fill(upTo: timestamp, like: payload[0], into: &bytes)
                write(payload, samples: length, into: &bytes)
                expected = timestamp &+ Int64(length)
            }
        }
    }

    private mutating func begin(into bytes: inout [UInt8]) {
        // A decoder makes two channels of one or one of two as it is asked to; RTP always says two (RFC 7587 §7).
        OpusHead(channels: 2, preSkip: Self.preSkip).bytes.withUnsafeBytes {
            _ = writer.append($0, granulePosition: 0)
        }
        bytes += writer.page()
        OpusTags.bytes(vendor: "Confab").withUnsafeBytes { _ = writer.append($0, granulePosition: 0) }
        bytes += writer.page()
    }

    /// Packets of nothing but the first byte, which a decoder hides as it hides losses (RFC 7845 §4.1).
    private mutating func fill(upTo timestamp: Int64, like configuration: UInt8, into bytes: inout [UInt8]) {
        guard let expected, timestamp &- expected > 0, timestamp &- expected <= Self.mostFilled else { return }
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
        // The position counts what is skipped at the beginning too (RFC 7845 §4).
        guard writer.append(packet, granulePosition: UInt64(clamping: samples)) else { return }
        packets += 1
    }
}
