import Foundation
import Logging
import Peers
import RTC
import Signaling
import Synchronization
import Testing
import Wire

@testable import Robots
@testable import Server

/// A media plane whose clients publish the sample clip, and a recorder that reads it.
final class RecordedRoom: Sendable {
    static let session = SessionID("1_MX4xfn4xfn5sb29wc34") ?? .unset

    let plane: MediaPlane
    let recorder: Recorder
    let folder: URL
    private let robots: RobotLoop
    private let received: Received

    private final class Received: Sendable {
        let media = Mutex<[MediaEvent]>([])
        let recording = Mutex<[RecordingEvent]>([])
    }

    /// - Parameters:
    ///   - folder: an existing folder for the recordings; nil for a new one.
    ///   - adjust: changes the recorder's settings.
    init(loops: Int = 1, folder: URL? = nil, _ adjust: (inout Recorder.Settings) -> Void = { _ in }) throws {
        var media = MediaPlane.Settings(port: 0, address: IPAddress("127.0.0.1"))
        media.loops = loops
        let logger = Logger(label: "recording") { _ in SwiftLogNoOpLogHandler() }
        let received = Received()
        self.received = received
        plane = try MediaPlane(media, logger: logger) { event in received.media.withLock { $0.append(event) } }
        self.folder =
            folder ?? FileManager.default.temporaryDirectory.appending(path: "confab-recordings-\(UUID().uuidString)")
        var settings = Recorder.Settings(
            folder: self.folder.path, maxHeight: 720, minFreeSpace: 0, reserve: 0, syncInterval: .milliseconds(200)
        ) {
            Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
        }
        adjust(&settings)
        recorder = Recorder(settings, source: plane, logger: logger) { event in
            received.recording.withLock { $0.append(event) }
        }
        robots = try RobotLoop()
    }

    deinit {
        recorder.stop()
        robots.stop()
        plane.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    var events: [RecordingEvent] { received.recording.withLock { $0 } }

    /// The result of an archive that has ended; nil before its end.
    func result(of archive: ArchiveID) -> (RecordingEnd, RecordingResult)? {
        for case .ended(archive, let reason, let result) in events { return (reason, result) }
        return nil
    }

    static func stream(_ number: UInt64) -> StreamID { StreamID(high: 5, low: number) }
    static func client(_ number: UInt64) -> ConnectionID { ConnectionID(high: 0, low: number) }

    static func details(_ number: UInt64) -> RecordedStream {
        RecordedStream(publisher: client(number), connectionData: "client \(number)", name: "Camera")
    }

    /// Connects a client that publishes the sample clip.
    func publish(_ number: UInt64) async throws {
        let (connection, offer) = try await robots.run { [robots] in
            let connection = try robots.open()
            return (connection, connection.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)]))
        }
        let client = Self.client(number)
        plane.perform(.offer(client, in: Self.session, re: number, .send, sdp: offer))
        try await eventually("the offer is not answered") { answer(to: client) != nil }
        let text = try #require(answer(to: client))
        try await robots.run { [robots] in
            try connection.accept(answer: text, now: robots.now)
            var random = SystemRandomNumberGenerator()
            connection.source = ClipPlayer(.sample, using: &random)
        }
        plane.perform(
            .publish(
                Self.stream(number), Self.session, by: client, MediaMids(audio: "a", video: "v"), audio: true,
                video: true))
    }

    private func answer(to client: ConnectionID) -> String? {
        for case .answered(client, _, _, let sdp) in received.media.withLock({ $0 }) { return sdp }
        return nil
    }

    func begin(_ archive: ArchiveID) {
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
        recorder.send(.begin(archive, Self.session, RecordingOptions(name: "Test", project: "4711", createdAt: now)))
    }

    /// The path of a file of an archive.
    func path(_ archive: ArchiveID, _ name: String) -> String { folder.appending(path: "\(archive)/\(name)").path }

    /// The size of a file; 0 if it does not exist.
    func size(_ archive: ArchiveID, _ name: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path(archive, name))
        return (attributes?[.size] as? NSNumber)?.intValue ?? 0
    }
}
