import Foundation
import LiveComposing
import MediaFiles
import Robots
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Notes what a compositor would get.
private final class NotedSink: BroadcastSink {
    private let begun = ContinuousClock.now
    private let noted = Mutex<[CompositorInput]>([])

    var time: Duration { ContinuousClock.now - begun }
    func send(_ input: CompositorInput) { noted.withLock { $0.append(input) } }
    var inputs: [CompositorInput] { noted.withLock { $0 } }

    /// The codecs of a stream, each when it began; nil for a stream without video.
    func codecs(of number: UInt32) -> [CompositorCodec?] {
        inputs.compactMap { if case .open(number, let codec, _) = $0 { .some(codec) } else { nil } }
    }

    /// The number and width of the cells of each layout.
    var layouts: [[[Int]]] {
        inputs.compactMap { input in
            guard case .layout(let layout, _) = input else { return nil }
            return layout.cells.map { [Int($0.stream), $0.width] }
        }
    }

    /// The video frames of a stream: whether each is a keyframe.
    func video(of number: UInt32) -> [Bool] {
        inputs.compactMap { if case .video(number, _, let isKeyframe, _) = $0 { isKeyframe } else { nil } }
    }

    func audio(of number: UInt32) -> Int {
        inputs.count { if case .audio(number, _, _) = $0 { true } else { false } }
    }
}

@Suite("Broadcasts with media", .ownThreads, .serialized, .timeLimit(.minutes(3)))
struct BroadcastEndToEndTests {
    /// The path of confab-compositor; `scripts/compositor` prints it.
    static let compositor = ProcessInfo.processInfo.environment["CONFAB_COMPOSITOR"]
    private let broadcast = BroadcastID(high: 1, low: 2)

    @Test("streams reach the compositor as frames while an archive records them, and a camera that is off has no cell")
    func feed() async throws {
        let room = try RecordedRoom()
        for number: UInt64 in 1...2 { try await room.publish(number) }
        let sink = NotedSink()
        let canvas = ArchiveCanvas(width: 1_280, height: 720)
        room.recorder.feed(.begin(broadcast, BroadcastFeed.Settings(canvas: canvas), sink))
        let (stream, details) = (RecordedRoom.stream(1), RecordedRoom.details(1))
        let archive = ArchiveID(high: 1, low: 2)
        room.begin(archive)
        room.recorder.send(.add(archive, stream, details))
        // The recorder numbers the streams of archives and broadcasts.
        room.recorder.feed(.add(broadcast, stream, details))
        try await eventually("no frames of the first stream: \(sink.inputs.count) inputs") {
            sink.video(of: 2).count > 30 && sink.audio(of: 2) > 50
        }
        #expect(sink.codecs(of: 2) == [nil, .vp8] && sink.video(of: 2).first == true)
        #expect(sink.layouts == [[[2, 1_280]]])
        room.recorder.feed(.add(broadcast, RecordedRoom.stream(2), RecordedRoom.details(2)))
        try await eventually("no frames of the second stream") { sink.video(of: 3).count > 10 }
        #expect(sink.layouts.last == [[2, 640], [3, 640]])

        let client = RecordedRoom.client(1)
        room.plane.perform(.update(stream, by: client, audio: true, video: false))
        try await eventually("the muted stream is drawn: \(sink.layouts)") { sink.layouts.last == [[3, 1_280]] }
        #expect(sink.codecs(of: 2) == [nil, .vp8, nil])
        let before = sink.video(of: 2).count
        room.plane.perform(.update(stream, by: client, audio: true, video: true))
        try await eventually("the stream is not drawn again: \(sink.layouts)") {
            sink.layouts.last?.count == 2 && sink.video(of: 2).count > before + 10
        }
        #expect(sink.video(of: 2)[before], "begins with a keyframe")
        let keyframes = sink.video(of: 2).count { $0 }
        room.recorder.feed(.requestKeyframe(broadcast, 2))
        try await eventually("no keyframe comes") { sink.video(of: 2).count { $0 } > keyframes }

        room.recorder.feed(.remove(broadcast, stream))
        try await eventually("the stream is not closed") { sink.inputs.contains(.close(stream: 2)) }
        // The layout follows the end of the stream.
        try await eventually("the closed stream is drawn: \(sink.layouts)") { sink.layouts.last == [[3, 1_280]] }
        let name = "\(stream).webm"
        let size = room.size(archive, name)
        #expect(size > 0)
        try await eventually("the archive does not continue") { room.size(archive, name) > size }
        room.recorder.feed(.end(broadcast))
        try await eventually("the broadcast does not end") { sink.inputs.contains(.close(stream: 3)) }
        let times = sink.inputs.compactMap { input -> Duration? in
            switch input {
            case .video(_, let time, _, _), .audio(_, let time, _): time
            default: nil
            }
        }
        // 300 ms of waiting for a lost packet, and more on a busy machine.
        #expect(times.allSatisfy { $0 <= sink.time } && times.last.map { sink.time - $0 < .seconds(30) } == true)
    }

    @Test(
        "a broadcast of two bots is composed, and ffmpeg plays it over HTTP",
        .enabled(if: compositor != nil, "CONFAB_COMPOSITOR is not set to a confab-compositor (scripts/compositor)"),
        .enabled(if: RecordingJudge.isHere, "ffmpeg is not installed"))
    func composed() async throws {
        let compositor = try #require(Self.compositor)
        let folder = FileManager.default.temporaryDirectory.appending(path: "confab-watched-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await TestServer.run {
            $0.rules.recordingNotice = .zero
            $0.broadcasts.compositor = compositor
        } _: { server in
            let studio = try BroadcastStudio(server)
            let bots = try await studio.bots(2)
            defer { for bot in bots { bot.cancel() } }
            let (id, playlist) = try await studio.start()
            try await eventually("it is not ready") { try await studio.status(id) == ["started", "ready"] }
            let file = folder.appending(path: "watched.mp4").path
            // Plays 3 s, which comes in more than one segment.
            let played = try ChildProgram.run(
                "ffmpeg", ["-v", "error", "-i", "\(studio.base)\(playlist)", "-t", "3", "-c", "copy", file])
            #expect(played.status == 0, "\(played.standardError)")
            #expect(try RecordingJudge.codecs(file).sorted() == ["aac", "h264"])
            try await eventually("nobody seems to watch") { try await studio.status(id) == ["started", "live"] }
            // A black image has an average of 16.
            let brightness = try ChildProgram.run(
                "ffprobe",
                [
                    "-v", "error", "-f", "lavfi", "-i", "movie=\(file),select=eq(n\\,20),signalstats", "-show_entries",
                    "frame_tags=lavfi.signalstats.YAVG", "-of", "csv=p=0",
                ])
            #expect(try #require(brightness.lines.first.flatMap { Double($0) }) > 30)
            try await studio.stop(id)
            try await eventually("it does not end") { try await studio.status(id) == ["stopped", "ended"] }
            let segments = playlist.replacingOccurrences(of: "index.m3u8", with: "live.m3u8")
            try await eventually("the playlist does not end") {
                try await studio.get(segments).hasSuffix("#EXT-X-ENDLIST\n")
            }
        }
    }
}

/// An application's server that broadcasts a routed session.
private struct BroadcastStudio: Sendable {
    let base: String
    private let project: Project
    private let session: SessionID

    init(_ server: TestServer) throws {
        base = "http://127.0.0.1:\(server.port)"
        project = try server.project.project
        var random = SystemRandomNumberGenerator()
        session = project.makeSessionID(mediaMode: .routed, now: Self.now, using: &random)
    }

    private static var now: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000)) }

    /// Connects bots that publish the sample clip.
    func bots(_ count: Int) async throws -> [Task<Void, Never>] {
        var tasks: [Task<Void, Never>] = []
        for number in 0..<count {
            var random = SystemRandomNumberGenerator()
            let token = project.makeSessionToken(
                SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(600)), now: Self.now,
                using: &random)
            let plan = BotPlan(server: base, place: .session(session, token: token))
            let bot = try await Bot.connect(number, of: Bot.Group(plan)) { _ in }
            tasks.append(Task { try? await bot.run() })
        }
        return tasks
    }

    private func ask(_ method: String, _ path: String, _ body: String = "") async throws -> JSONObject {
        let url = "\(base)/v2/project/\(project.apiKey)/broadcast\(path)"
        var request = URLRequest(url: try #require(URL(string: url)))
        request.httpMethod = method
        request.setValue(project.makeRequestToken(now: Self.now), forHTTPHeaderField: "X-OPENTOK-AUTH")
        if !body.isEmpty {
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(body.utf8)
        }
        let (data, _) = try await URLSession.shared.data(for: request)
        guard case .object(let object) = try JSONReader.parse([UInt8](data)) else { return JSONObject() }
        return object
    }

    private func text(_ object: JSONObject, _ name: String) -> String? {
        if case .string(let text)? = object[name] { text } else { nil }
    }

    /// Starts a broadcast, as soon as a bot is in the session.
    ///
    /// - Returns: its id, and the path of its playlist.
    func start() async throws -> (id: String, playlist: String) {
        let body =
            #"{"sessionId":"\#(session.text)","outputs":{"hls":{"lowLatency":true}},"resolution":"640x480"}"#
        var found: (String, String)?
        try await eventually("the broadcast does not start") {
            let broadcast = try await ask("POST", "", body)
            guard let id = text(broadcast, "id"), case .object(let urls)? = broadcast["broadcastUrls"],
                let playlist = text(urls, "hls")
            else { return false }
            found = (id, playlist)
            return true
        }
        return try #require(found)
    }

    func stop(_ id: String) async throws { _ = try await ask("POST", "/\(id)/stop") }

    /// The status of a broadcast, and that of its playlist.
    func status(_ id: String) async throws -> [String?] {
        let broadcast = try await ask("GET", "/\(id)")
        guard case .object(let urls)? = broadcast["broadcastUrls"] else { return [] }
        return [text(broadcast, "status"), text(urls, "hlsStatus")]
    }

    func get(_ path: String) async throws -> String {
        let (data, _) = try await URLSession.shared.data(from: try #require(URL(string: base + path)))
        return String(decoding: data, as: UTF8.self)
    }
}
