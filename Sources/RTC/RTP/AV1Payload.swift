/// The aggregation header of an AV1 packet (RTP Payload Format For AV1 §4.4).
public struct AV1AggregationHeader: Equatable, Sendable {
    /// Whether the first OBU element continues an element from the previous packet (`Z`).
    public let continues: Bool
    /// Whether the last OBU element continues in the next packet (`Y`).
    public let isContinued: Bool
    /// The number of OBU elements; 0 if each is preceded by its length (`W`).
    public let elements: UInt8
    /// Whether this is the first packet of a coded video sequence, which begins with a keyframe (`N`).
    public let isKeyframeStart: Bool

    /// Returns nil if the payload has no element, or if both `Z` and `N` are set.
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

/// The mandatory fields of a dependency descriptor (RTP Payload Format For AV1, appendix A.8.2), and the flags of the
/// extended fields. The dependencies themselves are not parsed.
public struct DependencyDescriptor: Equatable, Sendable {
    /// Whether the packet is the first of its frame.
    public let isFrameStart: Bool
    public let isFrameEnd: Bool
    /// The frame's template id, 0 to 63 (`frame_dependency_template_id`).
    public let templateID: UInt8
    public let frameNumber: UInt16
    /// Whether the descriptor contains a template structure. It is sent with a keyframe, and receivers need it to parse later
    /// descriptors.
    public let hasTemplateStructure: Bool
    /// Whether the descriptor updates the active decode targets.
    public let hasActiveDecodeTargets: Bool

    /// Whether the packet is the first of a keyframe.
    public var isKeyframeStart: Bool { isFrameStart && hasTemplateStructure }

    /// Returns nil if the element has fewer than three bytes.
    ///
    /// - Parameter bytes: the content of the header extension element.
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
