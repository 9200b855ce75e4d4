import Foundation
import Server
import Signaling
import Testing
import Wire

@Suite("Rooms over HTTP", .ownThreads, .timeLimit(.minutes(3)))
struct RoomsEndpointTests {
    private static let path = "/v1/rooms"

    @Test("an operator creates, reads, changes and closes a room")
    func life() async throws {
        try await TestServer.run({ $0.rules.roomCreation = .operators }) { server in
            let place = try RoomsPlace(server)
            let body = #"{"name": "Größe 1", "options": {"capacity": 3, "password": "x"}}"#
            let created = try await place.ask("POST", Self.path, body)
            #expect(created.status == 201, "\(created.text)")
            let own = "/v1/rooms/Gr%C3%B6%C3%9Fe%201"
            #expect(created["Location"] == own)
            #expect(created["Cache-Control"] == "no-store")
            #expect(try created.room().summary.options.persistent)
            #expect(!created.text.contains(#""x""#), "the password is never sent")

            let client = try await server.client()
            let joined = try await client.enter(
                RoomVerb.Join(name: RoomName("grösse 1"), displayName: "Ada", password: "x"))
            let read = try await place.ask("GET", own)
            #expect(read.status == 200)
            #expect(try read.room().people.map(\.displayName) == ["Ada"])
            #expect(try read.room().session == joined.admission.session)

            let changed = try await place.ask("PATCH", own, #"{"options": {"locked": true}}"#)
            #expect(try changed.status == 200 && changed.room().summary.options.locked)
            _ = try await client.hear("room.changed") {
                if case .room(.changed(let changed)) = $0, changed.options.locked { true } else { nil }
            }
            let again = try await place.ask("POST", Self.path, body)
            #expect((again.status, again.code) == (409, "room_exists"))

            #expect(try await place.ask("DELETE", own).status == 204)
            _ = try await client.hear("room.ended") {
                if case .room(.ended(let ended)) = $0, ended.reason == .closed { true } else { nil }
            }
            let gone = try await place.ask("GET", own)
            #expect((gone.status, gone.code) == (404, "room_not_found"))
        }
    }

    @Test("a token lets its holder join with its role and name")
    func tokens() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            _ = try await place.ask("POST", Self.path, #"{"name": "Stand-up", "options": {"lobby": true}}"#)
            let answer = try await place.ask(
                "POST", "/v1/rooms/stand-up/tokens", #"{"role": "host", "displayName": "Ada", "lifetime": 60}"#)
            #expect(answer.status == 201, "\(answer.text)")
            let token = try answer.roomToken()
            #expect(token.path == "/room/Stand-up#token=\(token.token)")
            let client = try await server.client()
            var join = RoomVerb.Join()
            join.token = token.token
            let joined = try await client.enter(join)
            #expect(joined.role == .host && joined.people.map(\.displayName) == ["Ada"])
        }
    }

    @Test("the list has pages")
    func pages() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            for number in 0..<5 { _ = try await place.ask("POST", Self.path, #"{"name": "room \#(number)"}"#) }
            let first = try await place.ask("GET", Self.path + "?limit=3").rooms()
            #expect(first.rooms.count == 3)
            let next = try #require(first.next)
            let second = try await place.ask("GET", Self.path + "?limit=3&after=\(next)").rooms()
            #expect(second.rooms.count == 2 && second.next == nil)
            #expect(Set((first.rooms + second.rooms).map(\.name)).count == 5)
            for query in ["limit=0", "limit=101", "limit=x", "after=x", "after="] {
                let answer = try await place.ask("GET", Self.path + "?" + query)
                #expect((answer.status, answer.code) == (400, "malformed"), "\(query)")
            }
        }
    }

    @Test("bodies that are no request are refused, and create nothing")
    func malformed() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            let bodies = [
                "[]", "{", #"{"nam": "x"}"#, #"{"name": 5}"#, #"{"options": {"pasword": "x"}}"#,
                #"{"options": {"capacity": "3"}}"#, #"{"options": {"capacity": 3, "capacity": 4}}"#,
            ]
            for body in bodies {
                let answer = try await place.ask("POST", Self.path, body)
                #expect((answer.status, answer.code) == (400, "malformed"), "\(body)")
            }
            let name = try await place.ask("POST", Self.path, #"{"name": "a/b"}"#)
            #expect((name.status, name.code) == (400, "invalid_name"))
            let large = try await place.ask("POST", Self.path, #"{"name": ""# + String(repeating: "x", count: 20_000))
            #expect((large.status, large.code) == (413, "message_too_large"))
            let many = try await place.ask("POST", Self.path, #"{"options": {"media": "mesh", "capacity": 7}}"#)
            #expect((many.status, many.code) == (403, "not_permitted"))
            for path in ["/v1/rooms/a%2Fb", "/v1/rooms/%zz", "/v1/rooms/%ff", "/v1/rooms/%00"] {
                let answer = try await place.ask("DELETE", path)
                #expect(answer.status == 404 || answer.status == 400, "\(path)")
            }
            #expect(try await place.ask("GET", Self.path).rooms().rooms == [])
        }
    }

    @Test("without a token signed with the API secret nothing is possible")
    func refusals() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            let now = RoomsPlace.now
            let stranger = try #require(
                Project(apiKey: place.project.apiKey, secret: String(repeating: "x", count: 48)))
            let tokens: [(String?, String)] = [
                (nil, "token_malformed"), ("a.b.c", "token_malformed"),
                (stranger.makeRequestToken(now: now), "token_signature"),
                (place.project.makeRequestToken(now: now - .seconds(3600)), "token_expired"),
                (place.project.makeRequestToken(now: now, lifetime: .seconds(3600)), "token_lifetime"),
                (place.project.makeUserToken(user: "a", name: nil, now: now, lifetime: .seconds(60)), "token_scope"),
                (place.place.token(.moderator, lifetime: .seconds(60)), "token_scope"),
            ]
            for (token, code) in tokens {
                for (method, path) in [("GET", Self.path), ("POST", Self.path), ("DELETE", "/v1/rooms/x")] {
                    let answer = try await place.place.ask(method, path, token: token)
                    #expect(answer.status == 401 && answer.code == code, "\(method)")
                }
            }
            // The same token as a bearer token.
            let good = place.project.makeRequestToken(now: now)
            #expect(try await place.place.ask("GET", Self.path, token: good).status == 200)
        }
    }

    @Test("guessing is limited per address, and does not keep out the application beside it")
    func guesses() async throws {
        try await TestServer.run({ $0.limits.hellos = Budget.Rate(perSecond: 0.001, burst: 3) }) { server in
            let place = try RoomsPlace(server)
            var codes: [String?] = []
            for _ in 0..<5 { codes.append(try await place.place.ask("GET", Self.path, token: "a.b.c").code) }
            #expect(codes == ["token_malformed", "token_malformed", "token_malformed", "rate_limited", "rate_limited"])
            for _ in 0..<5 { #expect(try await place.ask("GET", Self.path).status == 200) }
        }
    }

    @Test("operators' rooms are in the audit log")
    func audit() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            _ = try await place.ask("POST", Self.path, #"{"name": "x"}"#)
            _ = try await place.ask("DELETE", "/v1/rooms/x")
            let storage = try SQLiteStorage(directory: server.dataDirectory)
            let entries = try await storage.audit(since: Timestamp(milliseconds: 0), limit: 10)
            #expect(entries.map(\.action) == ["room.close", "room.create"])
            #expect(entries.allSatisfy { $0.subject == "x" && $0.actor == "operator" })
            try await storage.close()
        }
    }

    @Test("a restart brings a persistent room back, and its creator is host")
    func restart() async throws {
        let directory = NSTemporaryDirectory() + "confab-rooms-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let name = try #require(RoomName("Stand-up"))
        let identity = try await TestServer.run(dataDirectory: directory) { server in
            let client = try await SocketClient.connect(port: server.port)
            let identity = try await client.greet().identity
            let options = try RoomChanges(members: #"{"persistent": true, "password": "x"}"#.json())
            _ = try await client.enter(RoomVerb.Join(name: name, displayName: "Ada", options: options))
            return identity
        }
        try await TestServer.run(dataDirectory: directory) { server in
            let other = try await server.client()
            let guest = try await other.enter(RoomVerb.Join(name: name, displayName: "Bob", password: "x"))
            #expect(guest.role == .host && guest.options.persistent, "the first person who comes")
            let client = try await server.client(identity: identity)
            #expect(try await client.enter(RoomVerb.Join(name: name, displayName: "Ada")).role == .host)
        }
    }

    @Test("commands find the server by the address in its data directory, while it runs")
    func address() async throws {
        let directory = NSTemporaryDirectory() + "confab-rooms-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let project = try await TestServer.run(dataDirectory: directory) { server in
            let project = try server.project.project
            let client = try OperatorClient(server: nil, dataDirectory: directory, project: project)
            let request = RoomCreationRequest(name: RoomName("x"), options: nil)
            let room = try RoomDescription(members: await client.send("POST", "/v1/rooms", request.json))
            #expect(room.summary.name.text == "x")
            await #expect(throws: OperatorClientError.self) { try await client.send("POST", "/v1/rooms", request.json) }
            return project
        }
        #expect(throws: OperatorClientError.self) {
            _ = try OperatorClient(server: nil, dataDirectory: directory, project: project)
        }
        let gone = try OperatorClient(server: "http://127.0.0.1:1", dataDirectory: directory, project: project)
        await #expect(throws: OperatorClientError.self) { try await gone.send("GET", "/v1/rooms") }
    }

    @Test("only the page of a room may be framed, and only by the allowed origins")
    func frames() async throws {
        try await TestServer.run({ $0.allowedOrigins = ["https://shop.example"] }) { server in
            let place = try WHIPPlace(server)
            let page = try await place.ask("GET", "/")
            #expect(page["Content-Security-Policy"]?.hasSuffix("frame-ancestors 'none'") == true)
            #expect(page["X-Frame-Options"] == "DENY")
            let room = try await place.ask("GET", "/room/Stand-up")
            guard room.status == 200 else { return }
            let policy = room["Content-Security-Policy"] ?? ""
            #expect(policy.hasSuffix("frame-ancestors 'self' https://shop.example"))
            #expect(room["X-Frame-Options"] == nil)
        }
    }
}

extension String {
    fileprivate func json() throws -> JSONObject {
        guard case .object(let object) = try JSONReader.parse(Array(utf8)) else { return JSONObject() }
        return object
    }
}
