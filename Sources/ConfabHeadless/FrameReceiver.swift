import Confab
import MediaFiles
import Peers
import RTC

/// Turns the packets of one received section into frames, and counts them.
struct FrameReceiver {
    private let kind: TrackKind
    private var order: FrameOrder
    private(set) var frames: UInt64 = 0
    private(set) var keyFrames: UInt64 = 0
    private(set) var size: VideoSize?

    init(_ kind: TrackKind) {
        self.kind = kind
        order = FrameOrder(MediaKind(kind))
    }

    /// Whether a keyframe must be requested, because no frame can be decoded before one arrives.
    var needsKeyframe: Bool { order.needsKeyframe }

    /// Adds a packet, and returns the frames that it completes.
    mutating func take(_ packet: RobotPacket, of codec: Codec) -> [EncodedFrame] {
        guard let payload = Self.payload(of: packet, codec) else { return [] }
        let ordered = PacketOrder.Packet(
            number: packet.number, timestamp: packet.header.timestamp, marker: packet.header.marker,
            payload: payload)
        return order.take(ordered, at: packet.at).map { count($0) }
    }

    /// Returns the frames of the packets that are still waiting. Must be called when the stream has ended.
    mutating func finish(at now: MediaTime) -> [EncodedFrame] { order.finish(at: now).map { count($0) } }

    private static func payload(of packet: RobotPacket, _ codec: Codec) -> [UInt8]? {
        switch codec.kind {
        case .vp8, .opus: Array(packet.payload)
        case .red: RobotRedundancy.primary(packet.payload).map(Array.init)
        case .h264, .vp9, .av1: nil
        }
    }

    private mutating func count(_ frame: FrameOrder.Frame) -> EncodedFrame {
        frames += 1
        guard kind == .video else { return EncodedFrame(.opus, frame.bytes, at: frame.time) }
        if frame.isKeyframe { keyFrames += 1 }
        let header = frame.isKeyframe ? frame.bytes.withUnsafeBytes { VP8FrameHeader($0) } : nil
        let found = header.map { VideoSize(width: Int($0.width), height: Int($0.height)) }
        if let found { size = found }
        return EncodedFrame(.vp8, frame.bytes, at: frame.time, isKeyframe: frame.isKeyframe, size: found)
    }
}
