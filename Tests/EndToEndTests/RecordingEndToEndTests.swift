import Foundation
import Logging
import MediaFiles
import SFU
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

/// Records robots over loopback, and lets ffmpeg judge the files.
@Suite(
    "Recordings of a media plane", .ownThreads, .timeLimit(.minutes(5)),
    .enabled(if: RecordingJudge.isHere, "ffmpeg is not installed"))
struct RecordingEndToEndTests {
    private let archive = ArchiveID(high: 1, low: 2)

    /// Waits until the files of three streams have this many bytes.
    private func wait(_ room: RecordedRoom, for bytes: Int, streams: ClosedRange<UInt64> = 1...3) async throws {
        for number in streams {
            let name = "\(RecordedRoom.stream(number)).webm"
            try await eventually("stream \(number) has \(room.size(archive, name)) bytes: \(room.events)") {
                room.size(archive, name) >= bytes
            }
        }
    }

    private func checkFiles(_ result: RecordingResult, in room: RecordedRoom, of archive: ArchiveID) throws {
        #expect(Set(result.files.map(\.stream)) == Set((1...3).map(RecordedRoom.stream)))
        for file in result.files {
            let path = room.path(archive, file.name)
            #expect(try RecordingJudge.codecs(path) == ["vp8", "opus"])
            #expect(try RecordingJudge.decodes(path))
            let length = Double((file.stop - file.start).wholeMilliseconds) / 1_000
            let duration = try #require(try RecordingJudge.duration(path))
            #expect(
                abs(duration - length) <= 0.1, "\(file.name): \(duration) s in the file, \(length) s in the manifest")
            #expect(file.size == Int64(room.size(archive, file.name)) && file.size > 0)
        }
    }

    @Test("three people on two loops are recorded, one leaves and comes back, and all files play", arguments: [1, 2])
    func room(loops: Int) async throws {
        let room = try RecordedRoom(loops: loops)
        for number: UInt64 in 1...3 { try await room.publish(number) }
        #expect(room.plane.counters.router.packetsRecorded == 0)
        room.begin(archive)
        for number: UInt64 in 1...3 {
            room.recorder.send(.add(archive, RecordedRoom.stream(number), RecordedRoom.details(number)))
        }
        try await wait(room, for: 60_000)
        room.recorder.send(.note(archive, .layout("bestFit", stylesheet: nil, screenshareType: nil)))
        room.plane.perform(.update(RecordedRoom.stream(1), by: RecordedRoom.client(1), audio: false, video: true))
        room.recorder.send(.remove(archive, RecordedRoom.stream(3)))
        let third = "\(RecordedRoom.stream(3)).webm"
        try await eventually("the third file is not complete") {
            try RecordingJudge.duration(room.path(archive, third)) ?? 0 > 0
        }
        room.recorder.send(.add(archive, RecordedRoom.stream(3), RecordedRoom.details(3)))
        let fourth = "\(RecordedRoom.stream(3))1.webm"
        try await eventually("the third person's second file does not grow") { room.size(archive, fourth) > 30_000 }
        room.recorder.send(.end(archive, .requested))
        try await eventually("the archive does not end: \(room.events)") { room.result(of: archive) != nil }
        let (reason, result) = try #require(room.result(of: archive))
        #expect(reason == .requested && result.files.count == 4)
        #expect(result.files.map(\.name).contains(fourth))
        try checkFiles(result, in: room, of: archive)
        #expect(room.events.first.map { if case .began = $0 { true } else { false } } ?? false)
        let log = try String(contentsOfFile: room.path(archive, "events.jsonl"), encoding: .utf8)
        for event in ["archive", "began", "stream", "file", "layout", "audio", "gone", "end"] {
            #expect(log.contains("\"e\":\"\(event)\""), "\(event)")
        }
        let times = log.split(separator: "\n").compactMap { line -> Int? in
            Int(line.dropFirst(5).prefix { $0.isNumber })
        }
        #expect(times == times.sorted() && times.count > 12)
        let manifest = try String(contentsOfFile: room.path(archive, "archive.json"), encoding: .utf8)
        #expect(manifest.contains("\"startTimeOffset\":") && manifest.contains("client 2"))
        #expect(room.recorder.counters.bytes.load(ordering: .relaxed) > 100_000)
    }

    @Test("archives that the server was killed in are completed at the next start")
    func recovery() async throws {
        let room = try RecordedRoom()
        for number: UInt64 in 1...3 { try await room.publish(number) }
        room.begin(archive)
        for number: UInt64 in 1...3 {
            room.recorder.send(.add(archive, RecordedRoom.stream(number), RecordedRoom.details(number)))
        }
        try await wait(room, for: 80_000)
        // What a killed process leaves is what the kernel has at that moment.
        let killed = FileManager.default.temporaryDirectory.appending(path: "confab-killed-\(UUID().uuidString)")
        try FileManager.default.copyItem(at: room.folder, to: killed)
        let log = killed.appending(path: "\(archive)/events.jsonl")
        let torn = try FileHandle(forWritingTo: log)
        try torn.seekToEnd()
        try torn.write(contentsOf: Data(#"{"t":99,"e":"fi"#.utf8))
        try torn.close()
        let next = try RecordedRoom(folder: killed)
        next.recorder.recover()
        try await eventually("nothing is recovered") { !next.events.isEmpty }
        guard case .recovered(archive, let result)? = next.events.first else {
            Issue.record("\(next.events)")
            return
        }
        try checkFiles(result, in: next, of: archive)
        #expect(result.files.allSatisfy { $0.connectionData.hasPrefix("client") } && result.began != nil)
        let text = try String(contentsOf: log, encoding: .utf8)
        #expect(text.hasSuffix("\"reason\":\"server restarted\"}\n") && !text.contains(#""e":"fi{"#))
        // A second start finds nothing to do.
        let recovery = RecordingRecovery(path: killed.path, logger: .init(label: "test"))
        #expect(recovery.unfinished.isEmpty)
        // Unless the hub asks for it.
        let again = try recovery.recover(archive)
        #expect(again == result)
        #expect(try String(contentsOf: log, encoding: .utf8) == text)
    }

    @Test("a server that stops ends its archives, and leaves nothing to recover")
    func stop() async throws {
        let room = try RecordedRoom()
        for number: UInt64 in 1...3 { try await room.publish(number) }
        room.begin(archive)
        for number: UInt64 in 1...3 {
            room.recorder.send(.add(archive, RecordedRoom.stream(number), RecordedRoom.details(number)))
        }
        try await wait(room, for: 40_000)
        room.recorder.stop()
        let (reason, result) = try #require(room.result(of: archive))
        #expect(reason == .serverRestarted)
        try checkFiles(result, in: room, of: archive)
        #expect(RecordingRecovery(path: room.folder.path, logger: .init(label: "test")).unfinished.isEmpty)
    }

    @Test("archives and streams that cannot be recorded are refused, and the others continue")
    func refusals() async throws {
        let room = try RecordedRoom()
        try await room.publish(1)
        room.begin(archive)
        room.recorder.send(.add(archive, RecordedRoom.stream(9), RecordedRoom.details(9)))
        room.recorder.send(.add(archive, RecordedRoom.stream(1), RecordedRoom.details(1)))
        try await wait(room, for: 30_000, streams: 1...1)
        // Only the hub limits their number.
        for number: UInt64 in 1...30 { room.begin(ArchiveID(high: 7, low: number)) }
        try await eventually("\(room.events)") { room.recorder.counters.archives.load(ordering: .relaxed) == 31 }
        #expect(room.events.contains(.streamFailed(archive, RecordedRoom.stream(9), .notPublished)))
        room.recorder.send(.end(archive, .requested))
        try await eventually("\(room.events)") { room.result(of: archive) != nil }
        #expect(room.result(of: archive)?.1.files.count == 1)
    }

    @Test("no archive starts without enough free space")
    func space() async throws {
        let room = try RecordedRoom { $0.minFreeSpace = .max }
        room.begin(archive)
        try await eventually("\(room.events)") { !room.events.isEmpty }
        #expect(room.events == [.failed(archive, .diskFull)])
        try await eventually("the free space is not measured") { room.recorder.refusal != nil }
        #expect(room.recorder.refusal?.code == .storageFull)
    }

    @Test(
        "a full disk ends the archive with files that play, and the call continues",
        .enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount"), "needs root"))
    func diskFull() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "confab-disk-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        guard Self.shell("mount -t tmpfs -o size=500k tmpfs '\(folder.path)'") else { return }
        defer { _ = Self.shell("umount -l '\(folder.path)'") }
        let room = try RecordedRoom(folder: folder) { $0.reserve = 100 << 10 }
        for number: UInt64 in 1...3 { try await room.publish(number) }
        room.begin(archive)
        for number: UInt64 in 1...3 {
            room.recorder.send(.add(archive, RecordedRoom.stream(number), RecordedRoom.details(number)))
        }
        try await eventually("the disk does not become full: \(room.events)") { room.result(of: archive) != nil }
        let (reason, result) = try #require(room.result(of: archive))
        #expect(reason == .diskFull && result.files.count == 3)
        for file in result.files { #expect(try RecordingJudge.decodes(room.path(archive, file.name))) }
        let log = ArchiveLog(Array(try Data(contentsOf: URL(filePath: room.path(archive, "events.jsonl")))))
        #expect(log.skipped == 0 && !log.isCut && log.lines.last?.event == .end(reason: "disk full"))
        let before = room.plane.counters.router.packetsIn
        try await eventually("the media stops") { room.plane.counters.router.packetsIn > before + 200 }
    }

    private static func shell(_ command: String) -> Bool {
        (try? ChildProgram.run("/bin/sh", ["-c", command]))?.status == 0
    }
}
