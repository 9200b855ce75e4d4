import TestSupport
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

func ogg(_ bytes: [UInt8], _ magic: String = "test") throws(MediaFileError) -> OggFile {
    try bytes.withRawBytes { bytes throws(MediaFileError) in
        try OggFile(bytes, startingWith: Array(magic.utf8))
    }
}

func opus(_ bytes: [UInt8]) throws(MediaFileError) -> OpusFile {
    try bytes.withRawBytes { bytes throws(MediaFileError) in try OpusFile(bytes) }
}

extension OggWriter {
    /// Encodes a page with these packets.
    mutating func page(_ packets: [[UInt8]], isLast: Bool = false) -> [UInt8] {
        for packet in packets { _ = packet.withUnsafeBytes { append($0, granulePosition: 0) } }
        return page(isLast: isLast)
    }
}

@Suite("An Ogg file")
struct MediaOggTests {
    private static let first = Array("test".utf8)

    private func packets(_ file: OggFile) -> [[UInt8]] { file.packets.map { Array(file.bytes[$0]) } }

    @Test("has the checksum that other programs expect")
    func checksum() {
        // Ogg's CRC starts with zeros, unlike CRC-32/MPEG-2, which starts with ones. So the checksum of zeros and a
        // final 1 is the polynomial.
        let page = [UInt8](repeating: 0, count: 26) + [1]
        #expect(page.withUnsafeBytes { OggChecksum.of(page: $0) } == 0x04c1_1db7)
    }

    @Test(
        "returns packets of all lengths around full segments",
        arguments: [0, 1, 254, 255, 256, 510, 9_000])
    func lengths(_ length: Int) throws {
        var writer = OggWriter(serial: 7)
        let packet = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = writer.page([Self.first]) + writer.page([packet, [9]], isLast: true)
        let file = try ogg(bytes)
        #expect(packets(file) == [Self.first, packet, [9]])
        #expect(!file.isDamaged)
    }

    @Test("reads packets that span several pages")
    func continued() throws {
        // These pages are written by hand, because our writer never splits packets. The packet 5 5 5 … spans three
        // pages.
        let long = [UInt8](repeating: 5, count: 600)
        var bytes = page(0, flags: 2, lacing: [4], body: Self.first)
        bytes += page(1, flags: 0, lacing: [1, 255], body: [8] + long.prefix(255))
        bytes += page(2, flags: 1, lacing: [255], body: Array(long[255..<510]))
        bytes += page(3, flags: 5, lacing: [90, 2], body: long.suffix(90) + [6, 6])
        let file = try ogg(bytes)
        #expect(packets(file) == [Self.first, [8], long, [6, 6]])
        #expect(!file.isDamaged)
        // Without the third page, only that packet is lost.
        let cut = try ogg(
            bytes.removing(page(2, flags: 1, lacing: [255], body: Array(long[255..<510]))))
        #expect(packets(cut) == [Self.first, [8], [6, 6]])
        #expect(cut.isDamaged)
    }

    @Test("is read beyond a damaged page")
    func damaged() throws {
        var writer = OggWriter(serial: 1)
        let (one, two, three) = (
            writer.page([Self.first, [1]]), writer.page([[2, 2]]), writer.page([[3]], isLast: true)
        )
        var broken = two
        broken[broken.count - 1] ^= 1
        let file = try ogg(one + broken + three)
        #expect(packets(file) == [Self.first, [1], [3]])
        #expect(file.isDamaged)
    }

    @Test("with too many invalid page starts is rejected")
    func bait() {
        var bytes = page(0, flags: 2, lacing: [4], body: Self.first)
        for _ in 0...OggFile.maxBadPages { bytes += Array("OggS".utf8) + [0] }
        #expect { try ogg(bytes) } throws: { ($0 as? MediaFileError)?.code == .damaged }
    }

    @Test("with several streams yields the requested one, and only its first link")
    func several() throws {
        var (other, wanted) = (OggWriter(serial: 1), OggWriter(serial: 2))
        var bytes = other.page([Array("video".utf8)]) + wanted.page([Self.first])
        bytes +=
            other.page([[1]]) + wanted.page([[2]]) + other.page([[3]], isLast: true) + wanted.page([[4]], isLast: true)
        var chained = OggWriter(serial: 3)
        bytes += chained.page([Self.first, [5]], isLast: true)
        #expect(packets(try ogg(bytes)) == [Self.first, [2], [4]])
        #expect { try ogg(bytes, "nothing") } throws: { ($0 as? MediaFileError)?.code == .otherCodec }
    }

    @Test("with an endless packet is rejected")
    func endless() {
        var bytes = page(0, flags: 2, lacing: [4], body: Self.first)
        for number in 1...3 as ClosedRange<UInt32> {
            bytes += page(
                number, flags: number == 1 ? 0 : 1, lacing: [UInt8](repeating: 255, count: 255),
                body: [UInt8](repeating: 1, count: 255 * 255))
        }
        #expect { try ogg(bytes) } throws: { ($0 as? MediaFileError)?.code == .tooLarge }
    }

    @Test("truncated anywhere keeps the packets of its complete pages")
    func truncated() throws {
        var writer = OggWriter(serial: 1)
        let pages = [writer.page([Self.first]), writer.page([[1], [2, 2]]), writer.page([[3]])]
        let bytes = pages.flatMap(\.self)
        for count in pages[0].count..<bytes.count {
            let expected = count < pages[0].count + pages[1].count ? 1 : 3
            #expect(try ogg(Array(bytes.prefix(count))).packets.count == expected)
        }
    }

    @Test("changed at random never traps", arguments: [4, 5, 6] as [UInt64])
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            var bytes = page(0, flags: 2, lacing: [4], body: Self.first)
            for number in 1...4 as ClosedRange<UInt32> {
                let lacing = (0..<Int.random(in: 0..<6, using: &random)).map { _ in
                    UInt8.random(in: 250...255, using: &random)
                }
                let body = [UInt8](repeating: 7, count: lacing.reduce(0) { $0 + Int($1) })
                bytes += page(number, flags: .random(in: 0...7, using: &random), lacing: lacing, body: body)
            }
            if Bool.random(using: &random) { bytes[.random(in: 4..<bytes.count, using: &random)] ^= 0x10 }
            guard let file = try? ogg(bytes) else { continue }
            #expect(file.packets.allSatisfy { $0.upperBound <= file.bytes.count }, "seed \(seed)")
        }
    }

    private func page(_ number: UInt32, flags: UInt8, lacing: [UInt8], body: [UInt8]) -> [UInt8] {
        var page = Array("OggS".utf8) + [0, flags]
        page.append(littleEndian: UInt64(0))
        page.append(littleEndian: UInt32(1))
        page.append(littleEndian: number)
        page.append(littleEndian: UInt32(0))
        page += [UInt8(lacing.count)] + lacing + body
        let sum = page.withUnsafeBytes { OggChecksum.of(page: $0) }
        for index in 0..<4 { page[22 + index] = UInt8(truncatingIfNeeded: sum >> UInt32(8 * index)) }
        return page
    }
}

extension [UInt8] {
    fileprivate func removing(_ part: [UInt8]) -> [UInt8] {
        guard let start = indices.first(where: { self[$0...].starts(with: part) }) else { return self }
        return Array(self[..<start] + self[(start + part.count)...])
    }
}
