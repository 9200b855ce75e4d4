import Foundation
import NIOHTTP1
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Requests for broadcasts", .ownThreads, .timeLimit(.minutes(3)))
struct BroadcastRequestTests {
    /// Runs `body` with a server that broadcasts.
    private func withServer(
        broadcasts: Bool = true, _ configure: (inout ConfabConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (BroadcastPlace, TestBroadcaster?) async throws -> Void
    ) async throws {
        let (made, make) = AsyncStream<TestBroadcaster>.makeStream()
        try await TestServer.run(broadcaster: broadcasts ? TestBroadcaster.maker { make.yield($0) } : nil) {
            $0.rules.recordingNotice = .zero
            configure(&$0)
        } _: { server in
            var broadcasters = made.makeAsyncIterator()
            try await body(try BroadcastPlace(server), broadcasts ? await broadcasters.next() : nil)
        }
    }

    private func object(_ value: JSONValue?) throws -> JSONObject {
        guard case .object(let object)? = value else { throw WireError(.malformed, "Not an object: \(value ?? .null)") }
        return object
    }

    @Test func `a broadcast is started, changed, listed and stopped`() async throws {
        try await withServer { place, broadcaster in
            #expect(try await place.start().status == 404, "nobody is connected")
            let (client, stream) = try await place.archives.publisher()
            let answer = try await place.start(
                #""outputs":{"hls":{},"rtmp":[{"id":"a","serverUrl":"rtmp://example.com/live","streamName":"key"}]},"#
                    + #""streamMode":"manual","resolution":"1280x720","maxDuration":600"#)
            try #require(answer.status == 200, "\(answer.text)")
            let started = try answer.object()
            let id = try #require(place.text(started, "id"))
            #expect(started["status"] == .string("started") && started["sessionId"] == .string(place.session.text))
            #expect(started["resolution"] == .string("1280x720") && started["maxDuration"] == .integer(600))
            let urls = try object(started["broadcastUrls"])
            let url = try #require(place.text(urls, "hls"))
            #expect(url.hasPrefix("/broadcasts/\(id)/") && url.hasSuffix("/index.m3u8"))
            #expect(urls["hlsStatus"] == .string("connecting"))
            let notice = try await client.hear("session.broadcastStarted") {
                if case .session(.broadcastStarted(let notice)) = $0 { notice.broadcast } else { nil }
            }
            #expect("\(notice.broadcast)" == id && notice.asks == nil)
            let second = try await place.start()
            #expect(second.status == 409 && second.code == "broadcast_conflict")
            try await eventually {
                let urls = try object(try await place.broadcast(id)["broadcastUrls"])
                guard urls["hlsStatus"] == .string("ready"), case .array(let targets)? = urls["rtmp"] else {
                    return "it is not ready"
                }
                return try object(targets.first)["status"] == .string("live") ? nil : "the target is not live"
            }
            #expect(try await place.ask("PATCH", "/\(id)/streams", #"{"addStream":"\#(stream)"}"#).status == 204)
            #expect(try await place.ask("PATCH", "/\(id)/streams", #"{"removeStream":"\#(stream)"}"#).status == 204)
            #expect(try await place.ask("PUT", "/\(id)/layout", #"{"type":"pip"}"#).status == 200)
            #expect(try await place.ask("PUT", "/\(id)/layout", #"{"type":"circle"}"#).status == 400)
            let stopped = try await place.ask("POST", "/\(id)/stop")
            #expect(try stopped.status == 200 && stopped.object()["status"] == .string("stopped"))
            #expect(try stopped.object()["reason"] == .string("user initiated"))
            #expect(try await place.ask("POST", "/\(id)/stop").status == 409)
            let list = try await place.ask("GET", "?sessionId=\(place.session.text)&count=1").object()
            #expect(list["count"] == .integer(1))
            #expect(try await place.ask("GET", "?count=0").object()["items"] == .array([]))
            #expect(try await place.ask("GET", "/00000000000000000000000000000001").status == 404)
            let kinds = broadcaster?.commands.map { String(String(describing: $0).prefix { $0 != "(" }) }
            #expect(kinds == ["begin", "add", "remove", "setLayout", "end"])
        }
    }

    @Test func `a server without a compositor says so, and still lists broadcasts`() async throws {
        try await withServer(broadcasts: false) { place, _ in
            _ = try await place.archives.publisher()
            let answer = try await place.start()
            #expect(answer.status == 501 && answer.code == "broadcast_unavailable")
            #expect(try await place.ask("GET").object()["items"] == .array([]))
        }
    }

    @Test func `a start is refused while the broadcaster refuses it, and beyond the maximum`() async throws {
        try await withServer({ $0.rules.maxBroadcasts = 1 }) { place, broadcaster in
            _ = try await place.archives.publisher()
            broadcaster?.refuse(WireError(.storageFull, "The disk is nearly full.", retryable: true))
            #expect(try await place.start().code == "storage_full")
            broadcaster?.refuse(nil)
            #expect(try await place.start().status == 200)
            let other = try await place.start(#""outputs":{"hls":{}},"multiBroadcastTag":"b""#)
            #expect(other.status == 503 && other.code == "media_unavailable")
        }
    }

    @Test(arguments: [
        "", "[]", #"{"outputs":{"hls":{}},"sessionId":7}"#, #"{"outputs":{}}"#, "{}", #"{"outputs":{"rtmp":[]}}"#,
        #"{"outputs":{"hls":7}}"#, #"{"outputs":{"hls":{"lowLatency":true,"dvr":true}}}"#, #"{"outputs":{"rtmp":{}}}"#,
        #"{"outputs":{"rtmp":[7]}}"#, #"{"outputs":{"rtmp":[{"serverUrl":"rtmp://a/b"}]}}"#,
        #"{"outputs":{"rtmp":[{"serverUrl":"http://a/b","streamName":"c"}]}}"#,
        #"{"outputs":{"rtmp":[{"serverUrl":"rtmp://a/b","streamName":"c d"}]}}"#,
        #"{"outputs":{"rtmp":[{"id":"x","serverUrl":"rtmp://a/b","streamName":"c"},{"id":"x","serverUrl":"rtmp://a/b","streamName":"d"}]}}"#,
        #"{"outputs":{"hls":{}},"maxDuration":59}"#, #"{"outputs":{"hls":{}},"maxDuration":36001}"#,
        #"{"outputs":{"hls":{}},"maxBitrate":1}"#, #"{"outputs":{"hls":{}},"resolution":"1x1"}"#,
        #"{"outputs":{"hls":{}},"streamMode":"some"}"#, #"{"outputs":{"hls":{}},"layout":{"type":"circle"}}"#,
        #"{"outputs":{"hls":{}},"hasAudio":false,"hasVideo":false}"#,
    ])
    func `a malformed request to start a broadcast is refused with a sentence`(_ body: String) throws {
        let session = #"{"sessionId":"2_abc""#
        let text =
            body.hasPrefix("{") && !body.contains("sessionId")
            ? session + (body == "{}" ? "}" : ",\(body.dropFirst())") : body
        let error = #expect(throws: WireError.self) { try Self.request(text).broadcast() }
        #expect(error?.message.hasSuffix(".") == true, "\(error?.message ?? "")")
    }

    private static func request(_ body: String) throws -> OpenTokRequest {
        OpenTokRequest(
            GateRequest(
                method: .POST, headers: [:], address: try #require(IPAddress("192.0.2.1")), body: Array(body.utf8)))
    }

    @Test func `a request without options has OpenTok's defaults, and members that are null count as missing`() throws {
        let body = #"{"sessionId":"2_abc","outputs":{"hls":{}},"resolution":null,"streamMode":null,"maxBitrate":null}"#
        var expected = BroadcastRequest()
        expected.hls = HLSOutput()
        let (session, request) = try Self.request(body).broadcast()
        #expect(session.text == "2_abc" && request == expected)
        #expect(request.maxDuration == .seconds(14_400) && request.resolution == .small)
        let targets = (0..<6).map { #"{"serverUrl":"rtmp://a/b","streamName":"\#($0)"}"# }
        func rtmp(_ count: Int) -> String {
            #"{"sessionId":"2_abc","outputs":{"rtmp":[\#(targets.prefix(count).joined(separator: ","))]}}"#
        }
        #expect(try Self.request(rtmp(5)).broadcast().1.rtmp.count == 5)
        #expect(throws: WireError.self) { try Self.request(rtmp(6)).broadcast() }
    }

    @Test func `a webhook gets the broadcast without its URL and its stream names`() throws {
        var request = BroadcastRequest()
        request.hls = HLSOutput(hasDVR: true)
        request.rtmp = [RTMPOutput(id: "a", serverURL: "rtmp://example.com/live?token=x", streamName: "secret")]
        let broadcast = BroadcastRecord(
            id: BroadcastID(high: 1, low: 2), project: "1000", session: try #require(SessionID("2_abc")),
            request: request, key: BroadcastKey(high: 3, low: 4), createdAt: Timestamp(milliseconds: 1_790_000_000_000))
        let event = WebhookEvent(
            project: "1000", session: broadcast.session, at: broadcast.createdAt, .broadcast(broadcast))
        let text = String(decoding: WebhookBody(event).bytes, as: UTF8.self)
        #expect(text.contains(#""event":"broadcast""#) && text.contains(#""hlsStatus":"connecting""#))
        #expect(text.contains(#""status":"started""#) && text.contains(#""id":"a""#))
        for secret in ["secret", "token", "\(broadcast.key)"] { #expect(!text.contains(secret), "\(text)") }
        var writer = JSONWriter()
        writer.value(broadcast.json(at: "https://example.com"))
        let whole = String(decoding: writer.bytes, as: UTF8.self)
        #expect(whole.contains("\(broadcast.key)") && whole.contains("index.m3u8?DVR") && whole.contains("secret"))
    }

    @Test func `a broadcast that was running when the server ended has stopped`() async throws {
        let directory = NSTemporaryDirectory() + "confab-broadcasts-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let ids = AsyncStream<String>.makeStream()
        try await TestServer.run(dataDirectory: directory, broadcaster: TestBroadcaster.maker()) {
            $0.rules.recordingNotice = .seconds(60)
        } _: { server in
            let place = try BroadcastPlace(server)
            _ = try await place.archives.publisher()
            ids.continuation.yield(try #require(place.text(try await place.start().object(), "id")))
        }
        var iterator = ids.stream.makeAsyncIterator()
        let id = try #require(await iterator.next())
        try await TestServer.run(dataDirectory: directory) { _ in
        } _: { server in
            let place = try BroadcastPlace(server)
            try await eventually {
                try await place.broadcast(id)["status"] == .string("stopped") ? nil : "the end is not stored"
            }
            #expect(try await place.broadcast(id)["reason"] == .string("server restarted"))
        }
    }

    @Test func `a server that stops ends its broadcasts`() async throws {
        let directory = NSTemporaryDirectory() + "confab-broadcasts-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let ids = AsyncStream<String>.makeStream()
        try await TestServer.run(dataDirectory: directory, broadcaster: TestBroadcaster.maker()) {
            $0.rules.recordingNotice = .zero
        } _: { server in
            let place = try BroadcastPlace(server)
            _ = try await place.archives.publisher()
            let id = try #require(place.text(try await place.start().object(), "id"))
            try await eventually {
                let urls = try object(try await place.broadcast(id)["broadcastUrls"])
                return urls["hlsStatus"] == .string("ready") ? nil : "it has not begun"
            }
            ids.continuation.yield(id)
        }
        var iterator = ids.stream.makeAsyncIterator()
        let text = try #require(await iterator.next())
        let id = try #require(BroadcastID(text))
        let storage = try SQLiteStorage(directory: directory)
        let stored = try await storage.broadcast(id)
        #expect(stored?.status == .stopped && stored?.hlsStatus == .ended && stored?.reason == "server restarted")
        try await storage.close()
    }

    @Test func `a project does not see the broadcasts of another`() async throws {
        try await withServer { place, _ in
            _ = try await place.archives.publisher()
            let id = try #require(place.text(try await place.start().object(), "id"))
            let created = try await place.archives.rooms.ask("POST", "/v1/projects", #"{"name":"other"}"#).object()
            let (key, secret) = (
                try #require(place.text(created, "apiKey")), try #require(place.text(created, "apiSecret"))
            )
            let other = try #require(Project(apiKey: key, secret: secret))
            for (method, path) in [("GET", "/\(id)"), ("POST", "/\(id)/stop")] {
                let answer = try await place.archives.rooms.place.ask(
                    method, "/v2/project/\(key)/broadcast\(path)",
                    ["X-OPENTOK-AUTH": other.makeRequestToken(now: RoomsPlace.now)])
                #expect(answer.status == 404)
            }
        }
    }

    // MARK: OpenTok's SDK

    @Test(.enabled(if: OpenTokSDK.python != nil, "scripts/browser-setup --opentok installs the SDK"))
    func `OpenTok's SDK for Python starts, changes and stops broadcasts`() async throws {
        try await withServer { place, _ in
            let (_, stream) = try await place.archives.publisher()
            let project = place.archives.server.project
            let script = """
                import sys
                from opentok import Client, BroadcastStreamModes
                from opentok.exceptions import BroadcastError, RequestError
                url, key, secret, session, stream = sys.argv[1:6]
                client = Client(key, secret, api_url=url)
                def raised(kind, call, *args, **more):
                    try: call(*args, **more)
                    except kind as error: return True
                    return False
                options = {'outputs': {'hls': {'lowLatency': True}, 'rtmp': [
                    {'id': 'a', 'serverUrl': 'rtmp://example.com/live', 'streamName': 'key'}]}, 'maxDuration': 600}
                broadcast = client.start_broadcast(session, options, stream_mode=BroadcastStreamModes.manual)
                assert broadcast.status == 'started' and broadcast.sessionId == session, broadcast.json()
                assert broadcast.broadcastUrls['hls'].endswith('/index.m3u8'), broadcast.json()
                assert raised(BroadcastError, client.start_broadcast, session, options)
                assert raised(BroadcastError, client.start_broadcast, session, {'outputs': {}})
                client.add_broadcast_stream(broadcast.id, stream, True, False)
                client.remove_broadcast_stream(broadcast.id, stream)
                client.set_broadcast_layout(broadcast.id, 'horizontalPresentation')
                assert raised(BroadcastError, client.set_broadcast_layout, broadcast.id, 'circle')
                assert client.get_broadcast(broadcast.id).status == 'started'
                assert raised(RequestError, client.get_broadcast, '00000000000000000000000000000001')
                stopped = client.stop_broadcast(broadcast.id)
                assert stopped.status == 'stopped', stopped.json()
                assert raised(BroadcastError, client.stop_broadcast, broadcast.id)
                print('done')
                """
            let arguments = [
                "-B", "-c", script, place.archives.rooms.place.base, project.apiKey, project.apiSecret.revealed,
                place.session.text, "\(stream)",
            ]
            let python = try #require(OpenTokSDK.python)
            let result = try await blocking { try ChildProgram.run(python, arguments) }
            #expect(result.status == 0 && result.text.hasSuffix("done\n"), "\(result.text)\(result.standardError)")
        }
    }
}

/// A server that broadcasts, and a routed session in it.
private struct BroadcastPlace: Sendable {
    let archives: ArchivePlace
    var session: SessionID { archives.session }

    init(_ server: TestServer) throws { archives = try ArchivePlace(server) }

    func ask(_ method: String, _ path: String = "", _ body: String = "") async throws -> WHIPPlace.Answer {
        let headers = body.isEmpty ? [:] : ["Content-Type": "application/json"]
        return try await archives.rooms.ask(
            method, "/v2/project/\(archives.server.project.apiKey)/broadcast\(path)", headers, body)
    }

    func start(_ members: String = #""outputs":{"hls":{}}"#) async throws -> WHIPPlace.Answer {
        try await ask("POST", "", #"{"sessionId":"\#(session.text)",\#(members)}"#)
    }

    func broadcast(_ id: String) async throws -> JSONObject { try await ask("GET", "/\(id)").object() }

    func text(_ object: JSONObject, _ name: String) -> String? { ArchivePlace.text(object, name) }
}
