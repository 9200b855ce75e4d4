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

/// A server that broadcasts with a script in place of the compositor, and a routed session in it.
private struct ViewerPlace: Sendable {
    let archives: ArchivePlace
    let compositor: FakeCompositor
    var server: TestServer { archives.server }
    var path: String { "/v2/project/\(server.project.apiKey)/broadcast" }

    /// Runs `body` with a server whose compositor is this one, and a client who publishes.
    ///
    /// - Parameter broadcaster: nil for the server's own.
    static func run(
        _ compositor: FakeCompositor, broadcaster: TestServerBroadcaster? = nil,
        _ configure: (inout ConfabConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (ViewerPlace) async throws -> Void
    ) async throws {
        defer { compositor.remove() }
        try await TestServer.run(broadcaster: broadcaster) {
            $0.rules.recordingNotice = .zero
            $0.broadcasts.compositor = compositor.path
            configure(&$0)
        } _: { server in
            let place = ViewerPlace(archives: try ArchivePlace(server), compositor: compositor)
            let (client, _) = try await place.archives.publisher()
            try await body(place)
            await client.drop()
        }
    }

    /// Runs `body` with such a server whose broadcaster has other settings, and with this broadcaster.
    static func run(
        _ compositor: FakeCompositor, changing change: @escaping @Sendable (inout Broadcaster.Settings) -> Void,
        _ body: @escaping @Sendable (ViewerPlace, Broadcaster) async throws -> Void
    ) async throws {
        let (made, make) = AsyncStream<Broadcaster>.makeStream()
        let maker = TestServerBroadcaster { report in
            var settings = Broadcaster.Settings(compositor: compositor.path, folder: "/nonexistent")
            change(&settings)
            let broadcaster = Broadcaster(
                settings, wallClock: { RoomsPlace.now },
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, feed: { _ in }, report: report)
            make.yield(broadcaster)
            return broadcaster
        }
        try await run(compositor, broadcaster: maker) { place in
            var broadcasters = made.makeAsyncIterator()
            let broadcaster = try #require(await broadcasters.next())
            try await body(place, broadcaster)
        }
    }

    func ask(_ method: String, _ path: String = "", _ body: String = "") async throws -> WHIPPlace.Answer {
        let headers = body.isEmpty ? [:] : ["Content-Type": "application/json"]
        return try await archives.rooms.ask(method, self.path + path, headers, body)
    }

    /// Starts a broadcast, and returns its id and the path of its folder for viewers.
    func start(_ hls: String) async throws -> (id: String, folder: String) {
        let answer = try await ask("POST", "", #"{"sessionId":"\#(archives.session.text)","outputs":{"hls":\#(hls)}}"#)
        try #require(answer.status == 200, "\(answer.text)")
        let broadcast = try answer.object()
        guard case .object(let urls)? = broadcast["broadcastUrls"], case .string(let url)? = urls["hls"] else {
            throw WireError.internalError
        }
        #expect(urls["hlsStatus"] == .string("connecting"))
        let path = try #require(url.split(separator: "?").first)
        #expect(path.hasSuffix("/index.m3u8"))
        return (try #require(ArchivePlace.text(broadcast, "id")), String(path.dropLast("index.m3u8".count)))
    }

    /// Sends a request of a viewer on another site.
    func view(_ path: String, _ method: String = "GET") async throws -> WHIPPlace.Answer {
        try await archives.rooms.place.ask(method, path, ["Origin": "https://elsewhere.example"])
    }

    /// The status of a broadcast, and that of its playlist.
    func status(_ id: String) async throws -> [String?] {
        let broadcast = try await ask("GET", "/\(id)").object()
        guard case .object(let urls)? = broadcast["broadcastUrls"] else { return [] }
        return [ArchivePlace.text(broadcast, "status"), ArchivePlace.text(urls, "hlsStatus")]
    }

    /// - Parameter ticking: called again and again.
    func wait(_ id: String, for expected: [String], ticking broadcaster: Broadcaster? = nil) async throws {
        try await eventually {
            broadcaster?.tick()
            let status = try await status(id)
            return status == expected ? nil : "the status is \(status)"
        }
    }
}

@Suite("Viewers of broadcasts", .ownThreads, .serialized, .timeLimit(.minutes(3)))
struct ViewerTests {
    @Test(
        "load playlists and parts from any site, wait for the next part, and see the end",
        .enabled(if: FakeCompositor.canEncode, "ffmpeg is not installed"))
    func lowLatency() async throws {
        let compositor = try FakeCompositor(sending: FakeCompositor.messages(seconds: 10))
        try await ViewerPlace.run(
            compositor,
            changing: {
                // A request that is held may wait as long as this test takes.
                ($0.interval, $0.output.stopTimeout) = (.seconds(3_600), .zero)
            }
        ) { place, broadcaster in
            let (id, folder) = try await place.start(#"{"lowLatency":true}"#)
            try await place.wait(id, for: ["started", "ready"], ticking: broadcaster)
            let index = try await place.view(folder + "index.m3u8")
            #expect(index.status == 200 && index["Content-Type"] == "application/vnd.apple.mpegurl")
            #expect(index["Access-Control-Allow-Origin"] == "*" && index["Cache-Control"] == "no-cache")
            #expect(index.text.contains("live.m3u8"))
            let playlist = try await place.view(folder + "live.m3u8?_HLS_msn=0")
            #expect(playlist.status == 200 && playlist["Cache-Control"] == "max-age=6")
            try await place.wait(id, for: ["started", "live"], ticking: broadcaster)
            let lines = playlist.text.split(separator: "\n")
            let segment = try #require(lines.first { $0.hasPrefix("seg-") })
            let media = try await place.view(folder + segment)
            #expect(media.status == 200 && media["Content-Type"] == "video/mp4")
            #expect(media["Cache-Control"] == "public, max-age=31536000, immutable")
            #expect(try await place.view(folder + segment, "HEAD").status == 200)
            #expect(try await place.view(folder + "init-1.mp4").status == 200)
            let preflight = try await place.view(folder + "index.m3u8", "OPTIONS")
            #expect(preflight.status == 204 && preflight["Access-Control-Allow-Origin"] == "*")
            for wrong in ["seg-999999.m4s", "seg-0.m4s", "..%2f..%2fproject.json", "live.m3u8%00"] {
                #expect(try await place.view(folder + wrong).status == 404, "\(wrong)")
            }
            #expect(try await place.view(folder + "live.m3u8?_HLS_msn=99").status == 400)
            #expect(try await place.view(folder + "live.m3u8?_HLS_msn=-1").status == 400)
            let other = folder.dropLast(33) + "00000000000000000000000000000000/index.m3u8"
            let refused = try await place.view(String(other))
            #expect(refused.status == 404 && refused["Retry-After"] == nil)
            // The part that comes next is held until the broadcast ends without it.
            let hint = try #require(lines.first { $0.hasPrefix("#EXT-X-PRELOAD-HINT") })
            let next = try #require(hint.split(separator: "\"").dropFirst().first)
            async let held = place.view(folder + next)
            try await eventually {
                let held = broadcaster.figures.held
                return held == 1 ? nil : "\(held) requests wait"
            }
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            #expect(try await held.status == 404)
            try await place.wait(id, for: ["stopped", "ended"])
            #expect(try await place.view(folder + "live.m3u8").text.hasSuffix("#EXT-X-ENDLIST\n"))
            #expect(broadcaster.figures == BroadcastFigures())
        }
    }

    @Test("of a broadcast that has just started get 404 with the time after which to try again")
    func notReady() async throws {
        try await ViewerPlace.run(try FakeCompositor()) { place in
            let (id, folder) = try await place.start("{}")
            let early = try await place.view(folder + "index.m3u8")
            #expect(early.status == 404 && early["Retry-After"] == "2")
            #expect(early["Access-Control-Allow-Origin"] == "*")
            #expect(try await place.view(folder + "live.m3u8").status == 404)
            #expect(try await place.status(id) == ["started", "connecting"])
            // The stream of the client is open, and has no video yet.
            try await eventually {
                let inputs = place.compositor.inputs
                return inputs == [.config, .layout, .open] ? nil : "the compositor got \(inputs)"
            }
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            try await place.wait(id, for: ["stopped", "ended"])
            try await eventually {
                let inputs = place.compositor.inputs
                return inputs.last == .stop ? nil : "the compositor got \(inputs)"
            }
            #expect(try await place.view(folder + "index.m3u8").status == 404, "there is nothing to see")
        }
    }

    @Test("of a broadcast whose compositor crashes again and again see that it failed")
    func crash() async throws {
        try await ViewerPlace.run(try FakeCompositor("exit 7")) { place in
            let (id, folder) = try await place.start("{}")
            try await place.wait(id, for: ["failed", "error"])
            #expect(try await place.view(folder + "index.m3u8").status == 404)
            #expect(try await place.ask("POST", "/\(id)/stop").status == 409)
            // The session can be broadcast again.
            _ = try await place.start("{}")
        }
    }

    @Test(
        "can go back to the beginning with DVR, and find nothing when the files were deleted",
        .enabled(if: FakeCompositor.canEncode, "ffmpeg is not installed"))
    func recordable() async throws {
        let compositor = try FakeCompositor(sending: FakeCompositor.messages(seconds: 20))
        try await ViewerPlace.run(compositor) {
            $0.broadcasts.keep = .zero
        } _: { place in
            let (id, folder) = try await place.start(#"{"dvr":true}"#)
            try await place.wait(id, for: ["started", "ready"])
            let playlist = try await place.view(folder + "live.m3u8").text
            #expect(playlist.contains("#EXT-X-PLAYLIST-TYPE:EVENT") && playlist.contains("seg-000000.m4s"))
            #expect(try await place.view(folder + "seg-000000.m4s").status == 200)
            let files = "\(place.server.dataDirectory)/broadcasts/\(id)"
            #expect(FileManager.default.fileExists(atPath: files))
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            try await eventually {
                let status = try await place.view(folder + "live.m3u8").status
                return status == 404 && !FileManager.default.fileExists(atPath: files) ? nil : "it is still there"
            }
        }
    }

    @Test(
        "load the end of a broadcast from a server that stops, and the broadcast's record says why it ended",
        .enabled(if: FakeCompositor.canEncode, "ffmpeg is not installed"))
    func stopping() async throws {
        let compositor = try FakeCompositor(sending: FakeCompositor.messages(seconds: 10))
        let (paused, pause) = AsyncStream<Void>.makeStream()
        let (released, release) = AsyncStream<Void>.makeStream()
        try await ViewerPlace.run(
            compositor,
            changing: {
                $0.pause = { _ in
                    pause.yield()
                    for await _ in released { break }
                }
            }
        ) { place, _ in
            defer { release.yield() }
            let (id, folder) = try await place.start(#"{"lowLatency":true}"#)
            try await place.wait(id, for: ["started", "ready"])
            let before = try await place.view(folder + "live.m3u8").text
            #expect(before.contains("seg-000000.m4s") && !before.contains("#EXT-X-ENDLIST"))
            place.server.stop()
            for await _ in paused { break }
            #expect(try await place.view("/health").status == 503)
            let after = try await place.view(folder + "live.m3u8").text
            #expect(after.hasSuffix("#EXT-X-ENDLIST\n"))
            let last = try #require(after.split(separator: "\n").last { $0.hasPrefix("seg-") })
            #expect(try await place.view(folder + last).status == 200)
            let storage = try SQLiteStorage(directory: place.server.dataDirectory)
            let key = try #require(BroadcastID(id))
            try await eventually {
                let record = try await storage.broadcast(key)
                return record?.status == .stopped ? nil : "the record is \(String(describing: record))"
            }
            let record = try await storage.broadcast(key)
            #expect(record?.reason == "server restarted" && record?.hlsStatus == .ended)
            try await storage.close()
        }
    }

    @Test("of a broadcast with DVR see that it failed when the disk is full, and the next one is refused")
    func diskFull() async throws {
        let compositor = try FakeCompositor()
        let folder = compositor.folder
        let free = Mutex<Int64>(.max)
        try await ViewerPlace.run(
            compositor,
            changing: {
                $0.folder = folder
                ($0.minSpace, $0.spaceInterval, $0.interval) = (1_000, .zero, .seconds(3_600))
                $0.freeSpace = { _ in free.withLock { $0 } }
            }
        ) { place, broadcaster in
            let (id, _) = try await place.start(#"{"dvr":true}"#)
            // The broadcast has begun, after its notice.
            try await eventually { broadcaster.figures.running == 1 ? nil : "it has not begun" }
            free.withLock { $0 = 1 }
            try await place.wait(id, for: ["failed", "error"], ticking: broadcaster)
            #expect(ArchivePlace.text(try await place.ask("GET", "/\(id)").object(), "reason") == "disk full")
            let dvr = #"{"sessionId":"\#(place.archives.session.text)","outputs":{"hls":{"dvr":true}}}"#
            try await eventually {
                // Until the space is measured again, the broadcast begins and fails.
                broadcaster.tick()
                let answer = try await place.ask("POST", "", dvr)
                return answer.status == 503 && answer.code == "storage_full" ? nil : "\(answer.status)"
            }
            try await eventually {
                broadcaster.tick()
                let answer = try await place.ask(
                    "POST", "", #"{"sessionId":"\#(place.archives.session.text)","outputs":{"hls":{}}}"#)
                return answer.status == 200 ? nil : "\(answer.text)"
            }
        }
    }

    @Test("get nothing from a server without a compositor, which says what to install")
    func unavailable() async throws {
        try await TestServer.run {
            $0.broadcasts.compositor = "/missing/confab-compositor"
        } _: { server in
            let place = ViewerPlace(archives: try ArchivePlace(server), compositor: try FakeCompositor(""))
            defer { place.compositor.remove() }
            let answer = try await place.ask(
                "POST", "", #"{"sessionId":"\#(place.archives.session.text)","outputs":{"hls":{}}}"#)
            #expect(answer.status == 501 && answer.code == "broadcast_unavailable")
            #expect(answer.text.contains("confab-compositor"))
        }
    }
}
