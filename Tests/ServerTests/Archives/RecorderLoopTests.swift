import Foundation
import Logging
import SFU
import Signaling
import Synchronization
import Testing
import Wire

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

    private func makeLoop(_ router: NotingRouter, in folder: String) -> RecorderLoop {
        let settings = Recorder.Settings(
            folder: folder, maxHeight: 720, minFreeSpace: 0, reserve: 0, syncInterval: .seconds(5)
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

    @Test("a stream that is added again at once, with other tracks, is recorded again")
    func addedAgain() async throws {
        try await withDirectory { folder in
            let router = NotingRouter()
            let loop = makeLoop(router, in: "\(folder)/recordings")
            loop.perform(.add(archive, stream, RecordedStream(publisher: ada, hasVideo: false)))
            #expect(router.take() == ["record 1 audio"])
            loop.perform(.add(archive, stream, RecordedStream(publisher: ada)))
            #expect(router.take().isEmpty, "it is being recorded")
            // The router confirms the end later.
            loop.perform(.remove(archive, stream))
            loop.perform(.add(archive, stream, RecordedStream(publisher: ada)))
            loop.work()
            #expect(router.take() == ["stop 1", "record 2 audio video"])
            #expect(router.reported.withLock { $0 }.isEmpty, "nothing has failed")
            loop.perform(.remove(archive, stream))
            #expect(router.take() == ["stop 2"])
        }
    }

    @Test("a publisher whose streams are added again and again is left out in the end, and others are not")
    func addedTooOften() async throws {
        try await withDirectory { folder in
            let router = NotingRouter()
            let loop = makeLoop(router, in: "\(folder)/recordings")
            for _ in 0..<ArchiveRecording.maxAddedOfPublisher {
                loop.perform(.add(archive, stream, RecordedStream(publisher: ada)))
                loop.perform(.remove(archive, stream))
            }
            #expect(router.reported.withLock { $0 }.isEmpty)
            loop.perform(.add(archive, stream, RecordedStream(publisher: ada)))
            #expect(router.reported.withLock { $0 } == [.streamFailed(archive, stream, .tooMany)])
            _ = router.take()
            let (other, bob) = (StreamID(high: 1, low: 2), ConnectionID(high: 0, low: 2))
            loop.perform(.add(archive, other, RecordedStream(publisher: bob)))
            // The refused stream has a number too.
            #expect(router.take() == ["record \(ArchiveRecording.maxAddedOfPublisher + 2) audio video"])
        }
    }
}
