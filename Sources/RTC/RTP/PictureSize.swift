/// The size of encoded video frames in pixels, before the receiver rotates them (3GPP TS 26.114 §7.4.5).
public struct PictureSize: Hashable, Sendable {
    public var width: UInt16
    public var height: UInt16

    public init(width: UInt16, height: UInt16) { (self.width, self.height) = (width, height) }

    public var area: Int { Int(width) * Int(height) }

    /// Returns nil if the width or height is below 1 or above `most`.
    init?(_ width: Int64, _ height: Int64) {
        guard (1...Self.most).contains(width), (1...Self.most).contains(height) else { return nil }
        self.init(width: UInt16(width), height: UInt16(height))
    }

    /// The maximum width and height. VP8 stores them in 14 bits (RFC 6386 §9.1), and the highest level of H.264 allows less.
    static let most: Int64 = 16384
}

extension PictureSize {
    /// Reads the size of a VP8 keyframe (RFC 6386 §9.1): a three-byte tag, a start code, and 14 bits for each
    /// dimension. Returns nil if the frame is not a keyframe or too short.
    ///
    /// - Parameter frame: the beginning of the frame; the rest may be missing.
    init?(vp8 frame: UnsafeRawBufferPointer) {
        guard frame.count >= 10, frame[0] & 1 == 0, frame[3] == 0x9d, frame[4] == 0x01, frame[5] == 0x2a else {
            return nil
        }
        self.init(
            Int64(frame[6]) | Int64(frame[7] & 0x3f) << 8, Int64(frame[8]) | Int64(frame[9] & 0x3f) << 8
        )
    }

    /// Reads the size of a VP9 keyframe from the uncompressed header, up to `frame_size` (VP9 bitstream specification
    /// §6.2). Returns nil if the frame is not a keyframe or too short.
    ///
    /// - Parameter frame: the beginning of the frame; the rest may be missing.
    init?(vp9 frame: UnsafeRawBufferPointer) {
        var reader = BitReader(frame)
        guard reader.bits(2) == 2 else { return nil }
        let profile = reader.bits(1) | reader.bits(1) << 1
        if profile == 3 { reader.skip(1) }
        // Require show_existing_frame = 0, and a keyframe.
        guard !reader.bit(), !reader.bit() else { return nil }
        reader.skip(2)
        guard reader.bits(24) == 0x49_8342 else { return nil }
        if profile >= 2 { reader.skip(1) }
        let isRGB = reader.bits(3) == 7
        let isSubsampled = profile == 0 || profile == 2
        if isRGB { reader.skip(isSubsampled ? 0 : 1) } else { reader.skip(isSubsampled ? 1 : 4) }
        let (width, height) = (Int64(reader.bits(16)) + 1, Int64(reader.bits(16)) + 1)
        guard !reader.isExhausted else { return nil }
        self.init(width, height)
    }

    /// Reads the size, after cropping, from an H.264 sequence parameter set (§7.3.2.1.1). Returns nil if the set is
    /// invalid or ends before the size.
    ///
    /// - Parameter unit: the NAL unit with its header byte; its end may be missing.
    init?(h264 unit: UnsafeRawBufferPointer) {
        guard unit.count > 4, unit[0] & 0x1f == 7 else { return nil }
        var reader = BitReader(UnsafeRawBufferPointer(rebasing: unit[1...]), skipsPrevention: true)
        let profile = reader.bits(8)
        reader.skip(16)
        _ = reader.exponential()
        var chroma: UInt32 = 1
        if Self.profilesWithChroma.contains(profile) {
            guard let format = Self.skipChroma(&reader) else { return nil }
            chroma = format
        }
        _ = reader.exponential()
        guard Self.skipOrder(&reader) else { return nil }
        _ = reader.exponential()
        reader.skip(1)
        let (columns, rows) = (Int64(reader.exponential()) + 1, Int64(reader.exponential()) + 1)
        let fields: Int64 = reader.bit() ? 1 : 2
        reader.skip(fields == 2 ? 2 : 1)
        var (cropped, croppedRows): (Int64, Int64) = (0, 0)
        if reader.bit() {
            cropped = Int64(reader.exponential()) + Int64(reader.exponential())
            croppedRows = Int64(reader.exponential()) + Int64(reader.exponential())
        }
        guard !reader.isExhausted, columns <= Self.most / 16, rows <= Self.most / 16 else { return nil }
        // Cropping is in units of chroma samples. In interlaced video, one unit of height covers a row of both fields (H.264
        // §7.4.2.1.1).
        let unitX: Int64 = chroma == 1 || chroma == 2 ? 2 : 1
        let unitY = (chroma == 1 ? 2 : 1) * fields
        self.init(columns * 16 - cropped * unitX, rows * 16 * fields - croppedRows * unitY)
    }

    /// The H.264 profiles whose parameter sets contain chroma fields.
    private static let profilesWithChroma: Set<UInt32> = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]

    /// Skips the chroma fields and returns `chroma_format_idc`; 0 if the color planes are separate, nil if invalid.
    private static func skipChroma(_ reader: inout BitReader) -> UInt32? {
        var format = reader.exponential()
        guard format <= 3 else { return nil }
        if format == 3, reader.bit() { format = 0 }
        _ = reader.exponential()
        _ = reader.exponential()
        reader.skip(1)
        if reader.bit() { for list in 0..<(format == 3 ? 12 : 8) { skipScaling(&reader, list < 6 ? 16 : 64) } }
        return format
    }

    /// Skips a scaling list of H.264 (§7.3.2.1.1.1), if it is present.
    private static func skipScaling(_ reader: inout BitReader, _ count: Int) {
        guard reader.bit() else { return }
        var (last, next): (Int64, Int64) = (8, 8)
        for _ in 0..<count where !reader.isExhausted {
            if next != 0 { next = (last + reader.signedExponential()) & 255 }
            if next != 0 { last = next }
        }
    }

    /// Skips the fields of H.264's picture order count. Returns false if they are invalid.
    private static func skipOrder(_ reader: inout BitReader) -> Bool {
        switch reader.exponential() {
        case 0: _ = reader.exponential()
        case 1:
            reader.skip(1)
            _ = reader.exponential()
            _ = reader.exponential()
            let count = reader.exponential()
            guard count <= 255 else { return false }
            for _ in 0..<count { _ = reader.exponential() }
        case 2: break
        default: return false
        }
        return true
    }
}

extension VideoPayloadFormat {
    /// Returns the frame size if the payload is the first of a keyframe; always nil for AV1.
    ///
    /// - Parameter payload: the payload of one packet, without padding.
    public func pictureSize(_ payload: UnsafeRawBufferPointer) -> PictureSize? {
        switch self {
        case .vp8:
            guard let descriptor = VP8Descriptor(payload), descriptor.isKeyframeStart else { return nil }
            return PictureSize(vp8: UnsafeRawBufferPointer(rebasing: payload[descriptor.length...]))
        case .vp9:
            guard let descriptor = VP9Descriptor(payload), descriptor.isKeyframeStart else { return nil }
            // Prefer the size of the highest spatial layer. The keyframe's own header has the size of the lowest
            // layer, which is smaller.
            return descriptor.largestSize
                ?? PictureSize(vp9: UnsafeRawBufferPointer(rebasing: payload[descriptor.length...]))
        case .h264:
            guard H264Payload(payload)?.hasSequenceParameterSet ?? false else { return nil }
            return H264Payload.sequenceParameterSet(in: payload).flatMap { PictureSize(h264: $0) }
        case .av1: return nil
        }
    }
}
