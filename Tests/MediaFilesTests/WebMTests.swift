import RTC
import TestSupport
import Testing

@testable import MediaFiles

/// A file in memory, as the edits of a writer make it.
struct MemoryFile {
    private(set) var bytes: [UInt8] = []
    /// The size of the file after each whole block, with the block's end in milliseconds.
    private(set) var ends: [(size: Int, blocks: Int)] = []
    var writer: WebMWriter

    init(_ video: RecordedVideo = .vp8) throws {
        writer = try #require(WebMWriter(video: video, date: 0, application: "Confab 1.0"))
    }

    mutating func write(_ block: WebMWriter.Block) {
        for edit in writer.write(block) { edit.apply(to: &bytes) }
        ends.append((bytes.count, ends.count + 1))
    }

    mutating func finish() {
        for edit in writer.finish() { edit.apply(to: &bytes) }
    }

    /// A recording of this length: 25 frames a second with a keyframe every two seconds, and 50 audio packets.
    static func sample(milliseconds: Int64, finished: Bool) throws -> MemoryFile {
        var file = try MemoryFile()
        for time in stride(from: Int64(0), to: milliseconds, by: 20) {
            if time % 40 == 0 { file.write(video(time, isKeyframe: time % 2_000 == 0)) }
            file.write(audio(time))
        }
        if finished { file.finish() }
        return file
    }

    static func video(_ time: Int64, isKeyframe: Bool, width: UInt16 = 320, height: UInt16 = 240) -> WebMWriter.Block {
        var bytes: [UInt8] = isKeyframe ? [0x10, 0, 0, 0x9d, 0x01, 0x2a] : [0x11, 0, 0]
        if isKeyframe {
            bytes.append(littleEndian: width)
            bytes.append(littleEndian: height)
        }
        bytes += [UInt8](repeating: UInt8(truncatingIfNeeded: time), count: 40)
        return WebMWriter.Block(isVideo: true, time: time, isKeyframe: isKeyframe, bytes: bytes)
    }

    /// A packet of 20 ms of silence.
    static func audio(_ time: Int64) -> WebMWriter.Block {
        WebMWriter.Block(isVideo: false, time: time, isKeyframe: true, bytes: [0xf8, 0xff, 0xfe])
    }
}

@Suite("Recordings in WebM")
struct WebMTests {
    @Test(
        "sizes have as few bytes as possible, and never the form of an unknown size",
        arguments: [0, 126, 127, 16_382, 16_383])
    func sizes(_ size: Int) throws {
        let bytes = EBML.size(size)
        #expect(bytes.count == (size < 127 ? 1 : size < 16_383 ? 2 : 3))
        let element = try #require(EBMLElement(EBML.id(EBMLID.simpleBlock) + bytes))
        #expect(element == EBMLElement([0xa3] + bytes) && element.size == Int64(size))
        #expect(EBMLElement([0xa3] + EBML.unknownSize)?.size == nil)
    }

    @Test("a voided element has the length of what it replaces", arguments: [2, 11, 92, 128, 129, 300])
    func voids(_ length: Int) {
        let bytes = EBML.void(length: length)
        let element = EBMLElement(bytes)
        #expect(bytes.count == length && element?.size == Int64(length - (element?.headerLength ?? 0)))
    }

    @Test("the file begins with the bytes of the specification")
    func golden() throws {
        var file = try MemoryFile()
        file.write(MemoryFile.video(0, isKeyframe: true))
        // EBML: version 1, read version 1, ids up to 4 bytes, sizes up to 8, "webm" version 4, read version 2.
        let ebml: [UInt8] = [
            0x1a, 0x45, 0xdf, 0xa3, 0x9f, 0x42, 0x86, 0x81, 1, 0x42, 0xf7, 0x81, 1, 0x42, 0xf2, 0x81, 4, 0x42, 0xf3,
            0x81, 8,
            0x42, 0x82, 0x84, 0x77, 0x65, 0x62, 0x6d, 0x42, 0x87, 0x81, 4, 0x42, 0x85, 0x81, 2,
        ]
        // A Segment of unknown size, and 92 bytes for the index.
        let segment: [UInt8] = [0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xec, 0xda]
        #expect(file.bytes.starts(with: ebml + segment))
        let cluster = try #require(WebMLayout(file.bytes)).end
        // A Cluster of unknown size at 0 ms, and a block of 54 bytes: track 1, 0 ms, keyframe.
        let block: [UInt8] = [
            0x1f, 0x43, 0xb6, 0x75, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xe7, 0x81, 0, 0xa3, 0xb6, 0x81, 0,
            0, 0x80,
        ]
        #expect(file.bytes.dropFirst(Int(cluster)).starts(with: block))
    }

    @Test(
        "ffprobe reads codecs, the largest size, and the duration to a tenth of a second",
        .enabled(if: FFmpegTools.areHere))
    func probed() throws {
        var file = try MemoryFile.sample(milliseconds: 6_000, finished: false)
        file.write(MemoryFile.video(6_000, isKeyframe: true, width: 1_280, height: 720))
        file.finish()
        #expect(try FFmpegTools.probe(file.bytes, "stream=codec_name", stream: "a") == ["opus"])
        let video = try FFmpegTools.probe(file.bytes, "stream=codec_name,width,height", stream: "v")
        #expect(video == ["vp8,1280,720"])
        let duration = try #require(Double(try FFmpegTools.probe(file.bytes, "format=duration").first ?? ""))
        #expect(abs(duration - 6) <= 0.1, "\(duration) s")
        let packets = try FFmpegTools.probe(file.bytes, "packet=pts_time", stream: "a")
        #expect(packets.count == 300)
    }

    @Test("a file of sound alone has only an audio track", .enabled(if: FFmpegTools.areHere))
    func soundAlone() throws {
        var file = try MemoryFile()
        for time in stride(from: Int64(0), to: 12_000, by: 20) { file.write(MemoryFile.audio(time)) }
        file.finish()
        #expect(try FFmpegTools.probe(file.bytes, "stream=codec_name") == ["opus"])
    }

    @Test("a Cluster begins at a keyframe after a second, and after five seconds without one")
    func clusters() throws {
        var file = try MemoryFile()
        for time in stride(from: Int64(0), through: 9_000, by: 500) {
            file.write(MemoryFile.video(time, isKeyframe: time == 0 || time == 500 || time == 1_500))
        }
        let starts = file.bytes.indices.filter { file.bytes[$0...].starts(with: EBML.id(EBMLID.cluster)) }
        // Each Cluster has a timestamp behind its size.
        let times = starts.map { start in
            let size = Int(file.bytes[start + 13] & 0x7f)
            return file.bytes[start + 14..<start + 14 + size].reduce(0) { $0 << 8 | Int($1) }
        }
        #expect(times == [0, 1_500, 6_500])
    }

    @Test("time never goes back within a track")
    func monotonic() throws {
        var file = try MemoryFile()
        for time: Int64 in [0, 40, 40, 30, 80] { file.write(MemoryFile.video(time, isKeyframe: time == 0)) }
        file.finish()
        guard FFmpegTools.areHere else { return }
        let times = try FFmpegTools.probe(file.bytes, "packet=pts", stream: "v")
        #expect(times.map { $0.trimmingSuffix(",") } == ["0", "40", "41", "42", "80"])
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: Character) -> String { last == suffix ? String(dropLast()) : self }
}
