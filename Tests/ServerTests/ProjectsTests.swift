import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Several projects on one server", .ownThreads, .timeLimit(.minutes(3))) struct ProjectsTests {
    private static let path = "/v1/projects"
    private static let quick: @Sendable (inout ConfabConfiguration) -> Void = {
        $0.storage.pollInterval = .milliseconds(20)
    }

    /// A project that a test created, with a way to use its credentials.
    struct Application: Sendable {
        let place: WHIPPlace
        let project: Project
        private let port: Int

        init(_ server: TestServer, _ created: JSONObject) throws {
            (place, port) = (try WHIPPlace(server), server.port)
            guard case .string(let key)? = created["apiKey"], case .string(let secret)? = created["apiSecret"] else {
                throw WireError(.malformed, "\(created)")
            }
            let main = try server.project.project
            project = try #require(Project(apiKey: key, secret: secret, serverKey: main.serverKey))
        }

        /// Sends a request with this project's token. `~` in the path stands for the project's part of it.
        func ask(
            _ method: String, _ path: String, _ body: String = "", type: String = "application/json"
        ) async throws -> WHIPPlace.Answer {
            let path = path.replacing("~", with: "/v2/project/\(project.apiKey)")
            let token = project.makeRequestToken(now: RoomsPlace.now)
            let headers = ["X-OPENTOK-AUTH": token, "Content-Type": type, "Accept": "application/json"]
            return try await place.ask(method, path, headers, body)
        }

        func session() async throws -> SessionID {
            let type = "application/x-www-form-urlencoded"
            let answer = try await ask("POST", "/session/create", "p2p.preference=enabled", type: type)
            guard case .array(let list)? = try? JSONReader.parse(Array(answer.text.utf8)),
                case .object(let session)? = list.first, case .string(let id)? = session["session_id"]
            else { throw WireError(.malformed, answer.text) }
            #expect(answer["Content-Type"] == "application/json")
            return try #require(SessionID(id))
        }

        func admission(_ session: SessionID) -> Admission {
            var random = SystemRandomNumberGenerator()
            let claims = SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600))
            return Admission(
                session: session, token: project.makeSessionToken(claims, now: RoomsPlace.now, using: &random))
        }

        /// Joins the session with a new client. Returns the outcome, and the client.
        func join(_ session: SessionID) async throws -> (outcome: String, client: SocketClient) {
            let (joined, refusal, client) = try await enter(admission(session))
            return (joined == nil ? refusal?.rawValue ?? "" : "joined", client)
        }

        /// Joins the session with a new client and this token.
        func enter(
            _ admission: Admission
        ) async throws -> (joined: SessionNotice.Joined?, refusal: WireError.Code?, client: SocketClient) {
            let client = try await SocketClient.connect(port: port)
            try await client.greet()
            try await client.say(.session(.join(.init(session: admission.session, token: admission.token))))
            let (joined, refusal) = try await client.hear("an answer") {
                message -> (SessionNotice.Joined?, WireError.Code?)? in
                switch message {
                case .session(.joined(let joined)): (joined, nil)
                case .error(let failure): (nil, failure.error.code)
                default: nil
                }
            }
            return (joined, refusal, client)
        }
    }

    @Test("the operator creates, lists, changes, rotates and deletes a project over HTTP")
    func life() async throws {
        try await TestServer.run(Self.quick) { server in
            let place = try RoomsPlace(server)
            let created = try await place.ask("POST", Self.path, #"{"name":"Second","maxConnections":5}"#)
            #expect(created.status == 201, "\(created.text)")
            let application = try Application(server, created.object())
            let own = Self.path + "/" + application.project.apiKey
            let list = try await place.ask("GET", Self.path)
            #expect(list.text.contains(application.project.apiKey) && list.text.contains(server.project.apiKey))
            #expect(!list.text.contains("apiSecret"))
            let session = try await application.session()
            let (outcome, client) = try await application.join(session)
            #expect(outcome == "joined")
            let changed = try await place.ask(
                "PATCH", own, #"{"name":"Renamed","maxConnections":null,"webhookUrl":"https://hooks.example/x"}"#)
            #expect(changed.status == 200 && changed.text.contains("webhookSecret"))
            let read = try await place.ask("GET", own)
            #expect(read.text.contains("Renamed") && !read.text.contains("maxConnections"))
            #expect(!read.text.contains("Secret"))
            let rotated = try await place.ask("POST", own + "/rotate", #"{"overlap":0}"#)
            let after = try Application(server, rotated.object())
            #expect(try await application.ask("GET", "~/archive").status == 403)
            #expect(try await after.ask("GET", "~/archive").status == 200)
            #expect(try await place.ask("DELETE", own).status == 204)
            _ = try await client.hear("the end of the session") {
                if case .session(.left(let left)) = $0, left.reason == .forceDisconnected { true } else { nil }
            }
            #expect(try await after.ask("GET", "~/archive").status == 403)
            #expect(try await after.join(session).outcome == "token_signature")
            #expect(try await place.ask("GET", own).status == 404)
            #expect(try await place.ask("DELETE", own).status == 404)
        }
    }

    @Test("joins are not reported while the disk is nearly full, and people still join")
    func lowDisk() async throws {
        let directory = NSTemporaryDirectory() + "confab-projects-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await TestServer.run(
            dataDirectory: directory,
            {
                Self.quick(&$0)
                $0.storage.lowSpace = 1 << 60
            }
        ) { server in
            let place = try RoomsPlace(server)
            let created = try await place.ask("POST", Self.path, #"{"webhookUrl":"http://hooks.invalid/x"}"#)
            let application = try Application(server, created.object())
            #expect(try await application.join(application.session()).outcome == "joined")
            let storage = try SQLiteStorage(directory: directory)
            let key = application.project.apiKey
            try await eventually {
                let backlog = try await storage.webhookBacklogs()[key]
                return backlog?.refused == 2 && backlog?.waiting == 0 ? nil : "\(String(describing: backlog))"
            }
            try await storage.close()
        }
    }

    @Test("the main project can get properties, but is neither rotated nor deleted over HTTP")
    func mainProject() async throws {
        try await TestServer.run(Self.quick) { server in
            let place = try RoomsPlace(server)
            let own = Self.path + "/" + server.project.apiKey
            #expect(try await place.ask("PATCH", own, #"{"webhookUrl":"https://hooks.example/x"}"#).status == 200)
            #expect(try await place.ask("GET", own).text.contains("hooks.example"))
            for (method, path) in [("POST", own + "/rotate"), ("DELETE", own)] {
                let answer = try await place.ask(method, path)
                #expect((answer.status, answer.code) == (403, "not_permitted"))
            }
        }
    }

    @Test("a running server notices what another process does with projects")
    func notices() async throws {
        let directory = NSTemporaryDirectory() + "confab-projects-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await TestServer.run(dataDirectory: directory, Self.quick) { server in
            let storage = try SQLiteStorage(directory: directory)
            var random = SystemRandomNumberGenerator()
            var stored = StoredProject(name: "by command", createdAt: RoomsPlace.now, using: &random)
            let key = stored.apiKey
            func entry(_ action: String) -> AuditEntry {
                AuditEntry(at: RoomsPlace.now, actor: AuditEntry.operatorActor, action: action, subject: key)
            }
            func application() throws -> Application {
                try Application(
                    server,
                    JSONObject([
                        .init(name: "apiKey", value: .string(key)),
                        .init(name: "apiSecret", value: .string(stored.secret?.revealed ?? "")),
                    ]))
            }
            func expect(_ status: Int) async throws {
                let application = try application()
                try await eventually {
                    let answer = try await application.ask("GET", "~/render")
                    return answer.status == status ? nil : answer.text
                }
            }
            #expect(try await storage.addProject(stored, recording: entry("project.create")))
            #expect(try await !storage.addProject(stored, recording: entry("project.create")))
            try await expect(200)
            let old = try application()
            let now = RoomsPlace.now
            stored = try #require(
                try await storage.changeProject(key, or: nil, recording: entry("project.rotate")) {
                    var random = SystemRandomNumberGenerator()
                    $0.rotate(overlap: .seconds(3600), now: now, using: &random)
                })
            try await expect(200)
            #expect(try await old.ask("GET", "~/render").status == 200, "during the overlap")
            #expect(try await storage.removeProject(key, recording: entry("project.delete")))
            try await expect(403)
            #expect(try await !storage.removeProject(key, recording: entry("project.delete")))
            let actions = try await storage.audit(since: .distantPast, limit: 10).map(\.action)
            #expect(actions == ["project.delete", "project.rotate", "project.create"])
            try await storage.close()
        }
    }

    @Test("an application belongs to one project")
    func applications() async throws {
        try await TestServer.run(Self.quick) { server in
            let place = try RoomsPlace(server)
            let main = Self.path + "/" + server.project.apiKey
            let key = try ApplicationKey()
            func body(_ id: String) throws -> String {
                let members = ["applicationId": id, "publicKey": key.publicKey]
                return String(decoding: try JSONEncoder().encode(members), as: UTF8.self)
            }
            #expect(try await place.ask("PATCH", main, body("one")).status == 200)
            for (method, path) in [("POST", Self.path), ("PATCH", main)] {
                let number = try await place.ask(method, path, body("45000001"))
                #expect((number.status, number.code) == (400, "malformed"))
            }
            let created = try await place.ask("POST", Self.path, body("one"))
            #expect((created.status, created.code) == (409, "application_exists"))
            #expect(created.text.contains("Remove it there first"))
            let second = try Application(server, try await place.ask("POST", Self.path, body("two")).object())
            let changed = try await place.ask("PATCH", Self.path + "/" + second.project.apiKey, body("one"))
            #expect((changed.status, changed.code) == (409, "application_exists"))
            #expect(try await place.ask("PATCH", main, #"{"applicationId":null}"#).status == 200)
            #expect(try await place.ask("PATCH", Self.path + "/" + second.project.apiKey, body("one")).status == 200)
        }
    }

    @Test("two projects cannot see, use or exhaust each other's sessions")
    func isolation() async throws {
        try await TestServer.run {
            Self.quick(&$0)
            $0.limits.projectRequests = Budget.Rate(perSecond: 0.001, burst: 12)
        } _: { server in
            let place = try RoomsPlace(server)
            func create(_ body: String) async throws -> Application {
                try Application(server, try await place.ask("POST", Self.path, body).object())
            }
            let (one, other) = (try await create(#"{"maxConnections":2}"#), try await create("{}"))
            let session = try await one.session()
            let (outcome, client) = try await one.join(session)
            #expect(outcome == "joined")
            for (method, path, body) in [
                ("GET", "~/session/\(session)/stream", ""), ("POST", "~/session/\(session)/signal", #"{"data":"x"}"#),
                ("POST", "~/session/\(session)/mute", "{}"),
                ("DELETE", "~/session/\(session)/connection/\(ConnectionID(high: 1, low: 1))", ""),
            ] {
                #expect(try await other.ask(method, path, body).status == 404, "\(method) \(path)")
                let path = path.replacing("~", with: "/v2/project/\(one.project.apiKey)")
                #expect(try await other.ask(method, path, body).status == 403, "\(method) \(path)")
            }
            #expect(try await other.join(session).outcome == "token_signature")
            #expect(try await one.join(session).outcome == "joined")
            #expect(try await one.join(session).outcome == "too_many_connections")
            #expect(try await other.join(other.session()).outcome == "joined")
            var last = 200
            for _ in 0..<20 where last == 200 { last = try await one.ask("GET", "~/archive").status }
            #expect(last == 429)
            let limited = try await one.ask("POST", "~/session/\(session)/mute", "{}")
            #expect((limited.status, limited.code) == (400, "rate_limited"), "the SDK for Python ignores 429 here")
            #expect(try await other.ask("GET", "~/archive").status == 200)
            await client.drop()
        }
    }

    @Test("mutes are limited as signals are, and only those that change something are in the audit log")
    func mutes() async throws {
        let directory = NSTemporaryDirectory() + "confab-mutes-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await TestServer.run(dataDirectory: directory) {
            Self.quick(&$0)
            $0.rules.sessionTraffic = Budget.Rate(perSecond: 0.001, burst: 1000)
        } _: { server in
            let created = try await RoomsPlace(server).ask("POST", Self.path, "{}")
            let application = try Application(server, created.object())
            let session = try await application.session()
            let (_, client) = try await application.join(session)
            let own = "~/session/\(session)"
            for _ in 0..<20 { #expect(try await application.ask("POST", own + "/mute", "{}").status == 200) }
            for _ in 0..<20 {
                #expect(try await application.ask("POST", own + "/mute", #"{"active":false}"#).status == 200)
            }
            #expect(try await application.ask("POST", own + "/signal", #"{"data":"x"}"#).status == 204)
            let mute = try await application.ask("POST", own + "/mute", "{}")
            #expect((mute.status, mute.code) == (400, "rate_limited"), "the SDK for Python ignores 429 here")
            let signal = try await application.ask("POST", own + "/signal", #"{"data":"x"}"#)
            #expect((signal.status, signal.code) == (429, "rate_limited"))
            let storage = try SQLiteStorage(directory: directory)
            let entries = try await storage.audit(since: .distantPast, limit: 100)
            #expect(entries.map(\.action) == ["session.unmute", "session.mute", "project.create"])
            #expect(entries.first?.actor == application.project.apiKey)
            try await storage.close()
            await client.drop()
        }
    }

    @Test("a list of streams is charged to the project by its size")
    func lists() async throws {
        try await TestServer.run {
            Self.quick(&$0)
            $0.limits.projectRequests = Budget.Rate(perSecond: 0.001, burst: 40)
        } _: { server in
            let created = try await RoomsPlace(server).ask("POST", Self.path, "{}")
            let application = try Application(server, created.object())
            let session = try await application.session()
            let (_, client) = try await application.join(session)
            var items: [String] = []
            for _ in 0..<8 {
                var verb = SessionVerb.Publish()
                verb.session = session
                try await client.say(.session(.publish(verb)))
                let stream = try await client.hear("the stream") {
                    if case .session(.published(let published)) = $0 { published.stream.id } else { nil }
                }
                items.append(#"{"id":"\#(stream)","layoutClassList":["\#(String(repeating: "c", count: 999))"]}"#)
            }
            let list = "~/session/\(session)/stream"
            let body = #"{"items":[\#(items.joined(separator: ","))]}"#
            #expect(try await application.ask("PUT", list, body).status == 200)
            var sizes: [Int] = []
            var answer = try await application.ask("GET", list)
            while answer.status == 200, sizes.count < 40 {
                sizes.append(answer.text.utf8.count)
                answer = try await application.ask("GET", list)
            }
            #expect(answer.status == 429)
            // Of the budget, one request created the session. The list was also the response to the change.
            let cost = 1 + (sizes.first ?? 0) / 4096
            #expect(cost > 1)
            #expect(sizes.count == (39 - cost + cost - 1) / cost)
            await client.drop()
        }
    }

    @Test("malformed requests are refused, and change nothing")
    func malformed() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            let main = server.project.apiKey
            let session = "/v2/project/\(main)/session"
            let form = "application/x-www-form-urlencoded"
            let cases: [(String, String, String, String, Int)] = [
                ("POST", "/session/create", "p2p.preference=maybe", form, 400),
                ("POST", "/session/create", "archiveMode=always&p2p.preference=enabled", form, 400),
                ("POST", "/session/create", "e2ee=true&p2p.preference=disabled", form, 400),
                ("POST", "/session/create", "location=here", form, 400),
                ("POST", "/session/create", "{}", "application/json", 415),
                ("GET", "/session/create", "", form, 404),
                ("GET", session + "/x/stream", "", "", 404), ("GET", session + "/%00/stream", "", "", 404),
                ("GET", session + "/\(String(repeating: "a", count: 5000))/stream", "", "", 404),
                ("POST", session + "/x/mute", String(repeating: " ", count: 70_000), "", 400),
                ("POST", "/session/create", String(repeating: "a", count: 70_000), form, 400),
                ("GET", "/v2/project/\(main)", "", "", 404), ("PATCH", "/v2/project/\(main)/archive", "{}", "", 404),
                ("POST", "/v2/project/\(main)/archive", "{", "", 400), ("GET", "/v2/project/1/archive", "", "", 403),
                ("POST", Self.path, "{", "", 400), ("POST", Self.path, "[]", "", 400),
                ("POST", Self.path, #"{"nme":"x"}"#, "", 400), ("POST", Self.path, #"{"maxConnections":0}"#, "", 400),
                ("POST", Self.path, #"{"maxConnections":1e99}"#, "", 400),
                ("POST", Self.path, #"{"webhookUrl":"ftp://x"}"#, "", 400),
                ("POST", Self.path, #"{"webhookUrl":"http://192.168.1.1/x"}"#, "", 400),
                ("POST", Self.path, #"{"webhookUrl":"https://user:password@host.example/"}"#, "", 400),
                ("POST", Self.path, #"{"applicationId":"x"}"#, "", 400),
                ("POST", Self.path, #"{"applicationId":"x","publicKey":"x"}"#, "", 400),
                ("POST", Self.path, #"{"name":"\#u{202E}x"}"#, "", 400),
                ("POST", Self.path + "/\(main)0/rotate", #"{"overlap":-1}"#, "", 400),
                ("PATCH", Self.path + "/..%2f", "{}", "", 404), ("DELETE", Self.path + "/%20", "", "", 404),
            ]
            for (method, path, body, type, status) in cases {
                let answer = try await place.ask(method, path, type.isEmpty ? [:] : ["Content-Type": type], body)
                #expect(answer.status == status, "\(method) \(path.prefix(60)) \(body): \(answer.text)")
                #expect((try? answer.object()["code"]) != nil, "\(method) \(path.prefix(60)): \(answer.text)")
            }
            let projects = try await place.ask("GET", Self.path).object()["projects"]
            guard case .array(let list)? = projects else {
                throw WireError(.malformed, "\(String(describing: projects))")
            }
            #expect(list.count == 1)
        }
    }
}
