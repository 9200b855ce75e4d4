import TestSupport
import Testing

@testable import MediaFiles

/// A crash can leave any beginning of a file. Each becomes the file that ended there.
@Suite("Recovery of recordings")
struct WebMRecoveryTests {
    @Test("a file cut at any byte becomes, byte for byte, the file that ended after its last whole block")
    func everyCut() throws {
        let whole = try MemoryFile.sample(milliseconds: 3_000, finished: false)
        let header = try #require(WebMLayout(whole.bytes)).end
        var expected: [UInt8]?
        var ends = whole.ends[...]
        for cut in 0...whole.bytes.count {
            if let next = ends.first, next.size <= cut {
                ends.removeFirst()
                expected = try Self.finished(whole, blocks: next.blocks)
            }
            // Later Clusters patch the size of earlier ones, so the file is written again up to the cut.
            let left = Array(try Self.unfinished(whole, cut).prefix(cut))
            #expect(WebMRecovery.finish(left) == expected, "cut at \(cut), header \(header)")
        }
    }

    @Test("finishing is complete after one pass, and repeats after a crash during it")
    func repeated() throws {
        let whole = try MemoryFile.sample(milliseconds: 2_500, finished: false)
        var scan = WebMScan(fileSize: Int64(whole.bytes.count))
        while let range = scan.wanted { scan.take(Array(whole.bytes[Int(range.lowerBound)..<Int(range.upperBound)])) }
        let edits = scan.edits()
        let finished = try #require(WebMRecovery.finish(whole.bytes))
        for count in 0...edits.count {
            var file = whole.bytes
            for edit in edits.prefix(count) { edit.apply(to: &file) }
            #expect(WebMRecovery.finish(file) == finished, "a crash after \(count) of \(edits.count) edits")
        }
    }

    @Test(
        "ffprobe reads a file cut at a random byte up to its last whole block, before and after recovery",
        .enabled(if: FFmpegTools.areHere))
    func probed() throws {
        let seed = UInt64.random(in: 0...999_999)
        print("cuts of recordings: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let whole = try MemoryFile.sample(milliseconds: 60_000, finished: false)
        for _ in 0..<12 {
            let cut = Int.random(in: 2_000...whole.bytes.count, using: &random)
            let left = Array(whole.bytes.prefix(cut))
            let blocks = whole.ends.last { $0.size <= cut }?.blocks
            // It says that the file ended prematurely.
            let packets = try FFmpegTools.probe(left, "packet=pts", allowsErrors: true)
            #expect(packets.count == blocks, "cut at \(cut), seed \(seed)")
            let finished = try #require(WebMRecovery.finish(left))
            #expect(try FFmpegTools.probe(finished, "packet=pts").count == blocks, "cut at \(cut), seed \(seed)")
        }
    }

    @Test("bytes that are no recording are refused, and damaged ones never trap")
    func hostile() throws {
        #expect(WebMRecovery.finish([]) == nil)
        #expect(WebMRecovery.finish([UInt8](repeating: 0xff, count: 500)) == nil)
        let seed = UInt64.random(in: 0...999_999)
        print("damaged recordings: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let whole = try MemoryFile.sample(milliseconds: 1_500, finished: true).bytes
        for _ in 0..<2_000 {
            var bytes = whole
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let finished = WebMRecovery.finish(bytes) else { continue }
            #expect(WebMRecovery.finish(finished) == finished, "seed \(seed)")
        }
    }

    private static func finished(_ whole: MemoryFile, blocks: Int) throws -> [UInt8] {
        var file = try replay(blocks)
        file.finish()
        return file.bytes
    }

    /// Returns what was on disk when the file had `size` bytes: the whole blocks before it, and the block that was being written.
    private static func unfinished(_ whole: MemoryFile, _ size: Int) throws -> [UInt8] {
        let complete = whole.ends.filter { $0.size <= size }.count
        let before = try replay(complete).bytes
        return before + whole.bytes[before.count...]
    }

    /// Files of the sample's first blocks, by their number.
    private static func replay(_ blocks: Int) throws -> MemoryFile {
        var file = try MemoryFile()
        var count = 0
        for time in stride(from: Int64(0), to: 3_000, by: 20) {
            if time % 40 == 0, count < blocks {
                file.write(MemoryFile.video(time, isKeyframe: time % 2_000 == 0))
                count += 1
            }
            if count < blocks {
                file.write(MemoryFile.audio(time))
                count += 1
            }
        }
        return file
    }
}
