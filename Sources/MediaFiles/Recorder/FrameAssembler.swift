import RTC

/// A complete video frame, in the form that files have.
struct AssembledFrame: Equatable, Sendable {
    /// The RTP timestamp of the frame's packets.
    var timestamp: UInt32
    var isKeyframe: Bool
    var bytes: [UInt8]
    /// The codec with the parameters that the file's header must have to play this frame.
    var video: RecordedVideo
}

/// Assembles the video frames of one encoding from payloads in order. It starts at a keyframe, and after a loss it continues at
/// the next keyframe.
protocol FrameAssembler: Sendable {
    /// Whether frames are being dropped until the next keyframe.
    var needsKeyframe: Bool { get }
    /// Records that packets are missing at this point.
    mutating func skipGap()
    /// Adds the next payload, in order, and returns the frame that it completes.
    mutating func assemble(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> AssembledFrame?
}

extension VP8Assembler: FrameAssembler {
    mutating func assemble(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool) -> AssembledFrame? {
        take(payload, timestamp: timestamp, marker: marker).map {
            AssembledFrame(timestamp: $0.timestamp, isKeyframe: $0.isKeyframe, bytes: $0.bytes, video: .vp8)
        }
    }
}

extension VideoPayloadFormat {
    /// Whether recordings support the codec.
    public var isRecordable: Bool { assembler != nil }

    /// A new assembler; nil if recordings do not support the codec.
    var assembler: (any FrameAssembler)? {
        switch self {
        case .vp8: VP8Assembler()
        case .vp9: VP9Assembler()
        case .h264: H264Assembler()
        case .av1: AV1Assembler()
        }
    }
}
