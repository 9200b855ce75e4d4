import RTC

/// A page of an Ogg stream (RFC 3533 §6): the fields of its header, and ranges of the bytes that it was parsed from.
package struct OggPage: Equatable {
    package static let signature = Array("OggS".utf8)
    /// The length in bytes of a page's header without the lacing values.
    static let headerLength = 27
    /// The maximum number of lacing values in a page, whose count is one byte.
    static let maxSegments = 255
    /// The length in bytes of a full segment. A shorter segment ends a packet.
    static let fullSegment = 255
    /// The length in bytes of a page whose segments are all full.
    static let maxLength = headerLength + maxSegments + maxSegments * fullSegment

    static let continuesFlag: UInt8 = 1
    static let beginsFlag: UInt8 = 2
    static let endsFlag: UInt8 = 4

    /// Whether the page's first packet started on the previous page.
    let continues: Bool
    let isFirst: Bool
    let isLast: Bool
    /// The position in the stream at the end of this page, in a unit that the codec defines. All ones if no packet ends on the
    /// page.
    let granulePosition: UInt64
    /// The serial number, which identifies the stream in its file.
    let serial: UInt32
    /// The number of the page in its stream.
    let sequence: UInt32
    /// The range of the lacing values.
    let segments: Range<Int>
    let body: Range<Int>

    /// Parses the page at an offset. Returns nil if no page starts there, or if the page is truncated or its checksum is wrong.
    init?(in bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard let header = Self.header(in: bytes, at: offset) else { return nil }
        self = header
        let whole = UnsafeRawBufferPointer(rebasing: bytes[offset..<body.upperBound])
        var stored: UInt32 = 0
        for index in (22..<26).reversed() { stored = stored << 8 | UInt32(whole[index]) }
        guard OggChecksum.of(page: whole) == stored else { return nil }
    }

    /// Parses the page without verifying its checksum. Returns nil if no page starts there or the page is truncated.
    private static func header(in bytes: UnsafeRawBufferPointer, at offset: Int) -> OggPage? {
        guard offset >= 0, offset <= bytes.count else { return nil }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
        guard let signature = reader.take(4), signature.elementsEqual(Self.signature), reader.u8() == 0,
            let flags = reader.u8(), let granule = reader.littleEndian64(), let serial = reader.littleEndian32(),
            let sequence = reader.littleEndian32(), reader.skip(4), let count = reader.u8(),
            let lacing = reader.take(Int(count))
        else { return nil }
        let start = offset + reader.position
        guard reader.skip(lacing.reduce(0) { $0 + Int($1) }) else { return nil }
        return OggPage(
            flags: flags, granulePosition: granule, serial: serial, sequence: sequence,
            segments: start - Int(count)..<start, body: start..<offset + reader.position)
    }

    private init(
        flags: UInt8, granulePosition: UInt64, serial: UInt32, sequence: UInt32, segments: Range<Int>, body: Range<Int>
    ) {
        continues = flags & Self.continuesFlag != 0
        isFirst = flags & Self.beginsFlag != 0
        isLast = flags & Self.endsFlag != 0
        (self.granulePosition, self.serial, self.sequence) = (granulePosition, serial, sequence)
        (self.segments, self.body) = (segments, body)
    }
}

/// The CRC of Ogg's pages (RFC 3533 §6, field 7): polynomial 0x04c11db7, neither reflected nor inverted.
enum OggChecksum {
    private static let table: [UInt32] = (0..<256).map { (index: UInt32) in
        (0..<8).reduce(index << 24) { value, _ in value & 0x8000_0000 != 0 ? value << 1 ^ 0x04c1_1db7 : value << 1 }
    }

    /// Returns the CRC of a page, computed as if the page's four checksum bytes were zero.
    static func of(page: UnsafeRawBufferPointer) -> UInt32 {
        table.withUnsafeBufferPointer { table in
            var value: UInt32 = 0
            for index in 0..<page.count {
                let byte = (22..<26).contains(index) ? 0 : page[index]
                value = value << 8 ^ table[Int(UInt8(truncatingIfNeeded: value >> 24) ^ byte)]
            }
            return value
        }
    }
}
