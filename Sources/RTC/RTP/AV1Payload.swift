/// The aggregation header before AV1 in a packet (RTP Payload Format For AV1 §4.4).
public struct AV1AggregationHeader: Equatable, Sendable {
    /// The packet begins with the rest of what the one before began (`Z`).
    public let continues: Bool
    /// What it ends with goes on in the next one (`Y`).
    public let isContinued: Bool
    /// How many elements it has, 0 if each has its length before it (`W`).
    public let elements: UInt8
    /// The first packet of a coded video sequence, which begins with a keyframe (`N`).
    public let isKeyframeStart: Bool

    /// Nil for a payload without an element, and for a sequence that begins with the rest of another one.
    public init?(_ payload: UnsafeRawBufferPointer) {
        guard payload.count >= 2 else { return nil }
        let byte = payload[0]
        continues = byte & 0x80 != 0
        isContinued = byte & 0x40 != 0
        elements = byte >> 4 & 0x03
        isKeyframeStart = byte & 0x08 != 0
        if continues && isKeyframeStart { return nil }
    }
}

/// The fields that every dependency descriptor has (RTP Payload Format For AV1, appendix A.8.2), and the flags of those
/// that have more. The dependencies themselves are not read.
public struct DependencyDescriptor: Equatable, Sendable {
    /// The packet is the first of its frame.
    public let isFrameStart: Bool
    public let isFrameEnd: Bool
    /// 0...63 (`frame_dependency_template_id`).
    public let templateID: UInt8
    public let frameNumber: UInt16
    /// With it the receiver can read all that follows: it comes with a keyframe.
    public let hasTemplateStructure: Bool
    /// The decode targets that are still sent have changed, or are said for the first time.
    public let hasActiveDecodeTargets: Bool

    /// The first packet of a keyframe.
    public var isKeyframeStart: Bool { isFrameStart && hasTemplateStructure }

    /// Nil for fewer than three bytes.
    ///
    /// - Parameter bytes: of the header extension element.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 3 else { return nil }
        isFrameStart = bytes[0] & 0x80 != 0
        isFrameEnd = bytes[0] & 0x40 != 0
        templateID = bytes[0] & 0x3f
        frameNumber = bytes.bigEndian16(at: 1)
        let flags = bytes.count > 3 ? bytes[3] : 0
        hasTemplateStructure = flags & 0x80 != 0
        hasActiveDecodeTargets = flags & 0x40 != 0
    }
}
