import Foundation
import Logging
import MediaFiles
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Composing archives after their end", .ownThreads, .timeLimit(.minutes(2)))
struct FFmpegComposerTests: StorageFixtures {
    private let ids = [ArchiveID(high: 5, low: 1), ArchiveID(high: 5, low: 2)]

    /// A folder of archives in which nothing was recorded, so that they fail when their turn comes, and what the composer has reported.
    private final class Place: Sendable {
        let directory: String
        private let reports = Mutex<[Input]>([])
        var reported: [Input] { reports.withLock { $0 } }
        var ffmpeg: String { "\(directory)/ffmpeg" }
        /// How often ffmpeg was called.
        var calls: Int { (try? Data(contentsOf: URL(filePath: "\(directory)/calls")).count) ?? 0 }

        init(_ directory: String, _ archives: [ArchiveID]) throws {
            self.directory = directory
            for archive in archives {
                let folder = "\(directory)/\(archive)"
                try FileManager.default.createDirectory(
                    atPath: folder + "/composing", withIntermediateDirectories: true)
                try Data("{}\n".utf8).write(to: URL(filePath: folder + "/events.jsonl"))
            }
        }

        /// Installs an ffmpeg that has all codecs, and notes each call.
        ///
        /// - Parameter encoding: what it does to encode a part, as a command of the shell.
        func install(encoding: String = ":") throws {
            let lines = ["ffmpeg version 7.1 Copyright"] + ["libx264", "aac", "libopus"].map { " V....D \($0) x" }
            let script =
                "#!/bin/sh\necho >>'\(directory)/calls'\ncase \"$*\" in *-progress*) \(encoding); exit ;; esac\n"
                + lines.map { "echo '\($0)'\n" }.joined()
            // Executable at once: the composer may look for it at any time.
            try Data(script.utf8).write(to: URL(filePath: ffmpeg + ".new"))
            chmod(ffmpeg + ".new", 0o700)
            try FileManager.default.moveItem(atPath: ffmpeg + ".new", toPath: ffmpeg)
        }

        /// Begins the recording of an archive without streams, and installs an ffmpeg that encodes each chunk of a minute.
        func record(_ archive: ArchiveID) throws {
            try Data(ArchiveLogLine(.began(at: Timestamp(milliseconds: 0)), at: .zero).bytes)
                .write(to: URL(filePath: "\(directory)/\(archive)/events.jsonl"))
            try Data(Self.video(frames: 1500)).write(to: URL(filePath: "\(directory)/minute"))
            try install(encoding: "for last; do :; done; cat '\(directory)/minute' >\"$last\"")
        }

        /// Returns the index of an MP4 file, without anything else.
        private static func video(frames: UInt32) -> [UInt8] {
            func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
            func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
                bytes(UInt32(8 + content.count)) + Array(kind.utf8) + content
            }
            let handler = box("hdlr", bytes(0) + bytes(0) + Array("vide".utf8))
            let samples = box("stsz", bytes(0) + bytes(0) + bytes(frames))
            let media = box("mdia", handler + box("minf", box("stbl", samples)))
            return box("ftyp", []) + box("moov", box("trak", media))
        }

        /// The chunks of an archive that were composed.
        func chunks(_ archive: ArchiveID) -> Int {
            let names = try? FileManager.default.contentsOfDirectory(atPath: "\(directory)/\(archive)/composing")
            return (names ?? []).count { $0.hasPrefix("chunk-") }
        }

        func composer(
            minFreeSpace: Int64 = 0, _ surroundings: FFmpegComposer.Surroundings = .init(),
            wallClock: @escaping @Sendable () -> Timestamp = { Timestamp(milliseconds: 0) }
        ) -> FFmpegComposer {
            FFmpegComposer(
                ffmpeg, folder: directory, minFreeSpace: minFreeSpace,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, retry: .milliseconds(1),
                surroundings: surroundings, wallClock: wallClock
            ) { [self] input in
                reports.withLock { $0.append(input) }
            }
        }

        func wait(for inputs: [Input]) async throws {
            try await eventually { reported == inputs ? nil : "\(reported)" }
        }
    }

    /// A machine on which time passes and space becomes free when the test says so.
    private final class SimulatedMachine: Sendable {
        private struct State {
            var passed = Duration.zero
            var free: Int64 = 0
            var measured = 0
            var alarms: [Duration] = []
        }

        private let start = ContinuousClock.now
        private let state = Mutex(State())

        /// How often the free space was measured.
        var measured: Int { state.withLock { $0.measured } }
        /// The times until which the composer has slept or sleeps.
        var alarms: [Duration] { state.withLock { $0.alarms } }
        /// The time of day. It is 0 at the start.
        var wallClock: Timestamp { Timestamp(milliseconds: 0) + state.withLock { $0.passed } }

        func pass(_ time: Duration) { state.withLock { $0.passed += time } }
        func free(_ bytes: Int64) { state.withLock { $0.free = bytes } }

        var surroundings: FFmpegComposer.Surroundings {
            var surroundings = FFmpegComposer.Surroundings()
            surroundings.now = { [self] in start + state.withLock { $0.passed } }
            surroundings.sleep = { [self] time in
                let alarm = time - start
                state.withLock { $0.alarms.append(alarm) }
                try await TestSupport.until("\(alarm) have passed") { [self] in state.withLock { $0.passed >= alarm } }
            }
            surroundings.freeSpace = { [self] _ in
                state.withLock { state in
                    state.measured += 1
                    return state.free
                }
            }
            return surroundings
        }
    }

    private func record(_ id: ArchiveID) -> ArchiveRecord {
        ArchiveRecord(
            id: id, project: "1000", session: SessionID("2_session")!, request: ArchiveRequest(), createdAt: now)
    }

    @Test("an archive that another process composes waits for it, and later ones do not")
    func busy() async throws {
        try await withDirectory { directory in
            let place = try Place(directory, ids)
            try place.install()
            let lock = open("\(directory)/\(ids[0])/composing/lock", O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
            let composer = place.composer()
            #expect(composer.isInstalled)
            for id in ids { composer.compose(record(id)) }
            try await place.wait(for: [.composingWaits(ids[0], .otherProcess), .notComposed(ids[1])])
            // Each attempt calls it three times.
            let calls = place.calls
            try await eventually { place.calls >= calls + 6 ? nil : "ffmpeg was called \(place.calls) times" }
            close(lock)
            try await place.wait(
                for: [.composingWaits(ids[0], .otherProcess), .notComposed(ids[1]), .notComposed(ids[0])])
            await composer.stop()
        }
    }

    @Test("chunks are composed while an archive is recorded: after the interval, if there is space, one after another")
    func ahead() async throws {
        try await withDirectory { directory in
            let (place, machine) = (try Place(directory, ids), SimulatedMachine())
            try place.record(ids[0])
            let composer = place.composer(minFreeSpace: 1000, machine.surroundings) { machine.wallClock }
            func sleeps(until times: [Int]) async throws {
                let alarms = times.map { Duration.seconds($0) }
                try await eventually { machine.alarms == alarms ? nil : "it has slept until \(machine.alarms)" }
            }
            composer.composeAhead(record(ids[0]))
            try await sleeps(until: [20])
            #expect(machine.measured == 0, "it is too early")
            machine.free(999)
            machine.pass(.seconds(20))
            try await sleeps(until: [20, 80])
            #expect(machine.measured == 1 && place.calls == 0, "recordings need the space")
            machine.free(1000)
            machine.pass(.seconds(60))
            // The first minute is settled at 70 s, and the second one at 130 s.
            try await sleeps(until: [20, 80, 100])
            #expect(machine.measured == 3 && place.chunks(ids[0]) == 1)
            // Three questions, and the chunk.
            #expect(place.calls == 4)
            machine.pass(.seconds(120))
            try await sleeps(until: [20, 80, 100, 220])
            #expect(place.chunks(ids[0]) == 3 && place.calls == 6, "ffmpeg is not asked again")
            #expect(place.reported.isEmpty)
            await composer.stop()
        }
    }

    @Test("archives wait until ffmpeg is installed, for example after a restart of a server without it")
    func missing() async throws {
        try await withDirectory { directory in
            let place = try Place(directory, ids)
            let composer = place.composer()
            #expect(!composer.isInstalled)
            for id in ids { composer.compose(record(id)) }
            let waits: [Input] = ids.map { .composingWaits($0, .ffmpeg) }
            try await place.wait(for: waits)
            try place.install()
            let failures: [Input] = ids.map { .notComposed($0) }
            try await place.wait(for: waits + failures)
            await composer.stop()
        }
    }
}
