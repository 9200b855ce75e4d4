import Foundation
import Signaling
import Synchronization
import Wire

@testable import Server

/// A recorder that writes a few bytes for each stream, and notes its commands.
final class TestRecorder: SessionRecorder {
    /// What it writes into each file.
    static let content = Array("not really a video".utf8)

    /// When the first packet of each archive arrives. OpenTok's SDK shows whole seconds, so it differs from `RoomsPlace.now`
    /// by more.
    static let began = Timestamp(milliseconds: 1_790_000_005_123)

    private struct State {
        var commands: [RecordingCommand] = []
        var streams: [ArchiveID: [StreamID]] = [:]
        var refusal: WireError?
    }

    let counters = RecorderCounters()
    private let folder: String
    private let report: @Sendable (RecordingEvent) -> Void
    private let state = Mutex(State())

    init(folder: String, _ report: @escaping @Sendable (RecordingEvent) -> Void) {
        (self.folder, self.report) = (folder, report)
    }

    /// Returns what makes a recorder for the server with this data directory.
    static func maker(
        _ dataDirectory: String, _ made: @escaping @Sendable (TestRecorder) -> Void = { _ in }
    ) -> TestServerRecorder {
        TestServerRecorder { report in
            let recorder = TestRecorder(folder: dataDirectory + "/recordings", report)
            made(recorder)
            return recorder
        }
    }

    var commands: [RecordingCommand] { state.withLock { $0.commands } }
    var refusal: WireError? { state.withLock { $0.refusal } }
    func refuse(_ error: WireError?) { state.withLock { $0.refusal = error } }

    func recover(_ others: [ArchiveID]) {}
    func stop() {}

    func send(_ command: RecordingCommand) {
        state.withLock { $0.commands.append(command) }
        switch command {
        case .begin(let archive, _, _):
            try? FileManager.default.createDirectory(atPath: "\(folder)/\(archive)", withIntermediateDirectories: true)
        case .add(let archive, let stream, _):
            state.withLock { $0.streams[archive, default: []].append(stream) }
            report(.began(archive, at: Self.began))
        case .end(let archive, let reason):
            let streams = state.withLock { $0.streams.removeValue(forKey: archive) ?? [] }
            report(
                .ended(
                    archive, reason, RecordingResult(duration: .seconds(3), files: streams.map { write($0, archive) })))
        case .remove, .note, .pause, .resume: break
        }
    }

    private func write(_ stream: StreamID, _ archive: ArchiveID) -> RecordedFile {
        let name = "\(stream).webm"
        try? Data(Self.content).write(to: URL(filePath: "\(folder)/\(archive)/\(name)"))
        return RecordedFile(
            stream: stream, name: name, size: Int64(Self.content.count), start: .zero, stop: .seconds(3),
            connectionData: "name=Ann", videoType: .camera)
    }
}
