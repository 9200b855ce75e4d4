/// The parts of an AV1 sequence header (AV1 bitstream specification §5.5) that files describe in their own headers.
public struct AV1SequenceHeader: Equatable, Sendable {
    /// `seq_profile`, 0 to 2.
    public private(set) var profile: UInt8 = 0
    /// The level of the first operating point (`seq_level_idx`).
    public private(set) var level: UInt8 = 0
    /// The tier of the first operating point (`seq_tier`).
    public private(set) var isHighTier = false
    /// Whether samples have 10 or 12 bits (`high_bitdepth`).
    public private(set) var hasHighBitDepth = false
    /// Whether samples have 12 bits (`twelve_bit`).
    public private(set) var hasTwelveBits = false
    public private(set) var isMonochrome = false
    /// Whether the chroma has half the width (`subsampling_x`).
    public private(set) var isHalfWidth = true
    /// Whether the chroma has half the height (`subsampling_y`).
    public private(set) var isHalfHeight = true
    /// The location of chroma samples (`chroma_sample_position`), 0 to 3.
    public private(set) var chromaPosition: UInt8 = 0
    /// The size of the largest frame.
    public private(set) var size = PictureSize(width: 1, height: 1)

    /// Parses the payload of a sequence header OBU, without the OBU's own header. Returns nil if it is incomplete or too large.
    public init?(_ payload: UnsafeRawBufferPointer) {
        var reader = BitReader(payload)
        profile = UInt8(reader.bits(3))
        reader.skip(1)
        let isReduced = reader.bit()
        if isReduced { level = UInt8(reader.bits(5)) } else { readOperatingPoints(&reader) }
        let (widthBits, heightBits) = (Int(reader.bits(4)) + 1, Int(reader.bits(4)) + 1)
        let (width, height) = (Int64(reader.bits(widthBits)) + 1, Int64(reader.bits(heightBits)) + 1)
        guard let size = PictureSize(width, height) else { return nil }
        self.size = size
        if !isReduced, reader.bit() { reader.skip(7) }
        Self.skipTools(&reader, isReduced)
        readColor(&reader)
        guard !reader.isExhausted, profile <= 2 else { return nil }
    }

    private mutating func readOperatingPoints(_ reader: inout BitReader) {
        var delayBits: Int?
        if reader.bit() {
            reader.skip(64)
            if reader.bit() { _ = reader.exponential() }
            if reader.bit() {
                delayBits = Int(reader.bits(5)) + 1
                reader.skip(42)
            }
        }
        let hasDelays = reader.bit()
        for point in 0...reader.bits(5) where !reader.isExhausted {
            reader.skip(12)
            let level = UInt8(reader.bits(5))
            let isHighTier = level > 7 ? reader.bit() : false
            if point == 0 { (self.level, self.isHighTier) = (level, isHighTier) }
            if let delayBits, reader.bit() { reader.skip(2 * delayBits + 1) }
            if hasDelays, reader.bit() { reader.skip(4) }
        }
    }

    /// Skips what decoders use to reconstruct frames, up to `color_config`.
    private static func skipTools(_ reader: inout BitReader, _ isReduced: Bool) {
        reader.skip(3)
        if !isReduced {
            reader.skip(4)
            let hasOrder = reader.bit()
            if hasOrder { reader.skip(2) }
            let forcesScreenTools = reader.bit() ? true : reader.bit()
            if forcesScreenTools, !reader.bit() { reader.skip(1) }
            if hasOrder { reader.skip(3) }
        }
        reader.skip(3)
    }

    private mutating func readColor(_ reader: inout BitReader) {
        hasHighBitDepth = reader.bit()
        if profile == 2, hasHighBitDepth { hasTwelveBits = reader.bit() }
        if profile != 1 { isMonochrome = reader.bit() }
        // BT.709 primaries, sRGB transfer and identity matrix mean RGB, which has no subsampling.
        let isRGB = reader.bit() ? reader.bits(24) == 0x01_0d00 : false
        if isMonochrome { return reader.skip(1) }
        if isRGB { return (isHalfWidth, isHalfHeight) = (false, false) }
        reader.skip(1)
        if profile == 1 { (isHalfWidth, isHalfHeight) = (false, false) }
        if profile == 2 {
            isHalfWidth = hasTwelveBits ? reader.bit() : true
            isHalfHeight = hasTwelveBits && isHalfWidth ? reader.bit() : false
        }
        if isHalfWidth, isHalfHeight { chromaPosition = UInt8(reader.bits(2)) }
    }
}
