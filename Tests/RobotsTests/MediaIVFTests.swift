import TestSupport
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

func ivf(_ bytes: [UInt8]) throws(MediaFileError) -> IVFFile {
    try bytes.withRawBytes { bytes throws(MediaFileError) in try IVFFile(bytes) }
}

@Suite("An IVF file")
struct MediaIVFTests {
    private let header = IVFHeader(width: 320, height: 240, unitNumerator: 1, unitDenominator: 90_000, frameCount: 2)
    private let one: [UInt8] = [1, 2, 3]
    private let other: [UInt8] = [4]

    private var bytes: [UInt8] {
        header.bytes + IVFFrame.header(time: 7, size: one.count) + one
            + IVFFrame.header(time: 3_000, size: other.count) + other
    }

    @Test("is read back unchanged")
    func roundTrip() throws {
        let file = try ivf(bytes)
        #expect(file.header == header)
        #expect(file.header.bytes == header.bytes)
        #expect(file.frames.map(\.time) == [7, 3_000])
        #expect(file.frames.map { Array(bytes[$0.range]) } == [one, other])
        #expect(!file.isTruncated)
    }

    @Test("has its fields at the same offsets as in libvpx")
    func fields() {
        let expected: [UInt8] = [
            0x44, 0x4b, 0x49, 0x46, 0, 0, 32, 0, 0x56, 0x50, 0x38, 0x30, 0x40, 1, 0xf0, 0, 0x90, 0x5f, 1, 0, 1, 0, 0, 0,
            2, 0, 0, 0, 0, 0, 0, 0,
        ]
        #expect(header.bytes == expected)
    }

    @Test("truncated anywhere keeps its complete frames and reports the truncation")
    func truncated() throws {
        for count in 0..<bytes.count {
            let part = Array(bytes.prefix(count))
            guard count >= IVFHeader.length else {
                #expect(throws: MediaFileError.self) { try ivf(part) }
                continue
            }
            let file = try ivf(part)
            #expect(file.frames.count == (count < 32 + 12 + 3 ? 0 : 1))
            #expect(file.isTruncated == (count != 32 && count != 32 + 12 + 3))
        }
    }

    @Test("skips the empty frames of dropped frames")
    func dropped() throws {
        let file = try ivf(header.bytes + IVFFrame.header(time: 1, size: 0) + IVFFrame.header(time: 2, size: 1) + [9])
        #expect(file.frames.map(\.time) == [2])
    }

    @Test("may have a header that is longer than usual")
    func longHeader() throws {
        var bytes = header.bytes
        bytes[6] = 36
        #expect(try ivf(bytes + [9, 9, 9, 9] + IVFFrame.header(time: 2, size: 1) + [8]).frames.count == 1)
        #expect(throws: MediaFileError.self) { try ivf(bytes + [9, 9, 9]) }
        bytes[6] = 31
        #expect(throws: MediaFileError.self) { try ivf(bytes) }
    }

    @Test(
        "with an invalid time unit is rejected",
        arguments: [(0, 1), (1, 0), (61, 1), (.max, 1), (1, .max)] as [(UInt32, UInt32)])
    func units(numerator: UInt32, denominator: UInt32) {
        var header = header
        (header.unitNumerator, header.unitDenominator) = (numerator, denominator)
        #expect(throws: MediaFileError.self) { try ivf(header.bytes) }
    }

    @Test("needs its signature", arguments: [[], [0x44], Array("OggS and more".utf8)] as [[UInt8]])
    func others(_ bytes: [UInt8]) {
        #expect { try ivf(bytes) } throws: { ($0 as? MediaFileError)?.code == .notThisFormat }
    }

    @Test("with an enormous frame size counts as truncated")
    func hugeFrame() throws {
        let file = try ivf(header.bytes + [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        #expect(file.isTruncated && file.frames.isEmpty)
    }

    @Test("with random bytes after the signature never traps", arguments: [1, 2, 3] as [UInt64])
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            var bytes = header.bytes
            for _ in 0..<Int.random(in: 0..<80, using: &random) { bytes.append(.random(in: 0...255, using: &random)) }
            for _ in 0..<3 {
                bytes[Int.random(in: 4..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            guard let file = try? ivf(bytes) else { continue }
            #expect(file.frames.allSatisfy { !$0.range.isEmpty && $0.range.upperBound <= bytes.count }, "seed \(seed)")
        }
    }
}
