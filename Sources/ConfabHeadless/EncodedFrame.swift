import Confab

/// An encoded video frame or audio packet.
public struct EncodedFrame: Hashable, Sendable {
    /// The codec of a frame.
    public enum Codec: String, Hashable, Sendable {
        /// Video (RFC 6386).
        case vp8
        /// Audio (RFC 6716), at most 120 ms in a packet.
        case opus
    }

    /// The codec of the frame.
    public var codec: Codec
    /// The encoded bytes of the whole frame.
    public var bytes: [UInt8]
    /// The time since the first frame of its source.
    public var time: Duration
    /// Whether the frame can be decoded without earlier frames. Always true for audio.
    public var isKeyframe: Bool
    /// The size in pixels of a keyframe; nil for other frames and for audio.
    public var size: VideoSize?

    /// Creates a frame.
    public init(_ codec: Codec, _ bytes: [UInt8], at time: Duration, isKeyframe: Bool = true, size: VideoSize? = nil) {
        (self.codec, self.bytes, self.time) = (codec, bytes, time)
        (self.isKeyframe, self.size) = (isKeyframe, size)
    }
}
