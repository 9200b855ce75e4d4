import Testing

@testable import MediaFiles

@Suite("What the files of an archive contain")
struct ArchiveFileTests {
    private func start(_ bytes: [UInt8]) -> MatroskaStart? {
        MatroskaStart(size: Int64(bytes.count)) { offset, count in
            Array(bytes.dropFirst(Int(offset)).prefix(count))
        }
    }

    @Test("a finished recording states its tracks, its first picture and its length")
    func finished() throws {
        let start = try #require(start(try MemoryFile.sample(milliseconds: 3_000, finished: true).bytes))
        #expect(start.hasVideo && start.hasAudio && start.firstFrame == 0 && start.duration == 3_000)
    }

    @Test("a recording that is still written has both tracks and no length")
    func growing() throws {
        let start = try #require(start(try MemoryFile.sample(milliseconds: 3_000, finished: false).bytes))
        #expect(start.hasVideo && start.hasAudio && start.firstFrame == 0 && start.duration == nil)
    }

    @Test("the first picture is found behind seconds of sound, and a track without blocks is gone after the end")
    func firstFrame() throws {
        var file = try MemoryFile()
        for time in stride(from: Int64(0), to: 7_000, by: 20) { file.write(MemoryFile.audio(time)) }
        var sound = file
        sound.finish()
        let silent = try #require(start(sound.bytes))
        #expect(silent.hasAudio && !silent.hasVideo && silent.firstFrame == nil)
        file.write(MemoryFile.video(7_000, isKeyframe: true))
        #expect(start(file.bytes)?.firstFrame == 7_000)
    }

    @Test("a file that is cut anywhere says what is in it, or that it is not a recording")
    func cut() throws {
        let bytes = try MemoryFile.sample(milliseconds: 200, finished: true).bytes
        for count in 0..<bytes.count {
            guard let start = start(Array(bytes.prefix(count))) else { continue }
            #expect(start.hasVideo && start.hasAudio && (start.firstFrame ?? 0) == 0)
        }
        #expect(start(Array("no recording".utf8)) == nil)
    }

    private func clusters(_ bytes: [UInt8]) throws -> [MatroskaClusters.Cluster] {
        MatroskaClusters(try #require(start(bytes)), size: Int64(bytes.count)) { offset, count in
            Array(bytes.dropFirst(Int(offset)).prefix(count))
        }.all
    }

    @Test("clusters begin at the same places while a recording is written and after its end")
    func clustersOfGrowingFile() throws {
        var file = try MemoryFile()
        var seen: [MatroskaClusters.Cluster] = []
        for time in stride(from: Int64(0), to: 15_000, by: 20) {
            // Without video from 8 s on, so clusters begin with audio.
            if time % 40 == 0, time < 8_000 { file.write(MemoryFile.video(time, isKeyframe: time % 2_000 == 0)) }
            file.write(MemoryFile.audio(time))
            let now = try clusters(file.bytes)
            #expect(now.starts(with: seen), "at \(time) ms")
            seen = now
        }
        #expect(seen.map(\.time) == [0, 2_000, 4_000, 6_000, 11_000])
        #expect(seen.map(\.startsWithKeyframe) == [true, true, true, true, false])
        file.finish()
        #expect(try clusters(file.bytes) == seen)
    }

    @Test("a cluster with the beginning of its file is a recording, and is found by the time of a keyframe")
    func clusterAlone() throws {
        let bytes = try MemoryFile.sample(milliseconds: 9_000, finished: false).bytes
        let all = MatroskaClusters(try #require(start(bytes)), size: Int64(bytes.count)) { offset, count in
            Array(bytes.dropFirst(Int(offset)).prefix(count))
        }
        let (first, end) = (Int(try #require(all.start(for: -1))), Int(try #require(all.end(after: 6_000))))
        for time: Int64 in [2_000, 3_999] {
            let begin = Int(try #require(all.start(for: time)))
            let part = Array(bytes[..<first] + bytes[begin..<end])
            #expect(start(part)?.firstFrame == 2_000)
            #expect(try clusters(part).map(\.time) == [2_000, 4_000])
        }
        #expect(all.end(after: 8_001) == nil)
        #expect(try clusters(Array(bytes.prefix(first))).isEmpty)
    }

    private static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
        EBML.bigEndian(UInt64(8 + content.count), count: 4) + Array(kind.utf8) + content
    }

    private static func track(_ handler: String, samples: UInt64) -> [UInt8] {
        let sizes = box("stsz", [0, 0, 0, 0, 0, 0, 0, 0] + EBML.bigEndian(samples, count: 4))
        let kind = box("hdlr", [0, 0, 0, 0, 0, 0, 0, 0] + Array(handler.utf8))
        return box("trak", box("mdia", kind + box("minf", box("stbl", sizes))))
    }

    private func tracks(_ bytes: [UInt8]) -> MP4Tracks? {
        MP4Tracks(size: Int64(bytes.count)) { offset, count in
            Array(bytes.dropFirst(Int(offset)).prefix(count))
        }
    }

    @Test("an MP4 file has the samples of its tracks, and none if it is cut anywhere")
    func mp4() throws {
        let index = Self.box("moov", Self.track("vide", samples: 75) + Self.track("soun", samples: 141))
        let file = Self.box("ftyp", Array("isom".utf8)) + Self.box("mdat", [1, 2, 3]) + index
        #expect(
            tracks(file)?.tracks == [MP4Tracks.Track(kind: "vide", samples: 75), .init(kind: "soun", samples: 141)])
        #expect(tracks(file)?.frames == 75)
        for count in 0..<file.count { #expect(tracks(Array(file.prefix(count))) == nil) }
        #expect(tracks(file + [0]) == nil)
        // A size of 64 bits.
        let large = [0, 0, 0, 1] + Array("mdat".utf8) + EBML.bigEndian(17, count: 8) + [7]
        #expect(tracks(Self.box("ftyp", []) + large + index)?.frames == 75)
        // Another index, and no file type, are not what ffmpeg writes.
        #expect(tracks(Self.box("ftyp", []) + index + index) == nil && tracks(index) == nil)
    }
}
