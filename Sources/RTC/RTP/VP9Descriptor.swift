/// The VP9 payload descriptor of a packet (RFC 9628 §4.2), and whether the packet begins a keyframe. Absent fields are
/// nil.
public struct VP9Descriptor: Equatable, Sendable {
    /// The descriptor's length in bytes, which is also the offset of the VP9 data.
    public let length: Int
    /// The picture id; nil if the descriptor has none.
    public let pictureID: UInt16?
    /// Whether the picture id has 15 bits instead of 7.
    public let hasLongPictureID: Bool
    /// Whether the picture is predicted from an earlier picture (`P`).
    public let isInterPicture: Bool
    /// Whether the packet lists its reference pictures, at most three (flexible mode, `F`).
    public let isFlexible: Bool
    /// Whether the packet is the first of its frame (`B`).
    public let isFrameStart: Bool
    /// Whether the packet is the last of its frame (`E`).
    public let isFrameEnd: Bool
    /// Whether no higher spatial layer refers to this frame (`Z`).
    public let isNotReferenceForHigherLayers: Bool
    /// The temporal layer, 0 to 7 (`TID`).
    public let temporalLayer: UInt8?
    /// Whether a receiver may switch up to this temporal layer at this frame (`U`).
    public let isSwitchingUpPoint: Bool
    /// The spatial layer, 0 to 7 (`SID`).
    public let spatialLayer: UInt8?
    /// Whether the frame is predicted from a lower spatial layer of the same picture (`D`).
    public let dependsOnLowerLayer: Bool
    /// A counter of the pictures of the lowest temporal layer, in non-flexible mode (`TL0PICIDX`).
    public let temporalLayerZeroIndex: UInt8?
    /// Whether the packet carries a scalability structure (`V`).
    public let hasScalabilityStructure: Bool
    /// The size of the highest spatial layer, if the scalability structure contains it.
    public let largestSize: PictureSize?

    /// Whether the packet is the first of a keyframe in the lowest spatial layer.
    public var isKeyframeStart: Bool { !isInterPicture && isFrameStart && (spatialLayer ?? 0) == 0 }

    /// Returns nil if the payload ends before the VP9 data, or if it lists more than three references.
    public init?(_ payload: UnsafeRawBufferPointer) {
        var reader = ByteReader(payload)
        guard let first = reader.u8() else { return nil }
        let hasLayers = first & 0x20 != 0
        let isFlexible = first & 0x10 != 0
        var pictureID: UInt16?
        var hasLongPictureID = false
        if first & 0x80 != 0 {
            guard let picture = reader.pictureID() else { return nil }
            (pictureID, hasLongPictureID) = (picture.id, picture.isLong)
        }
        var layers: UInt8 = 0
        var temporalLayerZeroIndex: UInt8?
        if hasLayers {
            guard let byte = reader.u8() else { return nil }
            layers = byte
            if !isFlexible {
                guard let index = reader.u8() else { return nil }
                temporalLayerZeroIndex = index
            }
        }
        if isFlexible, first & 0x40 != 0 { guard Self.skipReferences(&reader) else { return nil } }
        hasScalabilityStructure = first & 0x02 != 0
        var largest: PictureSize?
        if hasScalabilityStructure {
            guard Self.readScalabilityStructure(&reader, &largest) else { return nil }
        }
        largestSize = largest
        guard reader.remaining > 0 else { return nil }
        length = reader.position
        self.pictureID = pictureID
        self.hasLongPictureID = hasLongPictureID
        isInterPicture = first & 0x40 != 0
        self.isFlexible = isFlexible
        isFrameStart = first & 0x08 != 0
        isFrameEnd = first & 0x04 != 0
        isNotReferenceForHigherLayers = first & 0x01 != 0
        temporalLayer = hasLayers ? layers >> 5 : nil
        isSwitchingUpPoint = layers & 0x10 != 0
        spatialLayer = hasLayers ? layers >> 1 & 0x07 : nil
        dependsOnLowerLayer = layers & 0x01 != 0
        self.temporalLayerZeroIndex = temporalLayerZeroIndex
    }

    /// Skips at most three references. Each takes seven bits, and an eighth bit that is set if another reference comes
    /// after it (RFC 9628 §4.2). Returns false if there are more than three or the last one is missing.
    private static func skipReferences(_ reader: inout ByteReader) -> Bool {
        for _ in 0..<3 {
            guard let reference = reader.u8() else { return false }
            if reference & 1 == 0 { return true }
        }
        return false
    }

    /// Reads the scalability structure (RFC 9628 §4.2.1), and sets `largest` if it contains sizes. Returns false if it
    /// is truncated.
    private static func readScalabilityStructure(_ reader: inout ByteReader, _ largest: inout PictureSize?) -> Bool {
        guard let first = reader.u8() else { return false }
        let spatialLayers = Int(first >> 5) + 1
        if first & 0x10 != 0 {
            for _ in 0..<spatialLayers {
                guard let width = reader.u16(), let height = reader.u16() else { return false }
                largest = PictureSize(Int64(width), Int64(height)) ?? largest
            }
        }
        guard first & 0x08 != 0 else { return true }
        guard let pictures = reader.u8() else { return false }
        for _ in 0..<pictures {
            guard let picture = reader.u8(), reader.skip(Int(picture >> 2 & 0x03)) else { return false }
        }
        return true
    }
}
