import Foundation
import MediaFiles
import TestSupport
import Testing

@testable import Composing

@Suite("Interrupted composing", .enabled(if: TestArchive.hasFFmpeg, "ffmpeg is not installed"))
struct ComposeRestartTests {
    /// The number of chunks: ffmpeg's own files begin with the sound, so x appears in the second frame.
    private static let chunks = 4
    /// The chunks, and the sound.
    private static let parts = 5

    private static func makeArchive(_ archive: TestArchive) async throws -> ArchiveLog {
        try await archive.makeFlashes("x.webm", seconds: 3)
        try await archive.make("y.webm", TestArchive.brightness(9), seconds: 1)
        return ComposePlanTests.log([
            (0, ComposePlanTests.stream("x")), (0, ComposePlanTests.file("x")), (1_000, ComposePlanTests.stream("y")),
            (1_000, ComposePlanTests.file("y")), (2_000, .gone(stream: "y")), (3_000, .end(reason: "")),
        ])
    }

    private static func hash(_ archive: TestArchive) async throws -> [UInt8] {
        try await archive.ffmpeg(["-i", ArchiveFileName.composed, "-f", "framemd5", "hash"])
        return try archive.bytes("hash")
    }

    /// The parts that were made, from the job's log.
    private static func made(_ archive: TestArchive) throws -> [String] {
        guard let log = try? archive.bytes(JobFiles.log) else { return [] }
        return String(decoding: log, as: UTF8.self).split(separator: "\n")
            .compactMap { line in line.range(of: " Made ").map { String(line[$0.upperBound...].dropLast()) } }
    }

    /// A script for the work of one part: `$part` is its number, which is counted over all runs.
    private static let counting = """
        case "$*" in *-progress*|*-c:a*) ;; *) exec $real "$@" ;; esac
        part=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $part >count
        """

    @Test("ffmpeg is killed at each part, and the result is the same")
    func killedPart() async throws {
        try await TestArchive.with { archive in
            let log = try await Self.makeArchive(archive)
            _ = try await archive.compose(log)
            let expected = try await Self.hash(archive)
            // Every second start is killed, after it has written something.
            let script = try archive.script(
                Self.counting
                    + "\n[ $((part % 2)) = 0 ] && exec $real \"$@\"\nfor last; do :; done\necho half >$last\nkill -9 $$"
            )
            let result = try await archive.compose(log, ffmpeg: script)
            #expect(result.made == Self.parts && result.damaged.isEmpty)
            #expect(String(decoding: try archive.bytes("count"), as: UTF8.self) == "\(2 * Self.parts)\n")
            #expect(try await Self.hash(archive) == expected)
        }
    }

    @Test("a job that is stopped at each part continues, and makes no finished part again")
    func stopped() async throws {
        try await TestArchive.with { archive in
            let log = try await Self.makeArchive(archive)
            _ = try await archive.compose(log)
            let expected = try await Self.hash(archive)
            try FileManager.default.removeItem(atPath: archive.path(JobFiles.log))
            // Each run makes one part. The next one hangs until it is killed.
            let script = try archive.script(
                Self.counting + "\n[ -e mayWork ] && rm mayWork && exec $real \"$@\"\ntouch hangs; exec sleep 300")
            for round in 1...Self.parts {
                try archive.write([], to: "mayWork")
                let work = Task { try await archive.compose(log, ffmpeg: script) }
                if round < Self.parts {
                    try await until("the next part has begun") {
                        FileManager.default.fileExists(atPath: archive.path("hangs"))
                    }
                    work.cancel()
                    await #expect(throws: CancellationError.self) { try await work.value }
                    try FileManager.default.removeItem(atPath: archive.path("hangs"))
                    // What a killed process leaves.
                    try archive.write(Array("half".utf8), to: "composing/0.part")
                } else {
                    let result = try await work.value
                    #expect(result.made == 1 && result.kept == Self.parts - 1)
                }
            }
            let made = try Self.made(archive)
            #expect(made.count == Self.parts && Set(made).count == Self.parts, "\(made)")
            #expect(try await Self.hash(archive) == expected)
        }
    }

    @Test("parts of other options, of another input, or cut off are not used")
    func otherParts() async throws {
        try await TestArchive.with { archive in
            let log = try await Self.makeArchive(archive)
            // The sound fails, so all chunks are finished and stay.
            let script = try archive.script("case \"$*\" in *\"-c:a aac\"*) exit 1 ;; *) exec $real \"$@\" ;; esac")
            await #expect(throws: ComposeError.self) { try await archive.compose(log, ffmpeg: script) }
            let parts = try FileManager.default.contentsOfDirectory(atPath: archive.path(JobFiles.work))
                .filter { $0.hasPrefix("chunk-") }.sorted()
            #expect(parts.count == Self.chunks)
            // One is cut off, and one input grows.
            let cut = "\(JobFiles.work)/\(parts[0])"
            try archive.write(Array(try archive.bytes(cut).dropLast(10)), to: cut)
            try archive.write(try archive.bytes("y.webm") + [0xec, 0x80], to: "y.webm")
            let result = try await archive.compose(log)
            #expect(result.kept == 2 && result.made == 3)
        }
    }

    @Test("one process composes an archive at a time")
    func busy() async throws {
        try await TestArchive.with { archive in
            let log = try await Self.makeArchive(archive)
            let files = try JobFiles(folder: archive.folder)
            await #expect(throws: ComposeError.busy) { try await archive.compose(log) }
            files.unlock()
            _ = try await archive.compose(log)
            var job = archive.job()
            job.overwrites = false
            let again = job
            await #expect(throws: ComposeError.outputExists(archive.path("archive.mp4"))) { try await again.run() }
        }
    }

    @Test("an archive can be locked again while a child that was forked meanwhile has a copy of the lock's descriptor")
    func copiedLock() async throws {
        try await TestArchive.with { archive in
            let files = try JobFiles(folder: archive.folder)
            // The folder and the lock in it stay.
            try archive.write([], to: JobFiles.path("list.txt"))
            let copy = dup(try #require(Self.descriptor(of: archive.path(JobFiles.path("lock")))))
            defer { close(copy) }
            files.unlock()
            let again = try JobFiles(folder: archive.folder)
            #expect(throws: ComposeError.busy) { _ = try JobFiles(folder: archive.folder) }
            again.unlock()
        }
    }

    /// Returns the descriptor with which this process has opened a file; nil if it has none.
    private static func descriptor(of path: String) -> Int32? {
        var (file, open) = (stat(), stat())
        guard stat(path, &file) == 0 else { return nil }
        return (Int32(3)..<4096).first {
            fstat($0, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino
        }
    }

    @Test("an ffmpeg that is missing, too old, or without a codec is named")
    func installations() async throws {
        try await TestArchive.with { archive in
            let log = ComposePlanTests.log([(40, .end(reason: ""))])
            await #expect(throws: ComposeError.ffmpegMissing("/no/ffmpeg")) {
                try await archive.compose(log, ffmpeg: "/no/ffmpeg")
            }
            let old = try archive.script("echo 'ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright'")
            await #expect(throws: ComposeError.ffmpegTooOld("4.4.2-0ubuntu0.22.04.1")) {
                try await archive.compose(log, ffmpeg: old)
            }
            let poor = try archive.script("echo 'ffmpeg version n6.0 Copyright'; echo ' A....D aac AAC'")
            await #expect(throws: ComposeError.ffmpegIncomplete(["libx264", "libopus"])) {
                try await archive.compose(log, ffmpeg: poor)
            }
            await #expect(throws: ComposeError.nothingRecorded) { try await archive.compose(log) }
        }
    }

    @Test("versions are compared by number, and builds from the sources count as new")
    func versions() {
        for version in ["5.1", "5.1.9-0+deb12u1", "n7.1", "10.0", "N-109542-g1bf1ef2", "6.1.1-3ubuntu5"] {
            #expect(FFmpegInstallation.isNewEnough(version), "\(version)")
        }
        for version in ["5.0.3", "4.4.2", "n4.2", "3", "", "unknown"] {
            #expect(!FFmpegInstallation.isNewEnough(version), "\(version)")
        }
        #expect(FFmpegInstallation.version(of: "ffmpeg version 5.1.9-0+deb12u1 Copyright (c)") == "5.1.9-0+deb12u1")
    }

    @Test("a full disk is named, and finished parts stay")
    func fullDisk() async throws {
        try await TestArchive.with { archive in
            let log = try await Self.makeArchive(archive)
            let script = try archive.script(
                Self.counting + "\n[ $part -le 2 ] && exec $real \"$@\"\necho 'x: No space left on device' >&2; exit 1")
            await #expect(throws: ComposeError.diskFull) { try await archive.compose(log, ffmpeg: script) }
            let result = try await archive.compose(log)
            #expect(result.kept == 2 && result.made == Self.parts - 2)
        }
    }

    @Test("what ffmpeg prints is kept up to a limit, and does not block it")
    func standardError() async throws {
        try await TestArchive.with { archive in
            let script = try archive.script("yes complaint | head -c 3000000 >&2; yes line | head -c 3000000; exit 3")
            let outcome = try await ChildProcess.run(
                script, [], directory: archive.folder, limits: .init(processor: 60, seconds: 60, nice: 0))
            #expect(outcome.status == 3 && outcome.standardError.utf8.count == ChildProcess.maxStandardError)
        }
    }

    @Test("a child that takes too long is killed, and inherits nothing")
    func limits() async throws {
        try await TestArchive.with { archive in
            let limits = ChildProcess.Limits(processor: 60, seconds: 60, nice: 19)
            let curious = try archive.script("ls /proc/self/fd >open; env >environment; nice >nice")
            let outcome = try await ChildProcess.run(curious, [], directory: archive.folder, limits: limits)
            #expect(outcome.isSuccess)
            // The fourth is the folder that `ls` reads.
            #expect(String(decoding: try archive.bytes("open"), as: UTF8.self) == "0\n1\n2\n3\n")
            #expect(!String(decoding: try archive.bytes("environment"), as: UTF8.self).contains("HOME="))
            #expect(String(decoding: try archive.bytes("nice"), as: UTF8.self) == "19\n")
            let slow = try archive.script("exec sleep 300")
            let killed = try await ChildProcess.run(
                slow, [], directory: archive.folder, limits: .init(processor: 60, seconds: 0.1, nice: 19))
            #expect(killed.status == nil)
        }
    }
}
