import Cluster
import Foundation
import Logging
import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The operator's page", .ownThreads, .timeLimit(.minutes(3))) struct AdminEndpointTests {
    private static let token = "f00dfeedf00dfeedf00dfeedf00dfeed"

    /// The operator's page of a test server.
    private struct Desk: Sendable {
        let place: WHIPPlace
        let base: String

        func ask(
            _ method: String, _ path: String, _ body: String = "", token: String? = AdminEndpointTests.token
        ) async throws -> WHIPPlace.Answer {
            try await place.ask(
                method, base + path, token: token, body.isEmpty ? [:] : ["Content-Type": "application/json"], body)
        }

        func list(_ path: String, _ name: String) async throws -> [JSONObject] {
            let answer = try await ask("GET", path)
            #expect(answer.status == 200, "\(answer.text)")
            guard case .array(let elements)? = try answer.object()[name] else { return [] }
            return elements.compactMap { if case .object(let object) = $0 { object } else { nil } }
        }
    }

    private static func withDesk(
        logger: Logger? = nil, nodes: TestServerNodes? = nil,
        _ configure: (inout ConfabConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (TestServer, Desk) async throws -> Void
    ) async throws {
        let admin = AdminPort()
        try await TestServer.run(
            logger: logger, nodes: nodes, admin: admin,
            {
                $0.admin.port = 0
                $0.admin.token = SecretText(token)
                configure(&$0)
            }
        ) { server in
            let port = try await admin.opened()
            try await body(server, Desk(place: try WHIPPlace(server), base: "http://127.0.0.1:\(port)"))
        }
    }

    private static let paths = [
        "/admin/api/overview", "/admin/api/sessions", "/admin/api/reports", "/admin/api/bans", "/admin/api/audit",
        "/admin/api/recordings",
    ]

    @Test("every request to the interface needs the token, and the log contains no token")
    func tokens() async throws {
        let log = LogLines(level: .trace)
        try await Self.withDesk(logger: log.logger) { _, desk in
            for path in Self.paths {
                let none = try await desk.ask("GET", path, token: nil)
                #expect(none.status == 401 && none.code == "token_malformed", "\(path)")
                #expect(try await desk.ask("GET", path).status == 200, "\(path)")
            }
            for path in [
                "/admin/api/reports/1/ban", "/admin/api/reports/1/dismiss", "/admin/api/bans", "/admin/api/bans/lift",
            ] {
                #expect(try await desk.ask("POST", path, "{}", token: nil).status == 401, "\(path)")
            }
            let wrong = "0000feedf00dfeedf00dfeedf00dfeed"
            let refused = try await desk.ask("GET", Self.paths[0], token: wrong)
            #expect(refused.status == 401 && refused.code == "token_signature")
            #expect(log.contains("Wrong token"))
            #expect(!log.contains(Self.token) && !log.contains(wrong))
        }
    }

    @Test("the page and its files are on its own port only, and may not be stored or framed")
    func ports() async throws {
        try await Self.withDesk { server, desk in
            for path in [
                "/admin", "/app/admin/main.js", "/app/admin/admin.css", "/app/shared/style.css", "/app/favicon.svg",
            ] {
                let file = try await desk.ask("GET", path, token: nil)
                #expect(file.status == 200, "\(path)")
                #expect(file["Cache-Control"] == "no-store" && file["X-Frame-Options"] == "DENY", "\(path)")
                #expect(file["Content-Security-Policy"]?.contains("frame-ancestors 'none'") == true)
            }
            for path in [
                "/app/admin/index.html", "/app/strangers/main.js", "/lib/index.js", "/health", "/admin/api/none",
            ] {
                #expect(try await desk.ask("GET", path).status == 404, "\(path)")
            }
            let sharing = try await desk.ask("GET", Self.paths[0])
            #expect(sharing["Access-Control-Allow-Origin"] == nil && sharing["Cache-Control"] == "no-store")
            let publicPaths = Self.paths + ["/admin", "/admin/", "/app/admin/main.js", "/app/admin/index.html"]
            for path in publicPaths {
                let answer = try await desk.place.ask("GET", path, token: Self.token)
                #expect(answer.status == 404, "\(path) on the public port")
            }
            #expect(try await desk.place.ask("POST", "/admin/api/bans", token: Self.token, [:], "{}").status == 404)
        }
    }

    /// Sends text to the operator's page, and returns everything that arrives until the connection is closed.
    private static func exchange(_ text: String, port: Int) async throws -> String {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            var received = ""
            do {
                try await outbound.write(ByteBuffer(string: text))
                for try await part in inbound { received += String(buffer: part) }
            } catch let problem where problem is IOError || problem is ChannelError {
                // The server closed the connection before it had read everything.
            }
            return received
        }
    }

    @Test("a request with the name of another site is refused with a sentence, whatever it asks for")
    func rebinding() async throws {
        try await Self.withDesk { _, desk in
            let port = try #require(URL(string: desk.base)?.port)
            for path in ["/", "/admin", "/admin/api/overview", "/app/admin/main.js", "/none"] {
                for (host, isOwn) in [("evil.example:\(port)", false), ("localhost:\(port)", true)] {
                    let answer = try await Self.exchange(
                        "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n", port: port)
                    #expect(answer.hasPrefix("HTTP/1.1 403 ") == !isOwn, "\(path) \(host): \(answer.prefix(40))")
                    if !isOwn { #expect(answer.contains("localhost, or the name in admin.host or publicURL")) }
                }
            }
        }
    }

    @Test("the names that the operator's page accepts are addresses, localhost and those of the configuration")
    func names() {
        var configuration = ConfabConfiguration()
        configuration.admin.host = "desk.example.org"
        configuration.publicURL = "https://Chat.example.org/video"
        for host in [
            "127.0.0.1", "127.0.0.1:9465", "[::1]:9465", "192.0.2.7", "LocalHost:1", "desk.example.org",
            "chat.example.org:443",
        ] {
            #expect(configuration.allowsAdmin(host: host), "\(host)")
        }
        for host in ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[evil]", "example.org"] {
            #expect(!configuration.allowsAdmin(host: host), "\(host)")
        }
    }

    @Test("a connection that sends nothing, or half a request, is closed after a while")
    func idle() async throws {
        try await Self.withDesk({ $0.limits.requestHeaderTimeout = .milliseconds(20) }) { _, desk in
            let port = try #require(URL(string: desk.base)?.port)
            #expect(try await Self.exchange("", port: port) == "")
            #expect(try await Self.exchange("GET /admin HTTP/1.1\r\nHost: local", port: port) == "")
        }
    }

    @Test("the page is notified of what has changed, until the server stops")
    func notified() async throws {
        try await Self.withDesk { server, desk in
            #expect(try await desk.ask("GET", "/admin/api/changes", token: "wrong").status == 401)
            #expect(try await desk.place.ask("GET", "/admin/api/changes", token: Self.token).status == 404)
            let port = try #require(URL(string: desk.base)?.port)
            let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            try await channel.executeThenClose { inbound, outbound in
                let head =
                    "GET /admin/api/changes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(Self.token)\r\n\r\n"
                try await outbound.write(ByteBuffer(string: head))
                var parts = inbound.makeAsyncIterator()
                var text = ""
                func hear(_ view: String) async throws {
                    text = ""
                    while !text.contains("\"\(view)\"") {
                        let part = try #require(try await parts.next(), "closed after \(text)")
                        text += String(buffer: part)
                    }
                }
                try await hear("reports")
                #expect(text.hasPrefix("HTTP/1.1 200 ") && text.contains("application/x-ndjson"))
                let (ann, bob) = (try await server.client(), try await server.client())
                try await ann.say(.roulette(.start(.init())))
                let bobs = try await bob.meet()
                _ = try await bob.join(bobs.publish)
                try await hear("sessions")
                try await bob.ask(.roulette(.report(.init(reason: "rude"))))
                try await hear("reports")
                server.stop()
                // The server waits for the end of the stream, and the test for that of the connection.
                while try await parts.next() != nil {}
            }
        }
    }

    @Test("a head that is too large is refused")
    func largeHead() async throws {
        try await Self.withDesk({ $0.limits.requestHeaderTimeout = .milliseconds(50) }) { _, desk in
            let port = try #require(URL(string: desk.base)?.port)
            let header = "X-Padding: " + String(repeating: "x", count: 20_000)
            let answer = try await Self.exchange(
                "GET /admin HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n\r\n", port: port)
            #expect(!answer.contains("200 OK"), "\(answer.prefix(40))")
        }
    }

    @Test("the sessions are listed in pages, and the number of open reports counts those that are not listed")
    func pages() async throws {
        try await Self.withDesk { server, desk in
            for name in ["garden", "garden", "kitchen"] {
                let client = try await server.client()
                let entered = try await client.enter(.init(name: try #require(RoomName(name)), displayName: "Ann"))
                _ = try await client.join(entered.admission)
            }
            func rooms(from first: Int) async throws -> [JSONValue?] {
                try await desk.list("/admin/api/sessions?from=\(first)", "sessions").map { $0["room"] }
            }
            #expect(try await rooms(from: 0) == [.string("garden"), .string("kitchen")])
            #expect(try await rooms(from: 1) == [.string("kitchen")])
            #expect(try await rooms(from: 2) == [])
            #expect(try await rooms(from: Int.max) == [])
            #expect(try await rooms(from: -1).count == 2)
            let page = try await desk.ask("GET", "/admin/api/sessions?from=1").object()
            #expect(page["count"] == .integer(2) && page["from"] == .integer(1) && page["pageSize"] == .integer(25))
            let reports = try await desk.ask("GET", "/admin/api/reports?all=1").object()
            #expect(reports["openCount"] == .integer(0))
        }
    }

    @Test("in a cluster, nodes are listed, drained and put back, which the audit log has")
    func nodes() async throws {
        let requests = TestNodes.Requests()
        try await Self.withDesk(nodes: .fake(requests)) { server, desk in
            #expect(try await desk.ask("GET", "/admin/api/nodes", token: nil).status == 401)
            #expect(try await desk.ask("POST", "/admin/api/nodes/n1", "{}", token: nil).status == 401)
            #expect(try await desk.ask("GET", "/admin/api/overview").object()["node"] == .string("n1"))
            let names = try await desk.list("/admin/api/nodes", "nodes").map { $0["node"] }
            #expect(names == [.string("n1"), .string("n2"), .string("n3")])
            let second = try await desk.list("/admin/api/nodes", "nodes").dropFirst().first
            guard case .object(let relays)? = second?["relays"] else {
                Issue.record("the relays to n2 are missing")
                return
            }
            #expect(relays["connected"] == .integer(1) && relays["connecting"] == .integer(1))
            #expect(relays["fault"] == .string("unreachable"))

            let other = try await desk.ask("POST", "/admin/api/nodes/n2", #"{"state":"draining"}"#)
            #expect(try other.object()["requested"] == .string("draining"))
            #expect(requests.all == [TestNodes.second: .draining])
            let own = try await desk.ask("POST", "/admin/api/nodes/n1", #"{"state":"draining"}"#)
            #expect(try own.object()["state"] == .string("draining"))
            #expect(try await desk.place.ask("GET", "/ready").status == 404)
            for _ in 0..<2 {
                #expect(try await desk.ask("POST", "/admin/api/nodes/n1", #"{"state":"serving"}"#).status == 200)
            }
            #expect(try await desk.place.ask("GET", "/ready").status == 200)
            let entries = try await desk.list("/admin/api/audit", "entries")
            #expect(
                entries.map { $0["action"] } == [.string("node.serve"), .string("node.drain"), .string("node.drain")])
            #expect(entries.map { $0["subject"] } == [.string("n1"), .string("n1"), .string("n2")])

            #expect(try await desk.ask("POST", "/admin/api/nodes/n3", #"{"state":"draining"}"#).code == "not_found")
            #expect(try await desk.ask("POST", "/admin/api/nodes/n1", #"{"state":"away"}"#).code == "malformed")
        }
    }

    @Test("a server that is alone lists no nodes, and its overview names none")
    func alone() async throws {
        try await Self.withDesk { _, desk in
            let nodes = try await desk.ask("GET", "/admin/api/nodes")
            #expect(nodes.code == "not_found")
            let overview = try await desk.ask("GET", "/admin/api/overview").object()
            #expect(overview["node"] == nil)
        }
    }

    @Test("without admin.port there is no page, and its token is not created")
    func off() async throws {
        try await TestServer.run { server in
            #expect(!FileManager.default.fileExists(atPath: server.dataDirectory + "/admin-token"))
            let answer = try await WHIPPlace(server).ask("GET", "/admin")
            #expect(answer.status == 404)
        }
    }

    @Test("a warning reaches a connected person and closes the report, and otherwise the report stays open")
    func warnings() async throws {
        try await Self.withDesk { server, desk in
            let (ann, bob) = (try await server.client(), try await SocketClient.connect(port: server.port))
            try await bob.greet(showsWarnings: true)
            try await ann.say(.roulette(.start(.init())))
            _ = try await bob.meet()
            _ = try await ann.hear("match") { if case .roulette(.matched) = $0 { true } else { nil } }
            try await ann.ask(.roulette(.report(.init(reason: "rude"))))
            let report = try #require(try await desk.list("/admin/api/reports", "reports").first)
            guard case .integer(let id)? = report["id"] else { return _ = Issue.record("\(report)") }

            let path = "/admin/api/reports/\(id)/warn"
            let long = String(repeating: "a", count: Limits.warning + 1)
            #expect(try await desk.ask("POST", path, #"{"text":"\#(long)"}"#).code == "malformed")
            #expect(try await desk.ask("GET", "/admin/api/reports/\(id)/sample").code == "not_found")
            let warned = try await desk.ask("POST", path, #"{"text":"Be kind."}"#)
            #expect(try warned.object()["delivered"] == .bool(true))
            #expect(try warned.object()["obstacle"] == nil)
            let warning = try await bob.hear("warning") {
                if case .roulette(.warning(let warning)) = $0 { warning } else { nil }
            }
            #expect(warning == RouletteNotice.Warning(source: .operator, text: "Be kind."))
            #expect(try await desk.list("/admin/api/reports", "reports").isEmpty)
            let entry = try await desk.list("/admin/api/audit", "entries").first
            #expect(entry?["action"] == .string("report.close") && entry?["detail"] == .string("warned: Be kind."))
            #expect(try await desk.ask("POST", path, "{}").code == "not_found", "it is closed")

            try await bob.ask(.roulette(.report(.init(reason: "no, her"))))
            let second = try #require(try await desk.list("/admin/api/reports", "reports").first)
            guard case .integer(let other)? = second["id"] else { return _ = Issue.record("\(second)") }
            let ignored = try await desk.ask("POST", "/admin/api/reports/\(other)/warn", "{}").object()
            #expect(ignored["delivered"] == .bool(false) && ignored["obstacle"] == .string("ignored"))
            try await ann.say(.bye)
            try await ann.close()
            try await eventually {
                let answer = try await desk.ask("POST", "/admin/api/reports/\(other)/warn", "{}")
                return try answer.object()["obstacle"] == .string("notConnected")
                    ? nil : "the server has not noticed: \(answer.text)"
            }
            #expect(try await desk.list("/admin/api/reports", "reports").count == 1)
        }
    }

    @Test("a report is handled from the complaint to the ban, which applies at once and can be lifted")
    func complaint() async throws {
        try await Self.withDesk { server, desk in
            let (ann, bob) = (try await server.client(), try await SocketClient.connect(port: server.port))
            let secret = try #require(try await bob.greet().identity)
            try await ann.say(.roulette(.start(.init())))
            let bobs = try await bob.meet()
            let anns = try await ann.hear("match") {
                if case .roulette(.matched(let matched)) = $0 { matched } else { nil }
            }
            _ = try await ann.join(anns.publish)
            let joined = try await bob.join(bobs.publish)
            try await bob.say(
                .session(.signal(.init(session: joined.session, type: "chat", data: "an <b>insult</b>"))))
            _ = try await ann.hear("chat") {
                if case .session(.signal(let signal)) = $0, signal.data == "an <b>insult</b>" { true } else { nil }
            }
            try await ann.ask(.roulette(.report(.init(reason: "rude"))))

            let report = try #require(try await desk.list("/admin/api/reports", "reports").first)
            #expect(report["reason"] == .string("rude") && report["banned"] == .bool(false))
            guard case .array(let lines)? = report["lines"], case .object(let line)? = lines.first,
                case .integer(let id)? = report["id"], case .string(let against)? = report["against"]
            else {
                Issue.record("the report has no evidence: \(report)")
                return
            }
            #expect(line["text"] == .string("an <b>insult</b>") && line["from"] == .string("reported"))

            let banned = try await desk.ask(
                "POST", "/admin/api/reports/\(id)/ban", #"{"reason":"insults","duration":"7d"}"#)
            #expect(banned.status == 200, "\(banned.text)")
            #expect(try await bob.hearClose() == CloseCode.forbidden.rawValue)
            await #expect(throws: (any Error).self) { try await server.client(identity: secret) }

            #expect(try await desk.list("/admin/api/reports", "reports").isEmpty)
            let closed = try await desk.list("/admin/api/reports?all=1", "reports")
            #expect(closed.first?["banned"] == .bool(true) && closed.first?["closedAt"] != nil)
            let bans = try await desk.list("/admin/api/bans", "bans")
            #expect(
                bans.contains {
                    $0["subject"] == .string(against) && $0["reason"] == .string("insults") && $0["until"] != nil
                })
            let actions = try await desk.list("/admin/api/audit", "entries").map { $0["action"] }
            #expect(actions.contains(.string("ban.add")) && actions.first == .string("report.close"))

            for case .string(let subject)? in bans.map({ $0["subject"] }) {
                #expect(try await desk.ask("POST", "/admin/api/bans/lift", #"{"subject":"\#(subject)"}"#).status == 204)
            }
            #expect(try await desk.list("/admin/api/bans", "bans").isEmpty)
            _ = try await server.client(identity: secret)
        }
    }

    @Test("a report is dismissed once, and what does not exist is not found")
    func dismissing() async throws {
        try await Self.withDesk { server, desk in
            let (ann, bob) = (try await server.client(), try await server.client())
            try await ann.say(.roulette(.start(.init())))
            _ = try await bob.meet()
            try await bob.ask(.roulette(.report(.init(reason: ""))))
            guard case .integer(let id)? = try await desk.list("/admin/api/reports", "reports").first?["id"] else {
                Issue.record("there is no report")
                return
            }
            #expect(try await desk.ask("POST", "/admin/api/reports/\(id)/dismiss", "{}").status == 204)
            #expect(try await desk.ask("POST", "/admin/api/reports/\(id)/dismiss", "{}").status == 404)
            #expect(try await desk.ask("POST", "/admin/api/reports/999/ban", "{}").status == 404)
            #expect(try await desk.ask("POST", "/admin/api/bans/lift", #"{"subject":"192.0.2.1"}"#).status == 404)
            #expect(try await desk.list("/admin/api/bans", "bans").isEmpty)
            let entry = try #require(try await desk.list("/admin/api/audit", "entries").first)
            #expect(entry["detail"] == .string("dismissed") && entry["actor"] == .string("operator"))
        }
    }

    @Test("malformed bans are refused with a sentence, and nothing is stored")
    func malformed() async throws {
        let bodies = [
            "", "[]", "{", #"{"subject":"nobody"}"#, #"{"subject":7}"#, #"{"subject":"192.0.2.1","duration":"soon"}"#,
            #"{"subject":"192.0.2.1","duration":"0s"}"#, #"{"subject":"192.0.2.1","duration":"99999d"}"#,
            #"{"subject":"192.0.2.1","duration":7}"#, #"{"subject":"192.0.2.1","reason":7}"#,
            #"{"subject":"192.0.2.1","reason":"\#(String(repeating: "x", count: 501))"}"#,
        ]
        try await Self.withDesk { _, desk in
            for body in bodies {
                let answer = try await desk.ask("POST", "/admin/api/bans", body)
                #expect(answer.status == 400 && answer.code == "malformed", "\(body): \(answer.text)")
            }
            #expect(try await desk.list("/admin/api/bans", "bans").isEmpty)
        }
    }

    @Test("a body that is too large is refused, and so is a report without a number")
    func sizes() async throws {
        try await Self.withDesk { _, desk in
            let large = #"{"subject":"\#(String(repeating: "1", count: 5000))"}"#
            let refused = try await desk.ask("POST", "/admin/api/bans", large)
            #expect(refused.status == 413)
            let unknown = try await desk.ask("POST", "/admin/api/reports/x/ban", "{}")
            #expect(unknown.status == 400)
        }
    }

    @Test("rooms are listed with their people, and the figures count them")
    func sessions() async throws {
        try await Self.withDesk { server, desk in
            let ann = try await server.client()
            let entered = try await ann.enter(.init(name: try #require(RoomName("garden")), displayName: "Ann"))
            _ = try await ann.join(entered.admission)
            let session = try #require(try await desk.list("/admin/api/sessions", "sessions").first)
            #expect(session["room"] == .string("garden") && session["id"] == .string(entered.admission.session.text))
            guard case .array(let members)? = session["members"], case .object(let member)? = members.first else {
                Issue.record("the session has no members: \(session)")
                return
            }
            #expect(member["name"] == .string("Ann") && member["reconnecting"] == .bool(false))
            let overview = try await desk.ask("GET", "/admin/api/overview?since=0").object()
            #expect(overview["version"] == .string(ConfabServer.version))
            try await eventually {
                let samples = try await desk.list("/admin/api/overview?since=0", "samples")
                return samples.contains { $0["rooms"] == .integer(1) } ? nil : "no sample has the room"
            }
            #expect(try await desk.list("/admin/api/overview?since=\(Int64.max)", "samples").isEmpty)
        }
    }
}
