import Foundation
import Logging
import NIOHTTP1
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Requests for archives", .ownThreads, .timeLimit(.minutes(3)))
struct ArchiveRequestTests {
    private typealias Place = ArchivePlace

    /// Runs `body` with a server that records.
    private func withServer(
        records: Bool = true, ffmpegWith codecs: [String]? = nil, logger: Logger? = nil,
        _ body: @escaping @Sendable (Place, TestRecorder?) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "confab-archives-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (made, make) = AsyncStream<TestRecorder>.makeStream()
        let ffmpeg = directory + ".ffmpeg"
        defer { try? FileManager.default.removeItem(atPath: ffmpeg) }
        if let codecs {
            let lines = ["ffmpeg version 7.1 Copyright"] + codecs.map { " V....D \($0) x" }
            let script = "#!/bin/sh\n" + lines.map { "echo '\($0)'\n" }.joined()
            try Data(script.utf8).write(to: URL(filePath: ffmpeg))
            chmod(ffmpeg, 0o700)
        }
        try await TestServer.run(
            dataDirectory: directory, logger: logger,
            recorder: records ? TestRecorder.maker(directory) { make.yield($0) } : nil
        ) { configuration in
            configuration.rules.recordingNotice = .zero
            configuration.recording.enabled = records
            configuration.archives.ffmpeg = ffmpeg
        } _: { server in
            var recorders = made.makeAsyncIterator()
            try await body(try Place(server), records ? await recorders.next() : nil)
        }
    }

    private func text(_ object: JSONObject, _ name: String) -> String? { Place.text(object, name) }

    @Test func `an archive is started, stopped, listed, downloaded and deleted`() async throws {
        try await withServer { place, _ in
            #expect(try await place.start().status == 404, "nobody is connected")
            let (client, stream) = try await place.publisher()
            let started = try await place.start(#","name":"x""#)
            #expect(started.status == 400, "a member occurs twice")
            let answer = try await place.ask(
                "POST", "", #"{"sessionId":"\#(place.session.text)","outputMode":"individual","name":"Meeting"}"#)
            try #require(answer.status == 200, "\(answer.text)")
            let archive = try answer.object()
            let id = try #require(text(archive, "id"))
            #expect(archive["status"] == .string("started") && archive["name"] == .string("Meeting"))
            #expect(archive["partnerId"] == Int64(place.server.project.apiKey).map { .integer($0) })
            #expect(archive["sessionId"] == .string(place.session.text) && archive["url"] == nil)
            let reported = try await client.hear("session.archiveStarted") {
                if case .session(.archiveStarted(let notice)) = $0 { notice.archive } else { nil }
            }
            #expect("\(reported.archive)" == id && reported.name == "Meeting" && reported.asks == nil)
            let second = try await place.start()
            #expect(second.status == 409 && second.code == "archive_conflict")
            try await eventually {
                try await place.archive(id)["createdAt"] == .integer(TestRecorder.began.milliseconds)
                    ? nil : "it has not begun"
            }
            #expect(try await place.ask("PUT", "/\(id)/layout", #"{"type":"bestFit"}"#).status == 400)
            #expect(try await place.ask("PATCH", "/\(id)/streams", #"{"addStream":"\#(stream)"}"#).status == 409)
            #expect(try await place.ask("DELETE", "/\(id)").status == 409)
            let stopped = try await place.ask("POST", "/\(id)/stop")
            #expect(try stopped.status == 200 && stopped.object()["status"] == .string("stopped"))
            #expect(try stopped.object()["reason"] == .string("user initiated"))
            let available = try await place.archive(id, is: "available")
            #expect(available["duration"] == .integer(3) && available["size"] == .integer(18))
            #expect(try await place.ask("POST", "/\(id)/stop").status == 409)
            let list = try await place.ask("GET", "?sessionId=\(place.session.text)&count=1").object()
            #expect(list["count"] == .integer(1))
            if case .array(let items)? = list["items"] { #expect(items.count == 1) } else { Issue.record("\(list)") }
            #expect(try await place.ask("GET", "?count=0").object()["items"] == .array([]))
            try await download(try #require(text(available, "url")), id, stream, place)
            #expect(try await place.ask("DELETE", "/\(id)").status == 204)
            #expect(try await place.ask("GET", "/\(id)").status == 404)
            let folder = "\(place.server.dataDirectory)/recordings/\(id)"
            #expect(!FileManager.default.fileExists(atPath: folder))
        }
    }

    /// Downloads the ZIP file in several ways.
    private func download(_ url: String, _ id: String, _ stream: StreamID, _ place: Place) async throws {
        let base = place.rooms.place.base
        let whole = try await place.rooms.place.ask("GET", base + url)
        #expect(whole.status == 200 && whole["Content-Type"] == "application/zip")
        #expect(whole["Content-Disposition"] == "attachment; filename=\"\(id).zip\"")
        #expect(whole["X-Content-Type-Options"] == "nosniff" && whole["Accept-Ranges"] == "bytes")
        #expect(whole.text.contains("\(stream).webm") && whole.text.contains("not really a video"))
        #expect(whole.text.contains(#""filename":"\#(stream).webm""#) && whole.text.contains("\(id).json"))
        #expect(
            whole.text.contains(#""partnerId":\#(place.server.project.apiKey),"#), "OpenTok's manifest has a number")
        let head = try await place.rooms.place.ask("HEAD", base + url)
        #expect(head.status == 200 && head["Content-Length"] == whole["Content-Length"])
        let part = try await place.rooms.place.ask("GET", base + url, ["Range": "bytes=0-3"])
        #expect(part.status == 206 && part.text == "PK\u{3}\u{4}")
        #expect(part["Content-Range"] == "bytes 0-3/\(whole["Content-Length"] ?? "")")
        let beyond = try await place.rooms.place.ask("GET", base + url, ["Range": "bytes=99999999-"])
        #expect(beyond.status == 416)
        for wrong in [
            url.replacing("signature=", with: "signature=0"), url.replacing("archive.zip", with: "archive.mp4"),
            url.replacing("archive.zip", with: "%2e%2e%2f\(id).json"), url.replacing("expires=", with: "expires=9"),
            String(url.prefix { $0 != "?" }), url.replacing(id, with: "00000000000000000000000000000001"),
        ] {
            #expect(try await place.rooms.place.ask("GET", base + wrong).status == 404, "\(wrong)")
        }
    }

    @Test func `a server that does not record says so`() async throws {
        try await withServer(records: false) { place, _ in
            _ = try await place.publisher()
            let answer = try await place.start()
            #expect(answer.status == 501 && answer.code == "recording_unavailable")
            #expect(try await place.ask("GET").object()["items"] == .array([]))
            #expect(try await place.ask("GET", "/00000000000000000000000000000001").status == 404)
        }
    }

    @Test func `a start is refused while the recorder refuses it, and when nothing can compose`() async throws {
        try await withServer { place, recorder in
            _ = try await place.publisher()
            recorder?.refuse(WireError(.storageFull, "The disk is nearly full.", retryable: true))
            let full = try await place.start()
            #expect(full.status == 503 && full.code == "storage_full" && full["Retry-After"] != nil)
            recorder?.refuse(nil)
            let composed = try await place.ask("POST", "", #"{"sessionId":"\#(place.session.text)"}"#)
            #expect(composed.status == 501 && composed.code == "recording_unavailable")
            #expect(recorder?.commands.isEmpty == true)
        }
    }

    // MARK: Automatic archives

    private func create(_ form: String, _ place: Place) async throws -> WHIPPlace.Answer {
        let headers = ["Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"]
        return try await place.rooms.ask("POST", "/session/create", headers, form)
    }

    @Test func `a session with the archive mode always is recorded from its first client on`() async throws {
        try await withServer(ffmpegWith: ["libx264", "aac", "libopus"]) { place, _ in
            let created = try await create(
                "archiveMode=always&archiveResolution=1280x720&p2p.preference=disabled", place)
            try #require(created.status == 200, "\(created.text)")
            let start = #"[{"session_id":""#
            let session = try #require(SessionID(String(created.text.dropFirst(start.count).prefix { $0 != "\"" })))
            var random = SystemRandomNumberGenerator()
            let claims = SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(60))
            let token = place.rooms.project.makeSessionToken(claims, now: RoomsPlace.now, using: &random)
            let client = try await place.server.client()
            try await client.say(.session(.join(.init(session: session, token: token))))
            let started = try await client.hear("session.archiveStarted") {
                if case .session(.archiveStarted(let notice)) = $0 { notice } else { nil }
            }
            #expect(started.session == session)
            let archive = try await place.archive("\(started.archive.archive)")
            #expect(archive["status"] == .string("started") && archive["resolution"] == .string("1280x720"))
            #expect(archive["outputMode"] == .string("composed"))
            #expect(try await place.ask("POST", "/\(started.archive.archive)/stop").status == 409)
        }
    }

    @Test func `an archive that waits for ffmpeg can be deleted`() async throws {
        try await withServer(ffmpegWith: ["libx264", "aac", "libopus"]) { place, _ in
            _ = try await place.publisher()
            let answer = try await place.ask("POST", "", #"{"sessionId":"\#(place.session.text)"}"#)
            try #require(answer.status == 200, "\(answer.text)")
            let id = try #require(text(try answer.object(), "id"))
            try await eventually {
                try await place.archive(id)["createdAt"] == .integer(TestRecorder.began.milliseconds)
                    ? nil : "it has not begun"
            }
            let folder = "\(place.server.dataDirectory)/recordings/\(id)"
            try Data("{}\n".utf8).write(to: URL(filePath: folder + "/events.jsonl"))
            try FileManager.default.removeItem(atPath: place.server.dataDirectory + ".ffmpeg")
            #expect(try await place.ask("POST", "/\(id)/stop").status == 200)
            try await eventually {
                let reason = text(try await place.archive(id), "reason")
                return reason == "waiting for ffmpeg" ? nil : "the reason is \(reason ?? "none")"
            }
            // The composer may be trying it.
            try await eventually {
                let status = try await place.ask("DELETE", "/\(id)").status
                return status == 204 ? nil : "the status is \(status)"
            }
            #expect(try await place.ask("GET", "/\(id)").status == 404)
            #expect(!FileManager.default.fileExists(atPath: folder))
        }
    }

    @Test func `an ffmpeg without an encoder is named in the log, and composed archives are refused`() async throws {
        let log = LogLines()
        try await withServer(ffmpegWith: ["aac", "libopus"], logger: log.logger) { place, _ in
            try await eventually { log.contains("built without libx264.") ? nil : "ffmpeg was not checked" }
            try await eventually {
                try await create("archiveMode=always&p2p.preference=disabled", place).code == "recording_unavailable"
                    ? nil : "composed archives are accepted"
            }
        }
    }

    @Test func `wrong options of automatic archives are refused, and a server that cannot compose says so`()
        async throws
    {
        try await withServer { place, _ in
            let routed = "p2p.preference=disabled&"
            for form in [
                "archiveMode=always", routed + "archiveMode=always&archiveName=Meeting", routed + "archiveMode=maybe",
                routed + "archiveMode=always&archiveResolution=1x1", routed + "archiveName=Meeting",
                routed + "archiveMode=manual&archiveResolution=640x480",
            ] {
                #expect(try await create(form, place).status == 400, "\(form)")
            }
            let answer = try await create(routed + "archiveMode=always", place)
            #expect(answer.status == 501 && answer.code == "recording_unavailable")
            #expect(try await create(routed + "archiveMode=manual", place).status == 200)
        }
    }

    // MARK: Requests to start

    @Test(arguments: [
        "", "[]", #"{"sessionId":7}"#, #"{"hasAudio":false,"hasVideo":false}"#, #"{"outputMode":"film"}"#,
        #"{"streamMode":"some"}"#, #"{"outputMode":"composed","resolution":"1x1"}"#, #"{"maxBitrate":1}"#,
        #"{"quantizationParameter":99}"#, #"{"hasTranscription":true}"#, #"{"name":7}"#, #"{"hasAudio":"yes"}"#,
        #"{"outputMode":"composed","maxBitrate":200000,"quantizationParameter":20}"#,
        #"{"outputMode":"individual","resolution":"640x480"}"#, #"{"layout":{"type":"circle"}}"#, #"{"layout":"pip"}"#,
        #"{"layout":{"type":"custom"}}"#, #"{"layout":{"type":"pip","stylesheet":"stream {}"}}"#,
        #"{"layout":{"type":"pip","screenshareType":"pip"}}"#,
        #"{"layout":{"type":"bestFit","screenshareType":"custom"}}"#,
        #"{"layout":{"type":"bestFit","screenshareType":"room"}}"#,
        #"{"layout":{"type":"room","screenshareType":"pip"}}"#,
        #"{"layout":{"type":"custom","stylesheet":"stream { shade: red; }"}}"#,
        #"{"layout":{"type":"custom","stylesheet":"stream {"}}"#,
    ])
    func `a malformed request to start is refused with a sentence`(_ body: String) throws {
        let session = #"{"sessionId":"2_abc","#
        let text = body.hasPrefix("{") && !body.contains("sessionId") ? session + body.dropFirst() : body
        let request = OpenTokRequest(
            GateRequest(
                method: .POST, headers: [:], address: try #require(IPAddress("192.0.2.1")), body: Array(text.utf8)))
        let error = #expect(throws: WireError.self) { try request.archive() }
        #expect(error?.message.hasSuffix(".") == true)
    }

    @Test func `a style sheet with an error is refused with its line, at the start and for a new layout`() throws {
        let sheet = #"{"type":"custom","stylesheet":"stream { width: 50%; }\nstream:hover { width: 10%; }"}"#
        func request(_ body: String) throws -> OpenTokRequest {
            OpenTokRequest(
                GateRequest(
                    method: .PUT, headers: [:], address: try #require(IPAddress("192.0.2.1")), body: Array(body.utf8)))
        }
        let start = try request(#"{"sessionId":"2_abc","layout":\#(sheet)}"#)
        let layout = try request(sheet)
        for error in [
            #expect(throws: WireError.self) { try start.archive() },
            #expect(throws: WireError.self) { try layout.compositionLayout() },
        ] {
            #expect(error?.code == .malformed && error?.message.contains("Line 2: ") == true, "\(error?.message ?? "")")
        }
        let valid = try request(sheet.replacing(":hover", with: ".focus"))
        #expect(try valid.compositionLayout().stylesheet?.contains("stream.focus") == true)
    }

    @Test func `an archive can have the layout of rooms`() throws {
        let request = OpenTokRequest(
            GateRequest(
                method: .PUT, headers: [:], address: try #require(IPAddress("192.0.2.1")),
                body: Array(#"{"type":"room"}"#.utf8)))
        let layout = try request.compositionLayout()
        #expect(layout == CompositionLayout("room"))
    }

    @Test func `a project sees neither the archives nor the sessions of another`() async throws {
        try await withServer { place, _ in
            _ = try await place.publisher()
            let id = try #require(text(try await place.start().object(), "id"))
            let created = try await place.rooms.ask("POST", "/v1/projects", #"{"name":"other"}"#).object()
            let (key, secret) = (try #require(text(created, "apiKey")), try #require(text(created, "apiSecret")))
            let other = try #require(Project(apiKey: key, secret: secret))
            func ask(_ method: String, _ path: String, _ body: String = "") async throws -> Int {
                let headers = ["X-OPENTOK-AUTH": other.makeRequestToken(now: RoomsPlace.now)]
                return try await place.rooms.place.ask(method, "/v2/project/\(key)/archive\(path)", headers, body)
                    .status
            }
            for (method, path) in [("GET", "/\(id)"), ("POST", "/\(id)/stop"), ("DELETE", "/\(id)")] {
                #expect(try await ask(method, path) == 404)
            }
            #expect(try await ask("POST", "", #"{"sessionId":"\#(place.session.text)"}"#) == 404)
            #expect(try await place.archive(id)["status"] == .string("started"))
        }
    }

    @Test func `an archive that was recorded when the server ended has stopped`() async throws {
        let directory = NSTemporaryDirectory() + "confab-archives-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let ids = AsyncStream<String>.makeStream()
        try await TestServer.run(dataDirectory: directory, recorder: TestRecorder.maker(directory)) {
            $0.rules.recordingNotice = .zero
        } _: { server in
            let place = try Place(server)
            _ = try await place.publisher()
            ids.continuation.yield(try #require(text(try await place.start().object(), "id")))
        }
        var iterator = ids.stream.makeAsyncIterator()
        let id = try #require(await iterator.next())
        // The recorder had completed the archive, but nobody heard of it.
        let stream = "0000000000000001000000000000000f"
        let manifest =
            // As an earlier version wrote it.
            #"{"createdAt":1790000000000,"duration":7,"files":[{"streamId":"\#(stream)","filename":"\#(stream).webm","size":9,"#
            + #""startTimeOffset":0,"stopTimeOffset":7000,"connectionData":"","videoType":null}],"id":"\#(id)","name":null,"#
            + #""partnerId":"10000000","reason":"server restarted","sessionId":"1_x","size":9}"#
        let folder = directory + "/recordings/" + id
        try Data(manifest.utf8).write(to: URL(filePath: folder + "/archive.json"))
        try await TestServer.run(dataDirectory: directory) {
            $0.recording.enabled = false
        } _: { server in
            let archive = try await Place(server).archive(id, is: "available")
            #expect(archive["reason"] == .string("server restarted") && archive["duration"] == .integer(7))
        }
    }

    // MARK: OpenTok's SDK

    @Test(.enabled(if: OpenTokSDK.python != nil, "scripts/browser-setup --opentok installs the SDK"))
    func `OpenTok's SDK for Python starts, changes, stops, lists and deletes archives`() async throws {
        try await withServer { place, _ in
            let (_, stream) = try await place.publisher()
            let project = place.server.project
            let script = """
                import sys, time
                from opentok import Client, ArchiveModes, OutputModes, StreamModes
                from opentok.exceptions import ArchiveError, NotFoundError, RequestError
                url, key, secret, session, stream, began = sys.argv[1:7]
                client = Client(key, secret, api_url=url)
                deadline = time.monotonic() + 60
                def wait(condition):
                    while not condition(client.get_archive(archive.id)):
                        assert time.monotonic() < deadline, client.get_archive(archive.id).json()
                def raised(kind, call, *args, **more):
                    try: call(*args, **more)
                    except kind as error: return True
                    return False
                archive = client.start_archive(session, name='Meeting', output_mode=OutputModes.individual,
                    stream_mode=StreamModes.manual)
                assert archive.status == 'started' and archive.name == 'Meeting', archive.json()
                assert archive.output_mode == OutputModes.individual and archive.partner_id == int(key)
                assert raised(ArchiveError, client.start_archive, session, output_mode=OutputModes.individual)
                assert raised(RequestError, client.start_archive, session, output_mode=OutputModes.individual,
                    has_audio=False, has_video=False)
                assert raised(NotFoundError, client.get_archive, '00000000000000000000000000000001')
                client.add_archive_stream(archive.id, stream, True, False)
                assert client.get_archive(archive.id).status == 'started'
                wait(lambda archive: archive.created_at.timestamp() == int(began))
                client.remove_archive_stream(archive.id, stream)
                client.add_archive_stream(archive.id, stream, True, True)
                assert raised(RequestError, client.delete_archive, archive.id)
                stopped = client.stop_archive(archive.id)
                assert stopped.status == 'stopped', stopped.json()
                assert raised(ArchiveError, client.stop_archive, archive.id)
                wait(lambda archive: archive.status == 'available')
                done = client.get_archive(archive.id)
                assert done.url and done.duration == 3, done.json()
                listed = client.list_archives(session_id=session)
                assert listed.count == 1 and list(listed)[0].id == archive.id
                client.delete_archive(archive.id)
                assert client.list_archives().count == 0
                print('done')
                """
            let arguments = [
                "-B", "-c", script, place.rooms.place.base, project.apiKey, project.apiSecret.revealed,
                place.session.text, "\(stream)", "\(TestRecorder.began.seconds)",
            ]
            let python = try #require(OpenTokSDK.python)
            let result = try await blocking { try ChildProgram.run(python, arguments) }
            #expect(result.status == 0 && result.text.hasSuffix("done\n"), "\(result.text)\(result.standardError)")
        }
    }
}
