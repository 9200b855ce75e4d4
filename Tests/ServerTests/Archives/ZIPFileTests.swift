import Foundation
import TestSupport
import Testing

@testable import Server

@Suite("ZIP files that are computed") struct ZIPFileTests {
    private static let time: Int64 = 1_790_000_001

    private func members(_ contents: [(String, [UInt8])]) -> [ZIPFile.Member] {
        contents.map { ZIPFile.Member(name: $0.0, size: UInt64($0.1.count), checksum: CRC32.of($0.1)) }
    }

    private func bytes(_ zip: ZIPFile, _ contents: [(String, [UInt8])], in range: Range<UInt64>) -> [UInt8] {
        zip.pieces(in: range).flatMap { piece in
            switch piece {
            case .bytes(let bytes): bytes
            case .content(let index, let range): Array(contents[index].1[Int(range.lowerBound)..<Int(range.upperBound)])
            }
        }
    }

    /// Runs a program and returns what it prints. Fails if it does.
    private func output(_ program: String, _ arguments: [String]) async throws -> String {
        let result = try await blocking { try ChildProgram.run(program, arguments) }
        try #require(result.status == 0, "\(program): \(result.text)\(result.standardError)")
        return result.text
    }

    private func withFile<Result>(_ body: (String) async throws -> Result) async throws -> Result {
        let path = NSTemporaryDirectory() + "confab-zip-\(UUID().uuidString).zip"
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }

    @Test func `the checksum is the one of the standard, however the bytes are split`() {
        // The check value of CRC-32/ISO-HDLC.
        #expect(CRC32.of(Array("123456789".utf8)) == 0xCBF4_3926)
        #expect(CRC32.of([]) == 0)
        var random = SeededGenerator(seed: 7)
        let bytes = (0..<1000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        for _ in 0..<50 {
            var crc = CRC32()
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = Array(rest.prefix(Int.random(in: 1...40, using: &random)))
                part.withUnsafeBytes { crc.add($0) }
                rest = rest.dropFirst(part.count)
            }
            #expect(crc.value == CRC32.of(bytes))
        }
    }

    @Test func `Python and unzip read it`() async throws {
        let contents: [(String, [UInt8])] = [
            ("7f3a.json", Array("{}".utf8)), ("a.webm", (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }),
            ("empty.webm", []),
        ]
        let zip = ZIPFile(members(contents), at: Self.time)
        let whole = bytes(zip, contents, in: 0..<zip.size)
        #expect(UInt64(whole.count) == zip.size)
        try await withFile { path in
            try Data(whole).write(to: URL(filePath: path))
            let script = """
                import sys, zipfile
                z = zipfile.ZipFile(sys.argv[1])
                assert z.testzip() is None
                print([(i.filename, i.file_size, i.date_time) for i in z.infolist()])
                """
            let listed = try await output("python3", ["-c", script, path])
            let date = "(2026, 9, 21, 14, 13, 20)"
            #expect(
                listed == "[('7f3a.json', 2, \(date)), ('a.webm', 100000, \(date)), ('empty.webm', 0, \(date))]\n")
            if FileManager.default.isExecutableFile(atPath: "/usr/bin/unzip") {
                #expect(try await output("unzip", ["-t", path]).contains("No errors detected"))
            }
        }
    }

    @Test func `every range is that part of the whole`() {
        let contents: [(String, [UInt8])] = [("a", Array("hello".utf8)), ("b", Array("world!".utf8))]
        let zip = ZIPFile(members(contents), at: Self.time)
        let whole = bytes(zip, contents, in: 0..<zip.size)
        for start in 0..<zip.size {
            for end in start...zip.size {
                #expect(bytes(zip, contents, in: start..<end) == Array(whole[Int(start)..<Int(end)]))
            }
        }
        #expect(zip.pieces(in: zip.size..<(zip.size + 9)).isEmpty)
    }

    @Test func `Python reads the sizes and places of members beyond 4 GiB`() async throws {
        let sizes: [UInt64] = [5 << 30, 3, UInt64(UInt32.max), 7]
        let members = sizes.enumerated().map {
            ZIPFile.Member(name: "\($0.offset).webm", size: $0.element, checksum: 1)
        }
        let zip = ZIPFile(members, at: Self.time)
        #expect(zip.size > 9 << 30)
        try await withFile { path in
            // A file with holes: only the headers take space.
            _ = FileManager.default.createFile(atPath: path, contents: nil)
            let file = try FileHandle(forWritingTo: URL(filePath: path))
            var offset: UInt64 = 0
            for piece in zip.pieces(in: 0..<zip.size) {
                switch piece {
                case .bytes(let bytes):
                    try file.seek(toOffset: offset)
                    try file.write(contentsOf: bytes)
                    offset += UInt64(bytes.count)
                case .content(_, let range): offset += UInt64(range.count)
                }
            }
            try file.close()
            #expect(offset == zip.size)
            // Opening a member reads its local header, and compares its name.
            let script = """
                import sys, zipfile
                z = zipfile.ZipFile(sys.argv[1])
                for i in z.infolist(): z.open(i).close()
                print([i.file_size for i in z.infolist()])
                """
            #expect(try await output("python3", ["-c", script, path]) == "\(sizes)\n")
        }
    }

    @Test func `more than 65,535 members are counted`() async throws {
        let members = (0..<65_536).map { ZIPFile.Member(name: "\($0)", size: 0, checksum: 0) }
        let zip = ZIPFile(members, at: Self.time)
        try await withFile { path in
            let whole = zip.pieces(in: 0..<zip.size).flatMap { piece -> [UInt8] in
                if case .bytes(let bytes) = piece { bytes } else { [] }
            }
            try Data(whole).write(to: URL(filePath: path))
            let script = "import sys, zipfile; print(len(zipfile.ZipFile(sys.argv[1]).infolist()))"
            #expect(try await output("python3", ["-c", script, path]) == "65536\n")
        }
    }
}
