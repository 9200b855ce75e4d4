/// The ways in which video stands in packets that a router understands: enough to know where a receiver can start.
public enum VideoPayloadFormat: Sendable, CaseIterable {
    case vp8
    case vp9
    case h264
    case av1

    /// Whether the first packet of a keyframe, or one from which a keyframe can be put together, has this payload.
    /// False for one that cannot be read.
    ///
    /// - Parameter payload: of one packet, without padding.
    public func isKeyframeStart(_ payload: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .vp8: VP8Descriptor(payload)?.isKeyframeStart ?? false
        case .vp9: VP9Descriptor(payload)?.isKeyframeStart ?? false
        case .h264: H264Payload(payload)?.isKeyframeStart ?? false
        case .av1: AV1AggregationHeader(payload)?.isKeyframeStart ?? false
        }
    }
}
