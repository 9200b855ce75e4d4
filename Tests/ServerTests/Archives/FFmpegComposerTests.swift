import Foundation
import Logging
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Composing archives after their end", .ownThreads, .timeLimit(.minutes(1)))
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
        func install() throws {
            let lines = ["ffmpeg version 7.1 Copyright"] + ["libx264", "aac", "libopus"].map { " V....D \($0) x" }
            let script =
                "#!/bin/sh\necho >>'\(directory)/calls'\n" + lines.map { "echo '\($0)'\n" }.joined()
            // Executable at once: the composer may look for it at any time.
            try Data(script.utf8).write(to: URL(filePath: ffmpeg + ".new"))
            chmod(ffmpeg + ".new", 0o700)
            try FileManager.default.moveItem(atPath: ffmpeg + ".new", toPath: ffmpeg)
        }

        func composer() -> FFmpegComposer {
            FFmpegComposer(
                ffmpeg, folder: directory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                retry: .milliseconds(1), wallClock: { Timestamp(milliseconds: 0) }
            ) { [self] input in
                reports.withLock { $0.append(input) }
            }
        }

        func wait(for inputs: [Input]) async throws {
            try await eventually { reported == inputs ? nil : "\(reported)" }
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
