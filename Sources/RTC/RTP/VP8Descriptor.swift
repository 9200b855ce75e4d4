/// What stands before VP8 in a packet (RFC 7741 §4.2), and whether a keyframe begins there.
public struct VP8Descriptor: Equatable, Sendable {
    /// The longest descriptor in bytes: with all that is optional, and 15 bits of a picture id.
    public static let mostLength = 6

    /// In bytes: where VP8 itself begins.
    public let length: Int
    /// 7 or 15 bits, see `hasLongPictureID`.
    public let pictureID: UInt16?
    public let hasLongPictureID: Bool
    /// Counts the frames of the lowest temporal layer (`TL0PICIDX`).
    public let temporalLayerZeroIndex: UInt8?
    /// 0...3 (`TID`).
    public let temporalLayer: UInt8?
    /// A receiver may go up to this layer here (`Y`).
    public let isLayerSync: Bool
    /// 0...31 (`KEYIDX`).
    public let keyIndex: UInt8?
    /// No other frame refers to this one (`N`).
    public let isNonReference: Bool
    /// The packet begins a partition (`S`).
    public let isPartitionStart: Bool
    /// 0...7 (`PID`).
    public let partition: UInt8
    /// The first packet of a keyframe: `S`, partition 0, and `P` of VP8's own header is 0 (RFC 6386 §9.1).
    public let isKeyframeStart: Bool

    private let first: UInt8
    private let extensions: UInt8
    private let layers: UInt8

    /// The first packet of a frame.
    public var isFrameStart: Bool { isPartitionStart && partition == 0 }

    /// Nil if the payload ends before VP8 begins.
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

    /// Writes the descriptor again, as long as it was, with other numbers in it: what a router needs that leaves out
    /// frames or changes between encodings of one picture.
    ///
    /// - Parameters:
    ///   - pictureID: as many of its bits as there were; not written where there was none.
    ///   - temporalLayerZeroIndex: not written where there was none.
    /// - Returns: `length`, or 0 if the memory is smaller.
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
    /// The number of a picture as VP8 and VP9 write it: a bit that says how long it is (`M`), and 7 or 15 bits of it
    /// (RFC 7741 §4.2, RFC 9628 §4.2).
    mutating func pictureID() -> (id: UInt16, isLong: Bool)? {
        guard let first = u8() else { return nil }
        guard first & 0x80 != 0 else { return (UInt16(first), false) }
        guard let second = u8() else { return nil }
        return (UInt16(first & 0x7f) << 8 | UInt16(second), true)
    }
}
