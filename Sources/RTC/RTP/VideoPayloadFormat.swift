/// The video payload formats that the router can parse far enough to determine where a receiver can start.
public enum VideoPayloadFormat: Sendable, CaseIterable {
    case vp8
    case vp9
    case h264
    case av1

    /// Returns whether this payload begins a keyframe; false if the payload is malformed.
    ///
    /// - Parameter payload: the payload of one packet, without padding.
    public func isKeyframeStart(_ payload: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .vp8: VP8Descriptor(payload)?.isKeyframeStart ?? false
        case .vp9: VP9Descriptor(payload)?.isKeyframeStart ?? false
        case .h264: H264Payload(payload)?.isKeyframeStart ?? false
        case .av1: AV1AggregationHeader(payload)?.isKeyframeStart ?? false
        }
    }
}
