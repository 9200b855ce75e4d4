import Foundation
import MediaFiles
import TestSupport
import Testing

@testable import Composing

@Suite("Composed files", .enabled(if: TestArchive.hasFFmpeg, "ffmpeg is not installed"))
struct ComposeJobTests {
    private static func log(_ lines: [(Int64, ArchiveEvent)]) -> ArchiveLog { ComposePlanTests.log(lines) }
    private static let (first, second) = (TestArchive.brightness(3), TestArchive.brightness(20))

    /// Two streams, of which the second one joins and leaves.
    private static let two: [(Int64, ArchiveEvent)] = [
        (0, ComposePlanTests.stream("x")), (0, ComposePlanTests.file("x")), (1_001, ComposePlanTests.stream("y")),
        (1_001, ComposePlanTests.file("y")), (2_999, .gone(stream: "y")), (4_000, .end(reason: "")),
    ]

    private static func makeTwo(_ archive: TestArchive) async throws {
        try await archive.make("x.webm", first, seconds: 4)
        try await archive.make("y.webm", second, seconds: 2)
    }

    @Test("each change is on its frame, and the file is H.264 and AAC with the index first")
    func pictures() async throws {
        try await TestArchive.with { archive in
            try await Self.makeTwo(archive)
            let result = try await archive.compose(Self.log(Self.two))
            #expect(result.made == 4 && result.kept == 0 && result.damaged.isEmpty && result.frames == 100)
            let pictures = try await archive.pictures()
            #expect(pictures.count == 100)
            // 1001 ms is rounded up to frame 26, and 2999 ms down to frame 74.
            for frame in [0, 25, 74, 99] { #expect(pictures.shows(Self.first, frame, 320, 240), "frame \(frame)") }
            for frame in [26, 50, 73] {
                #expect(pictures.shows(Self.first, frame, 160, 240) && pictures.shows(Self.second, frame, 480, 240))
                // The cells are higher than the videos.
                #expect(pictures.shows(TestArchive.black, frame, 160, 20))
            }
            try await Self.check(archive, seconds: 4)
            #expect(!FileManager.default.fileExists(atPath: archive.path(JobFiles.work)))
        }
    }

    /// Checks the format of a composed file.
    private static func check(_ archive: TestArchive, seconds: Double) async throws {
        let bytes = try archive.bytes(ArchiveFileName.composed)
        let tracks = try #require(MP4Tracks(bytes))
        #expect(tracks.frames == Int(seconds * 25))
        let sound = try #require(tracks.tracks.first { $0.kind == "soun" })
        #expect(abs(Double(sound.samples) * 1_024 / 48_000 - seconds) <= 0.1)
        let text = String(decoding: bytes, as: Unicode.ASCII.self)
        let (index, data) = (try #require(text.range(of: "moov")), try #require(text.range(of: "mdat")))
        #expect(index.lowerBound < data.lowerBound)
        #expect(text.contains("avc1") && text.contains("mp4a"))
        #expect(abs(try await archive.samples().count - Int(seconds * 48_000)) <= 4_800)
    }

    @Test("flash and beep are together within 40 ms, also of a stream that joins later", arguments: [0, 1_234])
    func lipSync(start: Int64) async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("x.webm", seconds: 5)
            let lines: [(Int64, ArchiveEvent)] = [
                (start, ComposePlanTests.stream("x")), (start, ComposePlanTests.file("x")), (6_000, .end(reason: "")),
            ]
            _ = try await archive.compose(Self.log(lines))
            try await Self.checkLipSync(archive)
        }
    }

    /// Checks that each flash has a beep.
    private static func checkLipSync(_ archive: TestArchive) async throws {
        let pictures = try await archive.pictures()
        let flashes = (0..<pictures.count).filter { frame in
            pictures.brightness(frame, 320, 240) > 150 && pictures.brightness(frame - 1, 320, 240) <= 150
        }
        let beeps = soundOnsets(try await archive.samples())
        #expect(flashes.count >= 3 && beeps.count >= 4)
        var worst = 0.0
        for flash in flashes {
            let time = Double(flash) / 25
            let nearest = try #require(beeps.min { abs($0 - time) < abs($1 - time) })
            worst = max(worst, abs(nearest - time))
        }
        print("flash and beep are at most \(Int(worst * 1_000)) ms apart, measured")
        #expect(worst <= 0.04)
    }

    @Test("a file of the recorder is composed in time, also if it was not finished", arguments: [true, false])
    func recorded(isFinished: Bool) async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("x.ivf", "x.ogg", seconds: 4)
            try archive.record("x.webm", picture: "x.ivf", sound: "x.ogg", isFinished: isFinished)
            let lines: [(Int64, ArchiveEvent)] = [
                (500, ComposePlanTests.stream("x")), (500, ComposePlanTests.file("x")), (5_000, .end(reason: "")),
            ]
            let result = try await archive.compose(Self.log(lines))
            #expect(result.damaged.isEmpty && result.notes.isEmpty)
            try await Self.checkLipSync(archive)
        }
    }

    @Test("a video that changes its shape is fitted again, and a turned one is turned")
    func shapes() async throws {
        try await TestArchive.with { archive in
            try await archive.make("wide.webm", Self.first, size: "320x80", seconds: 2)
            try await archive.make("tall.webm", Self.second, size: "80x320", seconds: 2)
            try archive.write(Array("file wide.webm\nfile tall.webm\n".utf8), to: "list")
            try await archive.ffmpeg(["-f", "concat", "-safe", "0", "-i", "list", "-c", "copy", "x.webm"])
            let lines: [(Int64, ArchiveEvent)] = [
                (0, ComposePlanTests.stream("x")), (0, ComposePlanTests.file("x")),
                (3_000, .rotation(stream: "x", degrees: 90)), (4_000, .end(reason: "")),
            ]
            _ = try await archive.compose(Self.log(lines))
            let pictures = try await archive.pictures()
            #expect(pictures.count == 100)
            // 640x160 in the middle of 640x480, then 120x480, then turned: 640x160.
            for (frame, brightness, isWide) in [
                (10, Self.first, true), (60, Self.second, false), (90, Self.second, true),
            ] {
                #expect(pictures.shows(brightness, frame, 320, 240), "frame \(frame)")
                #expect(pictures.shows(isWide ? brightness : TestArchive.black, frame, 20, 240), "frame \(frame)")
                #expect(pictures.shows(isWide ? TestArchive.black : brightness, frame, 320, 20), "frame \(frame)")
            }
        }
    }

    @Test("a video that covers its cell is cut at the cell, also after it has changed its shape")
    func cover() async throws {
        try await TestArchive.with { archive in
            for (name, size) in [("wide.webm", "320x80"), ("tall.webm", "80x320")] {
                // The left quarter is white in a wide picture, and the upper quarter in a tall one.
                let box = name == "wide.webm" ? "w=iw/4:h=ih" : "w=iw:h=ih/4"
                let picture =
                    TestArchive.gray(Self.first, size: size, seconds: 1) + ",drawbox=x=0:y=0:\(box):t=fill:c=white"
                try await archive.ffmpeg(["-f", "lavfi", "-i", picture] + TestArchive.vp8 + [name])
            }
            try archive.write(Array("file wide.webm\nfile tall.webm\n".utf8), to: "list")
            try await archive.ffmpeg(["-f", "concat", "-safe", "0", "-i", "list", "-c", "copy", "x.webm"])
            let sheet = "stream { position: absolute; left: 25%; top: 25%; width: 50%; height: 50%; object-fit: cover }"
            let lines: [(Int64, ArchiveEvent)] = [
                (0, ComposePlanTests.stream("x")), (0, ComposePlanTests.file("x")),
                (0, .layout(ArchiveLayout("custom", stylesheet: sheet))), (2_000, .end(reason: "")),
            ]
            var options = ComposeOptions()
            options.hasAudio = false
            _ = try await archive.compose(Self.log(lines), options)
            let pictures = try await archive.pictures()
            for frame in [10, 40] {
                // The white quarter is outside of the cell, which is filled to its corners, and all around is black.
                for (x, y) in [(175, 135), (465, 345), (320, 240)] { #expect(pictures.shows(Self.first, frame, x, y)) }
                for (x, y) in [(145, 240), (495, 240), (320, 105), (320, 375)] {
                    #expect(pictures.shows(TestArchive.black, frame, x, y))
                }
            }
        }
    }

    @Test("the last frame stays when a stream stops sending, or sends only one frame in several seconds")
    func stale() async throws {
        try await TestArchive.with { archive in
            try await archive.make("x.webm", Self.first, seconds: 1)
            try await archive.ffmpeg(
                [
                    "-f", "lavfi", "-i",
                    "color=black:s=160x120:r=25:d=9,format=yuv420p,lutyuv=y=\(Self.second):u=128:v=128",
                ]
                    + ["-vf", "select='not(mod(n,100))'", "-fps_mode", "vfr"] + TestArchive.vp8 + ["y.webm"])
            var lines: [(Int64, ArchiveEvent)] = []
            for stream in ["x", "y"] {
                lines += [(0, ComposePlanTests.stream(stream)), (0, ComposePlanTests.file(stream))]
            }
            // The third chunk begins 19 s after the last frame of x.
            lines += [
                (10_000, .layout(ArchiveLayout("pip"))), (20_000, .layout(ArchiveLayout())), (21_000, .end(reason: "")),
            ]
            var options = ComposeOptions()
            options.hasAudio = false
            _ = try await archive.compose(Self.log(lines), options)
            let pictures = try await archive.pictures()
            #expect(pictures.count == 525)
            for frame in [0, 30, 249, 500, 524] {
                #expect(pictures.shows(Self.first, frame, 160, 240) && pictures.shows(Self.second, frame, 480, 240))
            }
            for frame in [250, 499] {
                #expect(pictures.shows(Self.first, frame, 100, 240) && pictures.shows(Self.second, frame, 510, 90))
            }
        }
    }

    @Test("a file that cannot be decoded is black and silent, and the rest is composed")
    func poisoned() async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("x.webm", seconds: 2)
            try await archive.makeFlashes("y.webm", seconds: 2)
            try archive.write(Array("no file of video".utf8), to: "z.webm")
            // The header stays, and no frame does.
            var bytes = try archive.bytes("y.webm")
            for index in 600..<bytes.count { bytes[index] = UInt8(truncatingIfNeeded: index &* 167) }
            try archive.write(bytes, to: "y.webm")
            var lines: [(Int64, ArchiveEvent)] = []
            for stream in ["x", "y", "z"] {
                lines += [(0, ComposePlanTests.stream(stream)), (0, ComposePlanTests.file(stream))]
            }
            let result = try await archive.compose(Self.log(lines + [(2_000, .end(reason: ""))]))
            #expect(result.damaged == ["y.webm"])
            #expect(result.notes == ["z.webm cannot be read, so its cell is black and it is silent."])
            let pictures = try await archive.pictures()
            #expect(pictures.count == 50 && pictures.shows(TestArchive.white, 25, 160, 120))
            #expect(pictures.shows(TestArchive.black, 25, 480, 120) && pictures.shows(TestArchive.black, 25, 320, 360))
            #expect(soundOnsets(try await archive.samples()).count == 2)
            let said = String(decoding: try archive.bytes(JobFiles.log), as: UTF8.self)
            #expect(said.contains("y.webm") && said.utf8.count < 100_000)
        }
    }

    @Test("without video there is only audio, without audio only video, and without any audio there is silence")
    func tracks() async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("x.webm", seconds: 2)
            let lines: [(Int64, ArchiveEvent)] = [
                (0, ComposePlanTests.stream("x")), (0, ComposePlanTests.file("x")),
                (1_500, .include(stream: "x", audio: false, video: true)), (2_000, .end(reason: "")),
            ]
            var options = ComposeOptions()
            options.hasVideo = false
            _ = try await archive.compose(Self.log(lines), options)
            #expect(MP4Tracks(try archive.bytes(ArchiveFileName.composed))?.tracks.map(\.kind) == ["soun"])
            options = ComposeOptions()
            options.hasAudio = false
            _ = try await archive.compose(Self.log(lines), options)
            #expect(MP4Tracks(try archive.bytes(ArchiveFileName.composed))?.tracks.map(\.kind) == ["vide"])
            let silent = Self.log(
                [(0, lines[0].1), (0, lines[1].1), (0, .include(stream: "x", audio: false, video: true))]
                    + [(2_000, .end(reason: ""))])
            _ = try await archive.compose(silent)
            #expect(MP4Tracks(try archive.bytes(ArchiveFileName.composed))?.tracks.count == 2)
            let samples = try await archive.samples()
            #expect(samples.count > 90_000 && samples.allSatisfy { abs(Int($0)) < 100 })
        }
    }

    @Test("more than fifty files are mixed in groups, as loud as alone")
    func groups() async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("s0.webm", seconds: 2)
            try await archive.ffmpeg(["-f", "lavfi", "-i", "anullsrc=d=1"] + TestArchive.opus + ["s1.webm"])
            var lines = [(Int64(0), ComposePlanTests.stream("s0")), (0, ComposePlanTests.file("s0"))]
            // One after another, so that all are heard.
            for index in 1..<53 {
                let (stream, start) = ("s\(index)", Int64(index) * 20)
                if index > 1 { try archive.write(try archive.bytes("s1.webm"), to: "\(stream).webm") }
                lines += [(start, ComposePlanTests.stream(stream)), (start, ComposePlanTests.file(stream))]
                lines.append((start + 20, .gone(stream: stream)))
            }
            var options = ComposeOptions()
            options.hasVideo = false
            _ = try await archive.compose(Self.log(lines + [(2_000, .end(reason: ""))]), options)
            let samples = try await archive.samples()
            #expect(soundOnsets(samples).count == 2)
            let peak = samples.map { abs(Int($0)) }.max() ?? 0
            #expect((14_000...18_000).contains(peak), "\(peak)")
        }
    }
}

extension MP4Tracks {
    init?(_ bytes: [UInt8]) {
        self.init(size: Int64(bytes.count)) { offset, count in
            Array(bytes.dropFirst(Int(offset)).prefix(count))
        }
    }
}
