/// The VP8 payload descriptor of a packet (RFC 7741 §4.2), and whether the packet begins a keyframe. Absent fields are
/// nil.
public struct VP8Descriptor: Equatable, Sendable {
    /// The length of a descriptor with all optional fields and a 15-bit picture id.
    public static let maxLength = 6

    /// The descriptor's length in bytes, which is also the offset of the VP8 data.
    public let length: Int
    /// The picture id; nil if the descriptor has none.
    public let pictureID: UInt16?
    /// Whether the picture id has 15 bits instead of 7.
    public let hasLongPictureID: Bool
    /// A counter of the frames of the lowest temporal layer (`TL0PICIDX`).
    public let temporalLayerZeroIndex: UInt8?
    /// The temporal layer, 0 to 3 (`TID`).
    public let temporalLayer: UInt8?
    /// Whether a receiver may switch up to this temporal layer at this frame (`Y`).
    public let isLayerSync: Bool
    /// The temporal key frame index, 0 to 31 (`KEYIDX`).
    public let keyIndex: UInt8?
    /// Whether no other frame refers to this one (`N`).
    public let isNonReference: Bool
    /// Whether the packet begins a partition (`S`).
    public let isPartitionStart: Bool
    /// The partition's index, 0 to 7 (`PID`).
    public let partition: UInt8
    /// Whether the packet is the first of a keyframe: `S` is set, the partition is 0, and `P` in the VP8 header is 0 (RFC 6386
    /// §9.1).
    public let isKeyframeStart: Bool

    private let first: UInt8
    private let extensions: UInt8
    private let layers: UInt8

    /// Whether the packet is the first of a frame.
    public var isFrameStart: Bool { isPartitionStart && partition == 0 }

    /// Returns nil if the payload ends before the VP8 data.
    public init?(_ payload: UnsafeRawBufferPointer) {
        var reader = ByteReader(payload)
        guard let first = reader.u8() else { return nil }
        var extensions: UInt8 = 0
        if first & 0x80 != 0 {
            guard let byte = reader.u8() else { return nil }
            extensions = byte
        }
        var pictureID: UInt16?
        var hasLongPictureID = false
        if extensions & 0x80 != 0 {
            guard let picture = reader.pictureID() else { return nil }
            (pictureID, hasLongPictureID) = (picture.id, picture.isLong)
        }
        var temporalLayerZeroIndex: UInt8?
        if extensions & 0x40 != 0 {
            guard let byte = reader.u8() else { return nil }
            temporalLayerZeroIndex = byte
        }
        var layers: UInt8 = 0
        if extensions & 0x30 != 0 {
            guard let byte = reader.u8() else { return nil }
            layers = byte
        }
        guard reader.remaining > 0 else { return nil }
        length = reader.position
        self.pictureID = pictureID
        self.hasLongPictureID = hasLongPictureID
        self.temporalLayerZeroIndex = temporalLayerZeroIndex
        temporalLayer = extensions & 0x20 != 0 ? layers >> 6 : nil
        isLayerSync = extensions & 0x20 != 0 && layers & 0x20 != 0
        keyIndex = extensions & 0x10 != 0 ? layers & 0x1f : nil
        isNonReference = first & 0x20 != 0
        isPartitionStart = first & 0x10 != 0
        partition = first & 0x07
        isKeyframeStart = first & 0x17 == 0x10 && payload[reader.position] & 1 == 0
        (self.first, self.extensions, self.layers) = (first, extensions, layers)
    }

    /// Writes the descriptor with other numbers but the same length. A router needs this after it has dropped frames
    /// or switched encodings.
    ///
    /// - Parameters:
    ///   - pictureID: the new picture id, cut to the original number of bits; ignored if the descriptor has no picture id.
    ///   - temporalLayerZeroIndex: the new TL0PICIDX; ignored if the descriptor has none.
    /// - Returns: `length`, or 0 if the memory is too small.
    public func rewrite(
        into memory: UnsafeMutableRawBufferPointer, pictureID: UInt16, temporalLayerZeroIndex: UInt8
    ) -> Int {
        var writer = ByteWriter(memory)
        writer.u8(first)
        if first & 0x80 != 0 { writer.u8(extensions) }
        if self.pictureID != nil {
            if hasLongPictureID {
                writer.u16(0x8000 | pictureID)
            } else {
                writer.u8(UInt8(truncatingIfNeeded: pictureID) & 0x7f)
            }
        }
        if self.temporalLayerZeroIndex != nil { writer.u8(temporalLayerZeroIndex) }
        if extensions & 0x30 != 0 { writer.u8(layers) }
        return writer.overflowed ? 0 : writer.count
    }
}

extension ByteReader {
    /// Reads a picture id of VP8 or VP9: one bit for the length (`M`), then 7 or 15 bits (RFC 7741 §4.2, RFC 9628
    /// §4.2). Returns nil if too few bytes are left.
    mutating func pictureID() -> (id: UInt16, isLong: Bool)? {
        guard let first = u8() else { return nil }
        guard first & 0x80 != 0 else { return (UInt16(first), false) }
        guard let second = u8() else { return nil }
        return (UInt16(first & 0x7f) << 8 | UInt16(second), true)
    }
}
