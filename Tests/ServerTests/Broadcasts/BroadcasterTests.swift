import Broadcasting
import Foundation
import LiveComposing
import Logging
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

/// A broadcaster whose compositor is a script, and whose feed is noted.
private final class Studio: Sendable {
    static let id = BroadcastID(high: 1, low: 2)
    static let key = BroadcastKey(high: 3, low: 4)

    let broadcaster: Broadcaster
    private let noted: Noted

    private final class Noted: Sendable {
        let reports = Mutex<[BroadcastReport]>([])
        let commands = Mutex<[BroadcastFeedCommand]>([])
    }

    init(_ compositor: String, _ change: (inout Broadcaster.Settings) -> Void = { _ in }) {
        let noted = Noted()
        self.noted = noted
        var settings = Broadcaster.Settings(compositor: compositor, folder: "/nonexistent")
        // The tests call `tick`.
        settings.interval = .seconds(3_600)
        change(&settings)
        broadcaster = Broadcaster(
            settings, wallClock: { Timestamp(milliseconds: 1_767_323_045_678) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            feed: { command in noted.commands.withLock { $0.append(command) } },
            report: { report in noted.reports.withLock { $0.append(report) } })
    }

    var reports: [BroadcastReport] { noted.reports.withLock { $0 } }
    var commands: [BroadcastFeedCommand] { noted.commands.withLock { $0 } }

    @discardableResult func begin(
        _ id: BroadcastID = Studio.id, _ change: (inout BroadcastRequest) -> Void = { _ in }
    ) throws -> any BroadcastSink {
        var request = BroadcastRequest()
        request.hls = HLSOutput(isLowLatency: true)
        change(&request)
        let session = try #require(SessionID("1_MX4xfn4xfn5sb29wc34"))
        broadcaster.send(
            .begin(
                BroadcastRecord(
                    id: id, project: "key", session: session, request: request, key: Self.key,
                    createdAt: Timestamp(milliseconds: 0))))
        guard case .begin(id, _, let sink)? = commands.last else { throw Missing() }
        return sink
    }

    struct Missing: Error {}

    /// Whether the recorder was asked for a keyframe of this stream.
    func hasRequestedKeyframe(of stream: UInt32) -> Bool {
        commands.contains { if case .requestKeyframe(Self.id, stream) = $0 { true } else { false } }
    }
}

@Suite("Broadcasts that are composed", .ownThreads, .serialized, .timeLimit(.minutes(3)))
struct BroadcasterTests {
    @Test("a compositor that reads nothing first loses video, then it is killed, and the third end fails the broadcast")
    func fullQueue() async throws {
        let compositor = try FakeCompositor("exec sleep 600")
        defer { compositor.remove() }
        let studio = Studio(compositor.path)
        let sink = try studio.begin()
        sink.send(.open(stream: 7, .vp8, configuration: []))
        let frame = CompositorInput.video(
            stream: 7, at: .zero, isKeyframe: true, [UInt8](repeating: 0, count: 1 << 20))
        let audio = CompositorInput.audio(stream: 7, at: .zero, [UInt8](repeating: 0, count: 60_000))
        try await eventually {
            sink.send(frame)
            guard studio.broadcaster.figures.dropped > 0 else { return "no frame is dropped" }
            return studio.hasRequestedKeyframe(of: 7) ? nil : "no keyframe is requested"
        }
        #expect(studio.broadcaster.figures.running == 1 && studio.reports.isEmpty)
        try await eventually {
            sink.send(frame)
            sink.send(audio)
            return studio.reports.isEmpty ? "the compositor is not killed three times" : nil
        }
        #expect(studio.reports == [.failed(Studio.id, .compositor)])
        await studio.broadcaster.stop()
        #expect(studio.reports == [.failed(Studio.id, .compositor)], "a failure is the end")
    }

    @Test("what viewers load is there until some time after the end, for those with the key")
    func viewers() async throws {
        let compositor = try FakeCompositor()
        defer { compositor.remove() }
        let studio = Studio(compositor.path) { $0.output.linger = .zero }
        let (broadcaster, key) = (studio.broadcaster, Studio.key)
        try studio.begin()
        #expect(broadcaster.origin(of: Studio.id, key: key) != nil)
        #expect(broadcaster.origin(of: Studio.id, key: BroadcastKey(high: key.high, low: key.low ^ 1)) == nil)
        #expect(broadcaster.origin(of: Studio.id, key: BroadcastKey(high: key.high ^ 1, low: key.low)) == nil)
        #expect(broadcaster.origin(of: BroadcastID(high: 9, low: 9), key: key) == nil)
        // Both halves are wrong, and differ in ways that could cancel each other out.
        for wrong in [BroadcastKey(high: ~key.high, low: .max), BroadcastKey(high: key.high ^ 1, low: key.low | 1)] {
            #expect(broadcaster.origin(of: Studio.id, key: wrong) == nil)
        }
        broadcaster.tick()
        broadcaster.tick()
        #expect(studio.reports.isEmpty, "the status is still that of the record")
        broadcaster.send(.end(Studio.id))
        broadcaster.send(.end(Studio.id))
        try await eventually { studio.reports.last == .ended(Studio.id) ? nil : "\(studio.reports)" }
        #expect(studio.reports.count == 1)
        #expect(compositor.inputs == [.config, .layout, .stop])
        #expect(broadcaster.origin(of: Studio.id, key: key)?.isEnded == true)
        broadcaster.tick()
        #expect(broadcaster.origin(of: Studio.id, key: key) == nil)
        #expect(broadcaster.figures == BroadcastFigures())
    }

    @Test("when the server stops, each broadcast ends, requests that wait are answered, and no other broadcast begins")
    func stop() async throws {
        let compositor = try FakeCompositor()
        defer { compositor.remove() }
        let studio = Studio(compositor.path)
        try studio.begin { $0.hls = nil }
        await studio.broadcaster.stop()
        #expect(studio.reports == [.ended(Studio.id)])
        guard case .end(Studio.id)? = studio.commands.last else {
            Issue.record("the feed does not end: \(studio.commands)")
            return
        }
        #expect(throws: Studio.Missing.self) { try studio.begin() }
        #expect(studio.reports.last == .failed(Studio.id, .compositor))
    }

    @Test("a server that stops answers viewers until they have loaded the end, for a limited time")
    func lastViewers() async throws {
        let compositor = try FakeCompositor()
        defer { compositor.remove() }
        let waits = Mutex<[Duration]>([])
        let (paused, pause) = AsyncStream<Void>.makeStream()
        let (released, release) = AsyncStream<Void>.makeStream()
        let studio = Studio(compositor.path) { settings in
            settings.output.stopTimeout = .milliseconds(1)
            settings.pause = { duration in
                waits.withLock { $0.append(duration) }
                pause.yield()
                for await _ in released { break }
            }
        }
        let (broadcaster, other) = (studio.broadcaster, BroadcastID(high: 5, low: 6))
        try studio.begin()
        try studio.begin(other)
        let watched = try #require(broadcaster.origin(of: Studio.id, key: Studio.key))
        // Both have viewers, so that it does not matter which of them ends first.
        for id in [Studio.id, other] {
            _ = await broadcaster.origin(of: id, key: Studio.key)?.respond(to: HLSFile.playlist)
        }
        let stopping = Task { await broadcaster.stop() }
        for await _ in paused { break }
        #expect(waits.withLock { $0 } == [.milliseconds(1)], "low latency has 4 s, of which the setting allows 1 ms")
        #expect(Set(studio.reports.map(\.broadcast)) == [Studio.id, other] && studio.reports.count == 2)
        #expect(broadcaster.origin(of: Studio.id, key: Studio.key) === watched && watched.isEnded)
        release.yield()
        await stopping.value
        #expect(broadcaster.origin(of: Studio.id, key: Studio.key) == nil)
        #expect(await watched.respond(to: HLSFile.playlist) == .refused(.notFound))

        let unwatched = Studio(compositor.path) { $0.pause = { _ in Issue.record("nobody watches") } }
        try unwatched.begin()
        await unwatched.broadcaster.stop()
        #expect(unwatched.reports == [.ended(Studio.id)])
    }

    @Test("when the disk is nearly full, those with DVR end with a reason, and the others continue")
    func diskFull() async throws {
        let compositor = try FakeCompositor()
        defer { compositor.remove() }
        let folder = compositor.folder
        let free = Mutex<Int64?>(1_000)
        let studio = Studio(compositor.path) { settings in
            (settings.folder, settings.minSpace, settings.spaceInterval) = (folder, 1_000, .zero)
            settings.freeSpace = { path in path == folder ? free.withLock { $0 } : nil }
        }
        let (broadcaster, other) = (studio.broadcaster, BroadcastID(high: 5, low: 6))
        try studio.begin { $0.hls = HLSOutput(hasDVR: true) }
        try studio.begin(other)
        for space: Int64? in [1_000, 500, nil] {
            free.withLock { $0 = space }
            broadcaster.tick()
        }
        #expect(studio.reports.isEmpty && broadcaster.figures.running == 2)
        free.withLock { $0 = 499 }
        broadcaster.tick()
        try await eventually { studio.reports.isEmpty ? "the broadcast continues" : nil }
        #expect(studio.reports == [.failed(Studio.id, .diskFull)])
        #expect(broadcaster.origin(of: other, key: Studio.key)?.isEnded == false)
        var request = BroadcastRequest()
        request.hls = HLSOutput(hasDVR: true)
        try await eventually {
            broadcaster.refusal(of: request)?.code == .storageFull ? nil : "another one with DVR may begin"
        }
        request.hls = HLSOutput()
        #expect(broadcaster.refusal(of: request) == nil)
        let third = BroadcastID(high: 7, low: 8)
        #expect(throws: Studio.Missing.self) { try studio.begin(third) { $0.hls = HLSOutput(hasDVR: true) } }
        #expect(studio.reports.last == .failed(third, .diskFull))
        await broadcaster.stop()
        #expect(studio.reports.last == .ended(other))
    }

    private struct Names: PushResolver {
        let known: [String: [String]]
        func addresses(of host: String) async -> [IPAddress] { (known[host] ?? []).compactMap { IPAddress($0) } }
    }

    @Test("RTMP targets on private networks need a setting, also if only one of their addresses is private")
    func privateTargets() async throws {
        let names = Names(known: ["out": ["8.8.8.8"], "in": ["10.1.2.3"], "both": ["8.8.8.8", "127.0.0.1"]])
        func problem(_ host: String, allowsPrivate: Bool = false) async throws -> String? {
            let target = try RTMPDestination(serverURL: "rtmp://\(host)/live", streamName: "name")
            return await target.problem(names, allowsPrivate: allowsPrivate)
        }
        #expect(try await problem("out") == nil)
        #expect(try await problem("8.8.8.8") == nil)
        for host in ["in", "both", "127.0.0.1", "[::1]", "[fd00::1]", "192.168.1.1"] {
            #expect(try await problem(host)?.contains("private network") == true, "\(host)")
            #expect(try await problem(host, allowsPrivate: true) == nil, "\(host)")
        }
        #expect(try await problem("unknown", allowsPrivate: true)?.contains("unknown") == true)
    }
}
