import Datagrams
import Foundation
import Logging
import RTC
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import SFU
@testable import Server

/// A script of commands for the recorder's thread, with one router that only notes what it is asked for.
@Suite("Streams of archives in the recorder") struct RecorderLoopTests: StorageFixtures {
    private final class NotingRouter: RecordingSource {
        let ring = RecordingRing()
        private let noted = Mutex<[String]>([])
        let reported = Mutex<[RecordingEvent]>([])

        var recordingRings: [RecordingRing] { [ring] }
        /// What was requested since the last call.
        func take() -> [String] {
            noted.withLock { noted in
                defer { noted = [] }
                return noted
            }
        }
        func record(_ stream: StreamID, as number: UInt32, _ request: RecordingRequest) {
            let tracks = (request.audio ? " audio" : "") + (request.video ? " video" : "")
            noted.withLock { $0.append("record \(number)\(tracks)") }
        }
        func stopRecording(_ stream: StreamID, _ number: UInt32) { noted.withLock { $0.append("stop \(number)") } }
        func requestKeyframe(of stream: StreamID, for number: UInt32) {}
    }

    private let archive = ArchiveID(high: 5, low: 1)
    private let stream = StreamID(high: 1, low: 1)
    private let ada = ConnectionID(high: 0, low: 1)

    private func makeLoop(_ router: NotingRouter, in folder: String, reserve: Int64 = 0) -> RecorderLoop {
        let settings = Recorder.Settings(
            folder: folder, maxHeight: 720, minFreeSpace: 0, reserve: reserve, syncInterval: .seconds(5)
        ) {
            Timestamp(milliseconds: 1_700_000_000_000)
        }
        let loop = RecorderLoop(
            settings, source: router, counters: RecorderCounters(),
            logger: Logger(label: "recorder") { _ in SwiftLogNoOpLogHandler() }
        ) { event in
            router.reported.withLock { $0.append(event) }
        }
        loop.perform(.begin(archive, SessionID("2_session")!, RecordingOptions(createdAt: now)))
        return loop
    }

    /// Passes on a packet of 20 ms.
    private func sendAudio(_ number: Int64, bytes: Int, since begin: MediaTime, to recording: StreamRecording) {
        let time = begin + .milliseconds(20 * number)
        let packet = [0xf8] + [UInt8](repeating: 1, count: bytes - 1)
        packet.withUnsafeBytes { payload in
            recording.receive(
                RecordingRingReader.Packet(
                    recording: recording.number, isVideo: false, number: number, timestamp: UInt32(960 * number),
                    marker: false, arrivedAt: time, payload: payload),
                now: time)
        }
    }

    /// Begins an archive with one stream, and writes five seconds of audio to it.
    private func recordAudio(
        as number: UInt32, of id: ArchiveID, in path: String, _ loop: RecorderLoop
    ) throws -> (archive: ArchiveRecording, recording: StreamRecording, begin: MediaTime) {
        let archive = try ArchiveRecording(
            id, SessionID("2_session")!, RecordingOptions(createdAt: now), in: try RecordingFolder(path: path), loop)
        let begin = MediaTime.monotonic
        let details = Signaling.RecordedStream(publisher: ada, videoType: nil)
        let recording = try #require(archive.add(stream, details, number: number, now: begin))
        recording.receive(.tracks(audio: true, video: false), now: begin)
        recording.receive(.source(nil, isNew: true), now: begin)
        for number: Int64 in 0..<250 { sendAudio(number, bytes: 200, since: begin, to: recording) }
        recording.tick(now: begin + .seconds(5))
        return (archive, recording, begin)
    }

    @Test("a stream that is added again at once, with other tracks, is recorded again")
    func addedAgain() async throws {
        try await withDirectory { folder in
            let router = NotingRouter()
            let loop = makeLoop(router, in: "\(folder)/recordings")
            loop.perform(.add(archive, stream, Signaling.RecordedStream(publisher: ada, hasVideo: false)))
            #expect(router.take() == ["record 1 audio"])
            loop.perform(.add(archive, stream, Signaling.RecordedStream(publisher: ada)))
            #expect(router.take().isEmpty, "it is being recorded")
            // The router confirms the end later.
            loop.perform(.remove(archive, stream))
            loop.perform(.add(archive, stream, Signaling.RecordedStream(publisher: ada)))
            loop.work()
            #expect(router.take() == ["stop 1", "record 3 audio video"], "the refused addition took a number")
            #expect(router.reported.withLock { $0 }.isEmpty, "nothing has failed")
            loop.perform(.remove(archive, stream))
            #expect(router.take() == ["stop 3"])
        }
    }

    @Test("a stream whose file cannot be created fails alone, and the archive has the others")
    func oneFileFails() async throws {
        try await withDirectory { folder in
            let (router, path) = (NotingRouter(), "\(folder)/recordings")
            let loop = makeLoop(router, in: path)
            let id = ArchiveID(high: 5, low: 2)
            let parent = try RecordingFolder(path: path)
            let archive = try ArchiveRecording(
                id, SessionID("2_session")!, RecordingOptions(createdAt: now), in: parent, loop)
            // In the place of the first stream's file.
            try FileManager.default.createDirectory(
                atPath: "\(path)/\(id)/\(stream).webm", withIntermediateDirectories: false)
            let begin = MediaTime.monotonic
            let other = StreamID(high: 1, low: 2)
            var recordings: [StreamRecording] = []
            for (number, stream) in [(UInt32(1), stream), (2, other)] {
                let details = Signaling.RecordedStream(publisher: ada, videoType: nil)
                recordings.append(try #require(archive.add(stream, details, number: number, now: begin)))
            }
            for recording in recordings {
                recording.receive(.tracks(audio: true, video: false), now: begin)
                recording.receive(.source(nil, isNew: true), now: begin)
            }
            let end = begin + .seconds(5)
            for number: Int64 in 0..<250 {
                for recording in recordings { sendAudio(number, bytes: 4, since: begin, to: recording) }
            }
            let failures = router.reported.withLock { $0 }.filter { if case .began = $0 { false } else { true } }
            #expect(failures == [.streamFailed(id, stream, .cannotWrite)])
            archive.end(.requested, now: end)
            let result = archive.finishAll(now: end)
            #expect(result.files.map(\.stream) == [other])
            #expect((4_900...5_100).contains(result.duration.wholeMilliseconds), "\(result)")
            #expect(try await ArchiveFiles(folder: path).completed(id)?.files.map(\.stream) == [other])
        }
    }

    @Test("each look writes everything to the file, and a stream that ends is looked at sooner")
    func looks() async throws {
        try await withDirectory { folder in
            let (router, path) = (NotingRouter(), "\(folder)/recordings")
            let loop = makeLoop(router, in: path)
            let usual = loop.timeToNextLook
            loop.perform(.add(archive, stream, Signaling.RecordedStream(publisher: ada)))
            #expect(loop.timeToNextLook == usual)
            loop.perform(.remove(archive, stream))
            #expect(loop.timeToNextLook < usual)

            let id = ArchiveID(high: 5, low: 2)
            let (other, _, begin) = try recordAudio(as: 7, of: id, in: path, loop)
            // What a server that is killed now leaves.
            let file = try Data(contentsOf: URL(filePath: "\(path)/\(id)/\(stream).webm"))
            #expect(file.count > 250 * 200)
            #expect(!other.isEndingStream)
            other.end(.requested, now: begin + .seconds(5))
            #expect(other.isEndingStream)
        }
    }

    @Test(
        "a disk that becomes full when a file ends does not lose the file", .ownThreads,
        .enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount"), "needs root"))
    func fullAtTheEnd() async throws {
        try await withDirectory { folder in
            guard Self.shell("mount -t tmpfs -o size=1m tmpfs '\(folder)'") else { return }
            defer { _ = Self.shell("umount -l '\(folder)'") }
            let (router, path) = (NotingRouter(), "\(folder)/recordings")
            let loop = makeLoop(router, in: path, reserve: 100 << 10)
            let id = ArchiveID(high: 5, low: 2)
            let (archive, recording, begin) = try recordAudio(as: 1, of: id, in: path, loop)
            // These wait for the next tick.
            for number: Int64 in 250..<500 { sendAudio(number, bytes: 200, since: begin, to: recording) }
            try Self.fillDisk(of: folder)
            let end = begin + .seconds(10)
            archive.end(.requested, now: end)
            let result = archive.finishAll(now: end)
            #expect(result.files.map(\.stream) == [stream])
            // The last page of the file had some space.
            #expect((4_900...6_000).contains(result.duration.wholeMilliseconds), "\(result)")
            #expect(try await ArchiveFiles(folder: path).completed(id)?.files.map(\.stream) == [stream])
        }
    }

    private static func shell(_ command: String) -> Bool {
        (try? ChildProgram.run("/bin/sh", ["-c", command]))?.status == 0
    }

    /// Writes a file until the disk is full.
    private static func fillDisk(of folder: String) throws {
        let file = open("\(folder)/filler", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        let page = [UInt8](repeating: 0, count: 4_096)
        while write(file, page, page.count) > 0 {}
    }

    @Test("a publisher whose streams are added again and again is left out in the end, and others are not")
    func addedTooOften() async throws {
        try await withDirectory { folder in
            let router = NotingRouter()
            let loop = makeLoop(router, in: "\(folder)/recordings")
            for _ in 0..<ArchiveRecording.maxAddedOfPublisher {
                loop.perform(.add(archive, stream, Signaling.RecordedStream(publisher: ada)))
                loop.perform(.remove(archive, stream))
            }
            #expect(router.reported.withLock { $0 }.isEmpty)
            loop.perform(.add(archive, stream, Signaling.RecordedStream(publisher: ada)))
            #expect(router.reported.withLock { $0 } == [.streamFailed(archive, stream, .tooMany)])
            _ = router.take()
            let (other, bob) = (StreamID(high: 1, low: 2), ConnectionID(high: 0, low: 2))
            loop.perform(.add(archive, other, Signaling.RecordedStream(publisher: bob)))
            // The refused stream has a number too.
            #expect(router.take() == ["record \(ArchiveRecording.maxAddedOfPublisher + 2) audio video"])
        }
    }
}
