import RTC

/// Turns the packets of one received section into frames: video frames (VP8), or audio packets (Opus). It waits for
/// retransmissions, and after a loss of video continues at the next keyframe.
public struct FrameOrder {
    /// A complete video frame, or one audio packet.
    public struct Frame: Equatable, Sendable {
        public var bytes: [UInt8]
        /// The time since the first frame.
        public var time: Duration
        /// Whether the frame can be decoded without earlier ones. Always true for audio.
        public var isKeyframe: Bool
    }

    /// How long to wait for a missing packet of video. It is requested several times during this period.
    private static let videoDelay = MediaInterval.milliseconds(600)
    /// How long to wait for a missing packet of audio. Audio is not retransmitted, so only reordered packets can
    /// still arrive.
    private static let audioDelay = MediaInterval.milliseconds(300)
    /// The longest time between two frames, in seconds. A longer one is caused by an invalid timestamp or by another
    /// stream in the same section, and is replaced by the duration of one frame.
    private static let maxPause: Int64 = 3_600
    /// The frame rate that is assumed where a timestamp cannot be used: the previous frame then lasts a thirtieth of
    /// a second.
    private static let framesPerSecond: Int64 = 30

    private let isVideo: Bool
    private let clockRate: Int64
    private var order: PacketOrder
    private var assembler = VP8Assembler()
    private var timestamps = TimestampUnwrapper()
    private var lastTimestamp: Int64?
    /// The time from the first frame to the newest, in units of the clock rate.
    private var time: Int64 = 0

    /// - Parameter kind: audio or video.
    public init(_ kind: MediaKind) {
        isVideo = kind == .video
        clockRate = isVideo ? 90_000 : Int64(OpusPacket.clockRate)
        order = PacketOrder(reorderDelay: isVideo ? Self.videoDelay : Self.audioDelay)
    }

    /// Whether a keyframe must be requested, because no frame can be decoded before one arrives.
    public var needsKeyframe: Bool { isVideo && assembler.needsKeyframe }

    /// Adds a packet, and returns the frames that it completes.
    public mutating func take(_ packet: PacketOrder.Packet, at now: MediaTime) -> [Frame] {
        order.insert(packet, at: now)
        return drain(now: now)
    }

    /// Returns the frames of the packets that are still waiting. Must be called when the stream has ended.
    public mutating func finish(at now: MediaTime) -> [Frame] {
        order.giveUp()
        return drain(now: now)
    }

    private mutating func drain(now: MediaTime) -> [Frame] {
        var frames: [Frame] = []
        while let step = order.next(now: now) {
            switch step {
            case .gap: assembler.skipGap()
            case .packet(let packet): if let frame = frame(of: packet) { frames.append(frame) }
            }
        }
        return frames
    }

    private mutating func frame(of packet: PacketOrder.Packet) -> Frame? {
        guard isVideo else {
            guard packet.payload.withUnsafeBytes({ OpusPacket.samples($0) }) != nil else { return nil }
            return Frame(bytes: packet.payload, time: moment(packet.timestamp), isKeyframe: true)
        }
        let frame = packet.payload.withUnsafeBytes {
            assembler.take($0, timestamp: packet.timestamp, marker: packet.marker)
        }
        guard let frame else { return nil }
        return Frame(bytes: frame.bytes, time: moment(frame.timestamp), isKeyframe: frame.isKeyframe)
    }

    private mutating func moment(_ timestamp: UInt32) -> Duration {
        let timestamp = timestamps.unwrap(timestamp)
        if let lastTimestamp {
            let step = timestamp &- lastTimestamp
            let isUsual = step > 0 && step <= Self.maxPause * clockRate
            time &+= isUsual ? step : clockRate / Self.framesPerSecond
        }
        lastTimestamp = timestamp
        // Divide before multiplying, so that the product cannot overflow. With many long pauses, a sender can make the
        // time arbitrarily large.
        return .seconds(time / clockRate) + .microseconds(time % clockRate * 1_000_000 / clockRate)
    }
}
