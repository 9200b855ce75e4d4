import Foundation
import LiveComposing
import MediaFiles
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Broadcasting

/// Most tests run a script in place of the compositor, which needs FFmpeg's headers to be built.
@Suite(
    "A broadcast that runs", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"), .serialized,
    .timeLimit(.minutes(3)))
struct LiveBroadcastTests {
    /// The path of confab-compositor; `scripts/compositor` prints it.
    static let compositor = ProcessInfo.processInfo.environment["CONFAB_COMPOSITOR"]
    private static let configuration = CompositorConfiguration(width: 320, height: 180, delay: .milliseconds(400))

    private static func clock() -> Timestamp {
        Timestamp(milliseconds: Int64(ProcessInfo.processInfo.systemUptime * 1_000))
    }

    /// Calls `body` with a temporary folder, which the broadcast's files are in.
    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "confab-live-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private static func broadcast(_ compositor: String, _ origin: HLSOrigin?) -> LiveBroadcast {
        LiveBroadcast(
            configuration, compositor: compositor, segmenting: HLSSettings.lowLatency.segmenting, origin: origin,
            wall: Timestamp(milliseconds: 1_767_323_045_678), clock: clock)
    }

    /// Returns the events until the broadcast has failed.
    private static func eventsUntilFailed(_ broadcast: LiveBroadcast) async -> [LiveBroadcast.Event] {
        var events: [LiveBroadcast.Event] = []
        for await event in broadcast.events {
            events.append(event)
            if case .failed = event { break }
        }
        return events
    }

    /// Writes the playlists beside the files of the origin, and returns the one of segments.
    private static func playlist(of origin: HLSOrigin, to folder: String) async throws -> String {
        var texts: [String] = []
        for name in [HLSFile.index, HLSFile.playlist] {
            let response = await origin.respond(to: name)
            let text = try #require(
                { if case .playlist(let text, _) = response { text } else { nil } }() as String?,
                "\(name) is not served")
            try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
            texts.append(text)
        }
        return texts[1]
    }

    /// Writes the file `output`, which a script sends: what a compositor would send.
    private static func writeOutput(seconds: Double, in folder: String) throws {
        let output = Data(try FakeCompositor.messages(seconds: seconds).joined())
        try output.write(to: URL(filePath: "\(folder)/output"))
    }

    private static func frames(_ folder: String) throws -> Int? {
        let arguments = [
            "-select_streams", "v", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0",
            "\(folder)/\(HLSFile.index)",
        ]
        return try TestMedia.run("ffprobe", arguments).first.flatMap { Int($0) }
    }

    @Test("survives two ends of its compositor, which are discontinuities for viewers, and fails with the third")
    func restarts() async throws {
        try await Self.withFolder { folder in
            try Self.writeOutput(seconds: 4, in: folder)
            let path = try FakeCompositor.write("cat '\(folder)/output' >&3; exit 7", in: folder)
            var settings = HLSSettings.lowLatency
            settings.window = .everything
            let origin = HLSOrigin(settings, in: .folder(folder), clock: Self.clock)
            let broadcast = Self.broadcast(path, origin)
            #expect(broadcast.hlsStatus == .connecting)
            broadcast.start()
            let ended = LiveBroadcast.Event.failure("The compositor has ended: exit status 7")
            #expect(await Self.eventsUntilFailed(broadcast) == [ended, ended, ended, .failed(.crashes)])
            #expect(broadcast.hlsStatus == .error)
            await broadcast.stop()
            let playlist = try await Self.playlist(of: origin, to: folder)
            #expect(playlist.components(separatedBy: "#EXT-X-DISCONTINUITY\n").count == 3)
            #expect(playlist.hasSuffix("#EXT-X-ENDLIST\n") && playlist.contains("init-3.mp4"))
            #expect(try Self.frames(folder) == 300)
        }
    }

    #if os(Linux)
    @Test("fails when the disk is full, and viewers see the end of what was stored")
    func diskFull() async throws {
        try await Self.withFolder { folder in
            try Self.writeOutput(seconds: 8, in: folder)
            let path = try FakeCompositor.write("cat '\(folder)/output' >&3; exec cat <&3 >/dev/null", in: folder)
            // Every write to this file fails.
            let full = "\(folder)/seg-000002.m4s"
            try FileManager.default.createSymbolicLink(atPath: full, withDestinationPath: "/dev/full")
            var settings = HLSSettings.lowLatency
            (settings.window, settings.partTarget) = (.everything, nil)
            let origin = HLSOrigin(settings, in: .folder(folder), clock: Self.clock)
            let broadcast = Self.broadcast(path, origin)
            broadcast.start()
            let events = await Self.eventsUntilFailed(broadcast)
            #expect(events.last == .failed(.diskFull) && events.count == 2, "\(events)")
            #expect(broadcast.hlsStatus == .error)
            // The link is gone with the segment that could not be written, so make the last write fail too.
            try FileManager.default.createSymbolicLink(atPath: full, withDestinationPath: "/dev/full")
            await broadcast.stop()
            let playlist = try await Self.playlist(of: origin, to: folder)
            #expect(playlist.hasSuffix("#EXT-X-ENDLIST\n") && playlist.contains("seg-000001.m4s"))
            #expect(!playlist.contains("seg-000002.m4s") && !FileManager.default.fileExists(atPath: full))
            #expect(try #require(try Self.frames(folder)) == 96)
        }
    }
    #endif

    @Test("kills a compositor that reads but sends nothing, starts it again, and fails with the third")
    func silence() async throws {
        try await Self.withFolder { folder in
            let path = try FakeCompositor.write("echo >> '\(folder)/starts'; exec cat <&3 >/dev/null", in: folder)
            let now = Mutex(Timestamp(milliseconds: 0))
            let broadcast = LiveBroadcast(
                Self.configuration, compositor: path, segmenting: HLSSettings.standard.segmenting, origin: nil,
                wall: Timestamp(milliseconds: 0)
            ) { now.withLock { $0 } }
            broadcast.start()
            for run in 1...3 {
                try await until("run \(run) starts") {
                    (try? Data(contentsOf: URL(filePath: "\(folder)/starts")))?.count == run
                }
                now.withLock { $0 = $0 + CompositorRuns.silenceTimeout }
                broadcast.tick()
            }
            let silent = LiveBroadcast.Event.failure(
                "The compositor has sent nothing for 10.0 seconds, so it was killed.")
            #expect(await Self.eventsUntilFailed(broadcast) == [silent, silent, silent, .failed(.crashes)])
            await broadcast.stop()
        }
    }

    @Test("gives each compositor its configuration, the layout and the open streams through descriptor 3")
    func descriptor() async throws {
        try await Self.withFolder { folder in
            let open = CompositorInput.open(stream: 5, .vp8, configuration: [1, 2])
            let expected = [
                CompositorInput.config(Self.configuration, at: .zero), .layout(CompositorLayout([]), at: .zero), open,
            ]
            let count = expected.reduce(0) { $0 + $1.message.bytes.count }
            let path = try FakeCompositor.write(
                "head -c \(count) <&3 >> '\(folder)/input'; ls /proc/$$/fd >&2; exit 1", in: folder)
            let broadcast = Self.broadcast(path, nil)
            broadcast.start()
            broadcast.send(open)
            let events = await Self.eventsUntilFailed(broadcast)
            // The shell opens its script as descriptor 10.
            #expect(events.first == .failure("The compositor has ended: 3"), "no other descriptor is inherited")
            await broadcast.stop()
            var reader = CompositorMessageReader()
            reader.append(try Data(contentsOf: URL(filePath: "\(folder)/input")))
            var inputs: [CompositorInput] = []
            while let message = try reader.next() { inputs.append(try CompositorInput(message)) }
            let timeless = inputs.map { input -> CompositorInput in
                switch input {
                case .config(let configuration, _): .config(configuration, at: .zero)
                case .layout(let layout, _): .layout(layout, at: .zero)
                default: input
                }
            }
            #expect(timeless == expected + expected + expected)
        }
    }

    @Test("fails without a compositor, and after bytes that are no messages")
    func broken() async throws {
        let missing = Self.broadcast("/nonexistent/compositor", nil)
        missing.start()
        let failure = LiveBroadcast.Event.failure("The compositor cannot be started: /nonexistent/compositor")
        #expect(await Self.eventsUntilFailed(missing) == [failure, failure, failure, .failed(.crashes)])
        await missing.stop()
        try await Self.withFolder { folder in
            let path = try FakeCompositor.write(
                "echo 'These are not messages.' >&3; exec cat <&3 >/dev/null", in: folder)
            let garbage = Self.broadcast(path, nil)
            garbage.start()
            let events = await Self.eventsUntilFailed(garbage)
            #expect(events.count == 4 && events.last == .failed(.crashes))
            await garbage.stop()
        }
    }

    @Test(
        "composes VP8 live, and ffmpeg plays what viewers get",
        .enabled(if: compositor != nil, "CONFAB_COMPOSITOR is not set to a confab-compositor (scripts/compositor)"))
    func real() async throws {
        try await Self.withFolder { folder in
            let video = "\(folder)/video.ivf"
            try TestMedia.run(
                "ffmpeg",
                [
                    "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=12", "-c:v", "libvpx", "-deadline", "realtime",
                    "-cpu-used", "8", "-b:v", "500k", "-g", "25", video,
                ])
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: video)))
            let file = try bytes.withUnsafeBytes { try IVFFile($0) }
            var settings = HLSSettings.lowLatency
            settings.window = .everything
            let origin = HLSOrigin(settings, in: .folder(folder), clock: Self.clock)
            let broadcast = Self.broadcast(try #require(Self.compositor), origin)
            broadcast.start()
            let begun = broadcast.time
            broadcast.send(.open(stream: 1, .vp8, configuration: []))
            let cell = CompositorCell(stream: 1, x: 0, y: 0, width: 320, height: 180)
            broadcast.send(.layout(CompositorLayout([cell]), at: begun))
            for (index, frame) in file.frames.enumerated() {
                let isKeyframe = bytes[frame.range.lowerBound] & 1 == 0
                broadcast.send(
                    .video(
                        stream: 1, at: begun + .milliseconds(40 * index), isKeyframe: isKeyframe,
                        Array(bytes[frame.range])))
            }
            try await until("three segments are there") { origin.isReady }
            #expect(broadcast.hlsStatus == .ready)
            _ = await origin.respond(to: HLSFile.playlist)
            #expect(broadcast.hlsStatus == .live)
            await broadcast.stop()
            var events: [LiveBroadcast.Event] = []
            for await event in broadcast.events { events.append(event) }
            #expect(!events.contains { if case .failure = $0 { true } else { false } }, "\(events)")
            let playlist = try await Self.playlist(of: origin, to: folder)
            #expect(playlist.hasSuffix("#EXT-X-ENDLIST\n"))
            #expect(try #require(try Self.frames(folder)) >= 120)
            // A black image has an average of 16.
            let lines = try TestMedia.run(
                "ffprobe",
                [
                    "-f", "lavfi", "-i", "movie=\(folder)/\(HLSFile.playlist),select=eq(n\\,50),signalstats",
                    "-show_entries", "frame_tags=lavfi.signalstats.YAVG", "-of", "csv=p=0",
                ])
            #expect(try #require(lines.first.flatMap { Double($0) }) > 60)
        }
    }
}
