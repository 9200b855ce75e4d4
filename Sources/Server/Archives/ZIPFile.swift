import Foundation

/// The bytes of a ZIP file (APPNOTE 6.3.10) whose members are stored without compression, computed from their sizes and
/// checksums. Nothing is stored twice, and any range can be read.
///
/// Members of 4 GiB and more, and files that are as large, have the ZIP64 records (§4.3.14, §4.3.15, §4.5.3).
struct ZIPFile: Equatable, Sendable {
    /// A member of the file.
    struct Member: Equatable, Sendable {
        /// The name in the ZIP file. ASCII letters, digits, `-` and `.` only.
        var name: String
        var size: UInt64
        /// The CRC-32 of the content.
        var checksum: UInt32
    }

    /// A part of the file.
    enum Piece: Equatable, Sendable {
        case bytes([UInt8])
        /// A range of the content of the member with this index.
        case content(Int, Range<UInt64>)
    }

    private static let (localMark, centralMark, endMark): (UInt32, UInt32, UInt32) = (
        0x0403_4B50, 0x0201_4B50, 0x0605_4B50
    )
    private static let (end64Mark, locatorMark): (UInt32, UInt32) = (0x0606_4B50, 0x0706_4B50)
    /// Versions needed to extract (§4.4.3): directories, and ZIP64.
    private static let (version, version64): (UInt16, UInt16) = (20, 45)
    /// Names are UTF-8 (§4.4.4, bit 11).
    private static let flags: UInt16 = 0x0800
    private static let unix: UInt16 = 3 << 8
    /// A regular file that its owner may write and others may read, as Unix writes it.
    private static let attributes: UInt32 = 0o100644 << 16
    private static let (max32, max16) = (UInt64(UInt32.max), Int(UInt16.max))

    let members: [Member]
    /// The date and time of all members, as MS-DOS writes them (§4.4.6).
    private let (date, time): (UInt16, UInt16)
    /// The pieces in order, each with its first offset.
    private let pieces: [(offset: UInt64, size: UInt64, piece: Piece)]
    /// The size of the file in bytes.
    let size: UInt64

    /// - Parameter seconds: the time of all members, in seconds since 1970, written in UTC.
    init(_ members: [Member], at seconds: Int64) {
        self.members = members
        (date, time) = Self.dosTime(seconds)
        var pieces: [(UInt64, UInt64, Piece)] = []
        var offset: UInt64 = 0
        func add(_ piece: Piece, _ size: UInt64) {
            pieces.append((offset, size, piece))
            offset += size
        }
        var offsets: [UInt64] = []
        for (index, member) in members.enumerated() {
            offsets.append(offset)
            let header = Self.localHeader(of: member, date, time)
            add(.bytes(header), UInt64(header.count))
            add(.content(index, 0..<member.size), member.size)
        }
        let start = offset
        var directory: [UInt8] = []
        for (member, offset) in zip(members, offsets) {
            directory += Self.centralHeader(of: member, at: offset, date, time)
        }
        directory += Self.end(count: members.count, start: start, size: UInt64(directory.count))
        add(.bytes(directory), UInt64(directory.count))
        (self.pieces, size) = (pieces, offset)
    }

    static func == (left: ZIPFile, right: ZIPFile) -> Bool {
        (left.members, left.date, left.time) == (right.members, right.date, right.time)
    }

    /// Returns the parts of the file in this range, in order. Parts beyond the file's end are left out.
    func pieces(in range: Range<UInt64>) -> [Piece] {
        pieces.compactMap { offset, size, piece in
            let start = max(range.lowerBound, offset)
            let end = min(range.upperBound, offset + size)
            guard start < end else { return nil }
            switch piece {
            case .bytes(let bytes): return .bytes(Array(bytes[Int(start - offset)..<Int(end - offset)]))
            case .content(let index, _): return .content(index, (start - offset)..<(end - offset))
            }
        }
    }

    // MARK: Records

    private static func localHeader(of member: Member, _ date: UInt16, _ time: UInt16) -> [UInt8] {
        let isLarge = member.size >= max32
        var bytes = Bytes()
        bytes.add(localMark)
        bytes.add(isLarge ? version64 : version)
        bytes.add(common: member, date, time)
        bytes.add(UInt16(member.name.utf8.count))
        bytes.add(UInt16(isLarge ? 20 : 0))
        bytes.bytes += Array(member.name.utf8)
        if isLarge { bytes.add(extra: [member.size, member.size]) }
        return bytes.bytes
    }

    private static func centralHeader(
        of member: Member, at offset: UInt64, _ date: UInt16, _ time: UInt16
    ) -> [UInt8] {
        let large = (member.size >= max32 ? [member.size, member.size] : []) + (offset >= max32 ? [offset] : [])
        let needed = large.isEmpty ? version : version64
        var bytes = Bytes()
        bytes.add(centralMark)
        bytes.add(unix | needed)
        bytes.add(needed)
        bytes.add(common: member, date, time)
        bytes.add(UInt16(member.name.utf8.count))
        bytes.add(UInt16(large.isEmpty ? 0 : 4 + 8 * large.count))
        // No comment, the first disk, no internal attributes.
        for _ in 0..<3 { bytes.add(UInt16(0)) }
        bytes.add(attributes)
        bytes.add(UInt32(min(offset, max32)))
        bytes.bytes += Array(member.name.utf8)
        if !large.isEmpty { bytes.add(extra: large) }
        return bytes.bytes
    }

    private static func end(count: Int, start: UInt64, size: UInt64) -> [UInt8] {
        var bytes = Bytes()
        if count >= max16 || start >= max32 || size >= max32 {
            bytes.add(end64Mark)
            bytes.add(UInt64(44))
            bytes.add(unix | version64)
            bytes.add(version64)
            bytes.add(UInt64(0))
            for number in [UInt64(count), UInt64(count), size, start] { bytes.add(number) }
            bytes.add(locatorMark)
            bytes.add(UInt32(0))
            bytes.add(start + size)
            bytes.add(UInt32(1))
        }
        bytes.add(endMark)
        bytes.add(UInt32(0))
        for _ in 0..<2 { bytes.add(UInt16(min(count, max16))) }
        bytes.add(UInt32(min(size, max32)))
        bytes.add(UInt32(min(start, max32)))
        bytes.add(UInt16(0))
        return bytes.bytes
    }

    /// Bytes, with the least significant of each number first.
    private struct Bytes {
        var bytes: [UInt8] = []

        mutating func add(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.littleEndian) { bytes += Array($0) }
        }

        /// Adds what both headers of a member have: flags, method, time, date, checksum and both sizes.
        mutating func add(common member: Member, _ date: UInt16, _ time: UInt16) {
            add(ZIPFile.flags)
            add(UInt16(0))
            add(time)
            add(date)
            add(member.checksum)
            for _ in 0..<2 { add(UInt32(min(member.size, ZIPFile.max32))) }
        }

        /// Adds the extra field of ZIP64 (§4.5.3).
        mutating func add(extra numbers: [UInt64]) {
            add(UInt16(1))
            add(UInt16(8 * numbers.count))
            for number in numbers { add(number) }
        }
    }

    /// Returns a time as MS-DOS writes it. Its years are 1980 to 2107, its seconds are even.
    private static func dosTime(_ seconds: Int64) -> (date: UInt16, time: UInt16) {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let date = Date(timeIntervalSince1970: TimeInterval(seconds))
        let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
        let year = min(127, max(0, (parts.year ?? 1980) - 1980))
        let day = UInt16(year) << 9 | UInt16(parts.month ?? 1) << 5 | UInt16(parts.day ?? 1)
        let time = UInt16(parts.hour ?? 0) << 11 | UInt16(parts.minute ?? 0) << 5 | UInt16((parts.second ?? 0) / 2)
        return (day, time)
    }
}
