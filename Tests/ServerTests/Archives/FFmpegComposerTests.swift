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
    private let id = ArchiveID(high: 5, low: 1)

    @Test("an archive that another process composes waits for it")
    func busy() async throws {
        try await withDirectory { directory in
            let work = "\(directory)/\(id)/composing"
            try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
            // Nothing was recorded in it, so it cannot be composed when its turn comes.
            try Data("{}\n".utf8).write(to: URL(filePath: "\(directory)/\(id)/events.jsonl"))
            // Has all codecs, and notes each call.
            let (ffmpeg, calls) = ("\(directory)/ffmpeg", "\(directory)/calls")
            let lines = ["ffmpeg version 7.1 Copyright"] + ["libx264", "aac", "libopus"].map { " V....D \($0) x" }
            let script = "#!/bin/sh\necho >>'\(calls)'\n" + lines.map { "echo '\($0)'\n" }.joined()
            try Data(script.utf8).write(to: URL(filePath: ffmpeg))
            chmod(ffmpeg, 0o700)
            let lock = open("\(work)/lock", O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
            let reports = Mutex<[Input]>([])
            let found = FFmpegComposer(
                ffmpeg, folder: directory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                retry: .milliseconds(1)
            ) { input in
                reports.withLock { $0.append(input) }
            }
            let composer = try #require(found)
            composer.compose(
                ArchiveRecord(
                    id: id, project: "1000", session: SessionID("2_session")!, request: ArchiveRequest(),
                    createdAt: now))
            // Each attempt calls it three times.
            try await eventually {
                let count = (try? Data(contentsOf: URL(filePath: calls)).count) ?? 0
                return count >= 9 ? nil : "ffmpeg was called \(count) times"
            }
            #expect(reports.withLock { $0 }.isEmpty, "it is neither composed nor failed")
            close(lock)
            try await eventually { reports.withLock { $0 }.isEmpty ? "it still waits" : nil }
            #expect(reports.withLock { $0 } == [.notComposed(id)])
            await composer.stop()
        }
    }
}
