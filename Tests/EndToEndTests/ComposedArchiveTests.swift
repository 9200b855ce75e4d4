import Foundation
import Logging
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

/// Composes what the recorder has written.
@Suite(
    "Composed archives", .ownThreads, .timeLimit(.minutes(5)),
    .enabled(if: RecordingJudge.isHere, "ffmpeg is not installed"))
struct ComposedArchiveTests {
    private let archive = ArchiveID(high: 1, low: 2)

    private func record(in room: RecordedRoom) -> ArchiveRecord {
        var request = ArchiveRequest()
        request.resolution = "640x480"
        return ArchiveRecord(
            id: archive, project: "key", session: RecordedRoom.session, request: request,
            createdAt: Timestamp(milliseconds: 0))
    }

    private func composer(
        in room: RecordedRoom, _ report: @escaping @Sendable (Input) -> Void
    ) -> FFmpegComposer {
        FFmpegComposer(
            "ffmpeg", folder: room.folder.path, logger: Logger(label: "test"),
            wallClock: { Timestamp(milliseconds: 0) }, report: report)
    }

    @Test("a recorded room becomes one MP4 file with the archive's length, and a folder without files is reported")
    func composed() async throws {
        let room = try RecordedRoom()
        for number: UInt64 in 1...2 { try await room.publish(number) }
        room.begin(archive)
        room.recorder.send(.note(archive, .layout("bestFit", stylesheet: nil, screenshareType: nil)))
        for number: UInt64 in 1...2 {
            room.recorder.send(.add(archive, RecordedRoom.stream(number), RecordedRoom.details(number)))
        }
        for number: UInt64 in 1...2 {
            let name = "\(RecordedRoom.stream(number)).webm"
            try await eventually("\(room.events)") { room.size(archive, name) >= 60_000 }
        }
        room.recorder.send(.end(archive, .requested))
        try await eventually("the archive does not end: \(room.events)") { room.result(of: archive) != nil }
        let length = Double(try #require(room.result(of: archive)).1.duration.wholeMilliseconds) / 1_000

        let reports = Mutex<[Input]>([])
        let composer = composer(in: room) { input in reports.withLock { $0.append(input) } }
        composer.compose(record(in: room))
        var missing = record(in: room)
        missing.id = ArchiveID(high: 9, low: 9)
        composer.compose(missing)
        try await eventually("the archives are not composed") { reports.withLock { $0.count == 2 } }
        guard case .composed(archive, let file)? = reports.withLock({ $0.first }) else {
            Issue.record("\(reports.withLock { $0 })")
            return
        }
        #expect(reports.withLock { $0.last } == .notComposed(missing.id))
        let path = room.path(archive, file.name)
        #expect(file.name == "archive.mp4" && file.size == Int64(room.size(archive, file.name)))
        #expect(try RecordingJudge.codecs(path) == ["h264", "aac"])
        #expect(try RecordingJudge.decodes(path))
        let duration = try #require(try RecordingJudge.duration(path))
        #expect(abs(duration - length) <= 0.2, "\(duration) s in the file, \(length) s recorded")
        await composer.stop()
    }
}
