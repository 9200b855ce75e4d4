import RTC

/// The configuration of an AV1 decoder in a file, the AV1CodecConfigurationRecord (AV1 Codec ISO Media File Format Binding
/// §2.3.3), which Matroska uses too.
enum AV1Configuration {
    /// Returns the record for a sequence header; nil if it is invalid or too long.
    ///
    /// - Parameter payload: the payload of the OBU, without the OBU's own header.
    static func record(sequenceHeader payload: [UInt8]) -> [UInt8]? {
        guard payload.count <= WebMHeader.maxConfiguration - 16,
            let header = payload.withUnsafeBytes({ AV1SequenceHeader($0) })
        else { return nil }
        var flags: UInt8 = header.isHighTier ? 0x80 : 0
        flags |= header.hasHighBitDepth ? 0x40 : 0
        flags |= header.hasTwelveBits ? 0x20 : 0
        flags |= header.isMonochrome ? 0x10 : 0
        flags |= header.isHalfWidth ? 0x08 : 0
        flags |= header.isHalfHeight ? 0x04 : 0
        flags |= header.chromaPosition
        // Marker and version, and no initial presentation delay.
        return [0x81, header.profile << 5 | header.level & 0x1f, flags, 0] + AV1OBU.bytes(0x0a, nil, payload)
    }

    /// Returns the size of the video that a record describes.
    static func size(in record: [UInt8]) -> PictureSize? {
        guard record.count > 4, let unit = AV1OBU(record[4...]), unit.type == AV1OBU.sequenceHeader else { return nil }
        return unit.payload.withUnsafeBytes { AV1SequenceHeader($0)?.size }
    }
}

/// A unit of an AV1 stream (AV1 bitstream specification §5.3).
struct AV1OBU: Equatable {
    static let sequenceHeader: UInt8 = 1
    static let temporalDelimiter: UInt8 = 2
    static let tileList: UInt8 = 8
    static let padding: UInt8 = 15

    var type: UInt8
    var header: UInt8
    /// Temporal and spatial layer; nil if the unit has none.
    var layers: UInt8?
    var payload: [UInt8]

    /// Parses a unit that begins here. Without a size of its own it extends to the end. Returns nil if it is malformed.
    init?(_ bytes: some Collection<UInt8>) {
        var rest = bytes[...]
        guard let header = rest.popFirst(), header & 0x80 == 0 else { return nil }
        (self.header, type) = (header, header >> 3 & 15)
        if header & 0x04 != 0 {
            guard let layers = rest.popFirst() else { return nil }
            self.layers = layers
        }
        guard header & 0x02 != 0 else {
            payload = Array(rest)
            return
        }
        guard let size = Self.size(&rest), size <= rest.count else { return nil }
        payload = Array(rest.prefix(size))
    }

    /// Reads a number in groups of seven bits (`leb128`, §4.10.5). Returns nil if it is longer than a frame may be.
    static func size<Bytes: Collection<UInt8>>(_ bytes: inout Bytes) -> Int? where Bytes.SubSequence == Bytes {
        var value = 0
        for index in 0..<4 {
            guard let byte = bytes.popFirst() else { return nil }
            value |= Int(byte & 0x7f) << (7 * index)
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }

    /// Returns a unit with its size, as files have it.
    static func bytes(_ header: UInt8, _ layers: UInt8?, _ payload: some Collection<UInt8>) -> [UInt8] {
        var bytes = [header | 0x02]
        if let layers { bytes.append(layers) }
        var size = payload.count
        while size > 0x7f {
            bytes.append(UInt8(size & 0x7f) | 0x80)
            size >>= 7
        }
        bytes.append(UInt8(size))
        bytes += payload
        return bytes
    }
}
