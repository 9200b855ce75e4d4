import Foundation
import MediaFiles
import Testing
import Wire

@testable import Composing

@Suite("Composing while the archive is recorded", .enabled(if: TestArchive.hasFFmpeg, "ffmpeg is not installed"))
struct ComposedAheadTests {
    /// The time of day at which the archive began, in milliseconds.
    private static let began: Int64 = 1_700_000_000_000

    /// x is there all the time, and y from 5 s to 6 s.
    private static func log(until end: Int64, isComplete: Bool) -> ArchiveLog {
        var lines: [(Int64, ArchiveEvent)] = [
            (0, .began(at: Timestamp(milliseconds: began))), (0, ComposePlanTests.stream("x")),
            (0, ComposePlanTests.file("x")), (5_000, ComposePlanTests.stream("y")), (5_000, ComposePlanTests.file("y")),
            (6_000, .fileEnd(stream: "y", name: "y.webm", size: 1)), (6_000, .gone(stream: "y")),
        ]
        if isComplete { lines.append((end, .end(reason: ""))) }
        return ComposePlanTests.log(lines)
    }

    private static func hash(_ archive: TestArchive) async throws -> [UInt8] {
        try await archive.ffmpeg(["-i", ArchiveFileName.composed, "-f", "framemd5", "hash"])
        return try archive.bytes("hash")
    }

    @Test("chunks that are composed from a growing file are used, and the result is the same as without them")
    func sameResult() async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("x.ivf", "x.opus", seconds: 20)
            try await archive.make("y.webm", TestArchive.brightness(9), seconds: 1)
            try archive.record("x.webm", picture: "x.ivf", sound: "x.opus", isFinished: false)
            try archive.write(log(until: 20_000, isComplete: false).bytes, to: ArchiveFileName.log)
            var steps: [ComposeJob.Step] = []
            for index in 0..<3 {
                let now = Timestamp(milliseconds: Self.began + 20_000)
                steps.append(try await archive.job().compose(chunk: index, at: now))
            }
            #expect(steps == [.done, .done, .tooEarly])

            try archive.record("x.webm", picture: "x.ivf", sound: "x.opus", isFinished: true)
            let whole = log(until: 20_000, isComplete: true)
            let result = try await archive.compose(whole)
            // The third chunk and the audio.
            #expect(result.kept == 2 && result.made == 2 && result.damaged.isEmpty)
            let hash = try await Self.hash(archive)
            let again = try await archive.compose(whole)
            #expect(again.kept == 0 && again.made == 4)
            #expect(try await Self.hash(archive) == hash)
        }
    }

    @Test("a chunk is not composed before it is settled, and is composed again if something was written late")
    func late() async throws {
        try await TestArchive.with { archive in
            try await archive.makeFlashes("x.ivf", "x.opus", seconds: 20)
            try await archive.make("y.webm", TestArchive.brightness(9), seconds: 1)
            try archive.record("x.webm", picture: "x.ivf", sound: "x.opus", isFinished: false)
            try archive.write(log(until: 20_000, isComplete: false).bytes, to: ArchiveFileName.log)
            func step(_ index: Int, at time: Int64) async throws -> ComposeJob.Step {
                try await archive.job().compose(chunk: index, at: Timestamp(milliseconds: Self.began + time))
            }
            #expect(try await step(0, at: 14_900) == .tooEarly)
            #expect(try await step(0, at: 15_100) == .done)
            // A line with an earlier time that was not there.
            var lines = log(until: 20_000, isComplete: true).lines
            lines.insert(
                ArchiveLogLine(.layout(ArchiveLayout("horizontalPresentation")), at: .milliseconds(3_000)), at: 4)
            try archive.record("x.webm", picture: "x.ivf", sound: "x.opus", isFinished: true)
            let result = try await archive.compose(ArchiveLog(lines))
            #expect(result.kept == 0, "the first chunk has another layout in it")
            #expect(try await step(0, at: 15_100) == .ended)
            try FileManager.default.removeItem(atPath: archive.path(ArchiveFileName.log))
            #expect(try await step(0, at: 15_100) == .ended)
        }
    }

    @Test("an archive with a manifest has ended, also if its log has no last line")
    func manifest() async throws {
        try await TestArchive.with { archive in
            try archive.write(log(until: 20_000, isComplete: false).bytes, to: ArchiveFileName.log)
            try archive.write(Array("{}".utf8), to: ArchiveFileName.manifest)
            let now = Timestamp(milliseconds: Self.began + 75_000)
            #expect(try await archive.job().compose(chunk: 0, at: now) == .ended)
        }
    }

    @Test("a look at an archive of which no chunk is settled leaves its folder as it is")
    func noTrace() async throws {
        try await TestArchive.with { archive in
            try archive.write(log(until: 20_000, isComplete: false).bytes, to: ArchiveFileName.log)
            let job = archive.job(ffmpeg: "/no/ffmpeg")
            for time: Int64 in [0, 14_900] {
                let now = Timestamp(milliseconds: Self.began + time)
                #expect(try await job.compose(chunk: 0, at: now) == .tooEarly)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: archive.folder) == [ArchiveFileName.log])
        }
    }

    private func log(until end: Int64, isComplete: Bool) -> ArchiveLog { Self.log(until: end, isComplete: isComplete) }
}
