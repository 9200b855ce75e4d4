/// The checksum of ZIP files (APPNOTE §4.4.7): CRC-32 with the reflected polynomial 0xEDB88320.
struct CRC32: Sendable {
    /// For each distance of a byte from the end of eight bytes, what the byte adds to the checksum.
    private static let tables: [[UInt32]] = {
        var tables = [
            (0..<256).map { (byte: UInt32) -> UInt32 in
                (0..<8).reduce(byte) { crc, _ in crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xEDB8_8320 }
            }
        ]
        for distance in 1..<8 {
            tables.append(tables[distance - 1].map { $0 >> 8 ^ tables[0][Int($0 & 0xFF)] })
        }
        return tables
    }()
    /// The same in one array, because indexing one array is faster.
    private static let table: [UInt32] = tables.flatMap(\.self)

    private var state: UInt32 = .max

    /// The checksum of all bytes so far.
    var value: UInt32 { ~state }

    /// Adds bytes. Takes eight at a time, because an archive can have gigabytes.
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var crc = state
        Self.table.withUnsafeBufferPointer { table in
            var index = 0
            while index + 8 <= bytes.count {
                let word =
                    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ UInt64(crc)
                crc = 0
                for place in 0..<8 {
                    crc ^= table[(7 - place) << 8 | Int(truncatingIfNeeded: word >> UInt64(8 * place) & 0xFF)]
                }
                index += 8
            }
            while index < bytes.count {
                crc = crc >> 8 ^ table[Int(UInt8(truncatingIfNeeded: crc) ^ bytes[index])]
                index += 1
            }
        }
        state = crc
    }

    static func of(_ bytes: [UInt8]) -> UInt32 {
        var crc = CRC32()
        bytes.withUnsafeBytes { crc.add($0) }
        return crc.value
    }
}
