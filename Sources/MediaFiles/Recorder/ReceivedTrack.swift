import RTC

/// A video frame or an audio packet that was received completely, before it has a time on our clock.
struct ReceivedFrame: Equatable, Sendable {
    var isVideo: Bool
    var timestamp: UInt32
    /// When its first packet arrived.
    var arrival: MediaTime
    /// Always true for audio.
    var isKeyframe: Bool
    var bytes: [UInt8]
    /// The codec; nil for audio.
    var video: RecordedVideo?
    /// Whether frames before this one were lost.
    var followsLoss = false
}

/// Puts the packets of one source into order and assembles frames. A stream continues with another `ReceivedTrack` when its
/// publisher changes the source.
struct ReceivedTrack: Sendable {
    /// How long to wait for a missing packet. Lost video is requested several times during this period. Audio is not
    /// retransmitted, so only reordered packets can still arrive.
    static let videoDelay = MediaInterval.milliseconds(600)
    static let audioDelay = MediaInterval.milliseconds(300)
    /// The maximum width and height of a video. VP8 has 14 bits for each, but no camera or screen is that large.
    static let maxSide: UInt16 = 8_192

    /// What the next packets have become.
    enum Step: Equatable {
        case frame(ReceivedFrame)
        /// Frames are lost. For video, nothing follows before a keyframe.
        case gap
    }

    private var order: PacketOrder
    /// nil for audio.
    private var assembler: (any FrameAssembler)?
    /// The frame that is being assembled: its timestamp, and when the first of its packets arrived.
    private var current: (timestamp: UInt32, arrival: MediaTime)?
    private var hasFrames = false
    private var isLossPending = false

    /// Opus audio.
    init() { order = PacketOrder(reorderDelay: Self.audioDelay) }

    /// Video. Returns nil if recordings do not support the codec.
    ///
    /// - Parameter delay: how long to wait for a missing packet.
    init?(_ format: VideoPayloadFormat, delay: MediaInterval = videoDelay) {
        guard let assembler = format.assembler else { return nil }
        self.assembler = assembler
        order = PacketOrder(reorderDelay: delay)
    }

    /// Whether frames are being dropped until the next keyframe. Always false for audio.
    var needsKeyframe: Bool { assembler?.needsKeyframe ?? false }

    mutating func insert(_ packet: PacketOrder.Packet, now: MediaTime) { order.insert(packet, at: now) }

    /// Stops waiting for missing packets, because the source has ended.
    mutating func giveUp() { order.giveUp() }

    /// Returns the next frame or gap; nil while the next packet may still arrive.
    mutating func next(now: MediaTime) -> Step? {
        while let step = order.next(now: now) {
            switch step {
            case .gap:
                assembler?.skipGap()
                noteLoss()
                return .gap
            case .packet(let packet):
                let couldDecode = !needsKeyframe
                if let frame = frame(of: packet) { return .frame(frame) }
                // The assembler found that something is missing or malformed.
                if couldDecode, needsKeyframe {
                    noteLoss()
                    return .gap
                }
            }
        }
        return nil
    }

    private mutating func noteLoss() { isLossPending = hasFrames }

    private mutating func frame(of packet: PacketOrder.Packet) -> ReceivedFrame? {
        guard assembler != nil else {
            guard packet.payload.withUnsafeBytes({ OpusPacket.samples($0) }) != nil else { return nil }
            return ReceivedFrame(
                isVideo: false, timestamp: packet.timestamp, arrival: packet.arrival, isKeyframe: true,
                bytes: packet.payload)
        }
        if let current, current.timestamp == packet.timestamp {
            self.current?.arrival = min(current.arrival, packet.arrival)
        } else {
            current = (packet.timestamp, packet.arrival)
        }
        let frame = packet.payload.withUnsafeBytes {
            assembler?.assemble($0, timestamp: packet.timestamp, marker: packet.marker)
        }
        guard let frame else { return nil }
        if frame.isKeyframe, let size = PictureSize(of: frame.bytes, frame.video),
            size.width > Self.maxSide || size.height > Self.maxSide
        {
            assembler?.skipGap()
            return nil
        }
        defer { (hasFrames, isLossPending) = (true, false) }
        return ReceivedFrame(
            isVideo: true, timestamp: frame.timestamp, arrival: current?.arrival ?? packet.arrival,
            isKeyframe: frame.isKeyframe, bytes: frame.bytes, video: frame.video, followsLoss: isLossPending)
    }
}
