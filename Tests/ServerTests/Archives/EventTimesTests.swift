import Foundation
import Logging
import MediaFiles
import RTC
import Signaling
import Testing
import Wire

@testable import SFU
@testable import Server

/// The recorder looks at what the routers have sent every 100 ms, and writes the first frames of a file seconds later.
@Suite("Times in the event logs of archives") struct EventTimesTests: StorageFixtures {
    private final class NoRouter: RecordingSource {
        var recordingRings: [RecordingRing] { [] }
        func record(_ stream: StreamID, as number: UInt32, _ request: RecordingRequest) {}
        func stopRecording(_ stream: StreamID, _ number: UInt32) {}
        func requestKeyframe(of stream: StreamID, for number: UInt32) {}
    }

    private let id = ArchiveID(high: 5, low: 1)
    private let stream = StreamID(high: 1, low: 1)

    @Test("a mute has the time of the router, and a file that began before it keeps its own beginning")
    func mute() async throws {
        try await withDirectory { path in
            let settings = Recorder.Settings(
                folder: path, maxHeight: 720, minFreeSpace: 0, reserve: 0, syncInterval: .seconds(5)
            ) {
                Timestamp(milliseconds: 1_700_000_000_000)
            }
            let loop = RecorderLoop(
                settings, source: NoRouter(), counters: RecorderCounters(),
                logger: Logger(label: "recorder") { _ in SwiftLogNoOpLogHandler() }
            ) { _ in }
            let archive = try ArchiveRecording(
                id, SessionID("2_session")!, RecordingOptions(createdAt: now), in: try RecordingFolder(path: path),
                loop)
            let begin = MediaTime(nanoseconds: 1_000_000_000_000)
            let details = Signaling.RecordedStream(publisher: ConnectionID(high: 0, low: 1), videoType: nil)
            let recording = try #require(archive.add(stream, details, number: 1, now: begin))
            recording.receive(.tracks(audio: true, video: false), now: begin)
            recording.receive(.source(nil, isNew: true), now: begin)
            for number: Int64 in 0..<50 {
                let time = begin + .milliseconds(20 * number)
                [UInt8](repeating: 0xf8, count: 4).withUnsafeBytes { payload in
                    recording.receive(
                        RecordingRingReader.Packet(
                            recording: 1, isVideo: false, number: number, timestamp: UInt32(960 * number),
                            marker: false, arrivedAt: time, payload: payload),
                        now: time)
                }
            }
            let muted = begin + .milliseconds(1_000)
            recording.receive(.forwarded(isVideo: false, false, at: muted), now: muted + .milliseconds(90))
            archive.end(.requested, now: muted + .milliseconds(2_000))
            let result = archive.finishAll(now: muted + .milliseconds(2_000))

            let bytes = try Data(contentsOf: URL(filePath: "\(path)/\(id)/\(ArchiveFileName.log)"))
            let lines = ArchiveLog([UInt8](bytes)).lines
            let mute = lines.first { $0.event == .audio(stream: "\(stream)", isOn: false) }
            #expect(mute?.time == .milliseconds(1_000))
            let line = try #require(lines.first { if case .file = $0.event { true } else { false } })
            #expect(line.time == .milliseconds(1_000), "the line follows that of the mute")
            guard case .file(let file) = line.event else { return }
            let start = file.begin(line: line.time).wholeMilliseconds
            #expect(start < 50 && start == result.files.first?.start.wholeMilliseconds)
        }
    }
}
