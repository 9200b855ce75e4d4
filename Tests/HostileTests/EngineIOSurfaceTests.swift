import Foundation
import Testing

/// A client of Socket.IO 2 (Engine.IO 3) or 4 (Engine.IO 4) on raw sockets.
struct RawEngineIO {
    let port: Int
    let version: Int
    let id: String

    /// Opens a connection by polling.
    init(port: Int, version: Int = 4) throws {
        let answer = try RawSocket(port: port).ask("/socket.io/?EIO=\(version)&transport=polling")
        let parts = answer.text.components(separatedBy: "\"sid\":\"")
        guard answer.status == 200, parts.count == 2, let id = parts[1].split(separator: "\"").first else {
            throw TimedOut("no handshake: \(answer)")
        }
        (self.port, self.version, self.id) = (port, version, String(id))
    }

    var path: String { Self.path(version, "polling", id) }

    static func path(_ version: Int, _ transport: String, _ id: String? = nil) -> String {
        "/socket.io/?EIO=\(version)&transport=\(transport)" + (id.map { "&sid=\($0)" } ?? "")
    }

    func poll(on socket: RawSocket? = nil) throws -> HTTPResponse {
        try (socket ?? RawSocket(port: port)).ask(path, within: .seconds(10))
    }

    /// Returns the body with only this packet.
    func body(_ packet: String) -> String { version == 3 ? "\(packet.utf16.count):\(packet)" : packet }

    @discardableResult
    func post(_ packet: String, on socket: RawSocket? = nil) throws -> HTTPResponse {
        try post(bytes: Array(body(packet).utf8), on: socket)
    }

    func post(bytes: [UInt8], on socket: RawSocket? = nil) throws -> HTTPResponse {
        try (socket ?? RawSocket(port: port)).ask(path, method: "POST", body: bytes)
    }

    /// Polls until a packet with this text arrives.
    func hear(_ part: String) throws {
        let deadline = ContinuousClock.now + .seconds(30)
        var heard: [String] = []
        while ContinuousClock.now < deadline {
            heard.append(try poll().text)
            if heard.last?.contains(part) == true { return }
        }
        throw TimedOut("no \(part), but \(heard)")
    }

    /// Opens the namespace and waits for the client's own session.
    func enter() throws {
        if version == 4 { try post("40") }
        try hear("\"initial\"")
    }

    /// Opens a connection on a WebSocket, up to the client's own session.
    ///
    /// - Parameter auth: the object with which the namespace is opened.
    static func webSocket(port: Int, version: Int = 4, auth: String = "") throws -> RawWebSocket {
        let line = try RawWebSocket.open(port: port, path: path(version, "websocket"), subprotocol: nil)
        _ = try line.readText()
        if version == 4 { try line.send("40\(auth)") }
        _ = try line.readText()
        return line
    }

    static let bad = "{\"code\":3,\"message\":\"Bad request\"}"
    static let unknown = "{\"code\":1,\"message\":\"Session ID unknown\"}"
}

extension RawWebSocket {
    fileprivate func send(_ text: String) throws { try send(text: text) }

    /// Reads packets until one contains this text, and returns it.
    fileprivate func hear(_ part: String) throws -> String {
        while let text = try readText() { if text.contains(part) { return text } }
        throw TimedOut("the server closed before \(part)")
    }
}

extension Hostile {
    @Suite("Engine.IO's endpoints") struct EngineIOSurface {
        private static let invalid: [(method: String, query: String, answer: String)] = [
            ("GET", "?EIO=4", "{\"code\":0,\"message\":\"Transport unknown\"}"),
            ("GET", "?EIO=4&transport=flash", "{\"code\":0,\"message\":\"Transport unknown\"}"),
            ("GET", "?EIO=4&transport=polling&sid=nobody", RawEngineIO.unknown),
            ("POST", "?EIO=3&transport=polling&sid=nobody", RawEngineIO.unknown),
            ("GET", "?EIO=4&transport=websocket&sid=nobody", RawEngineIO.unknown),
            ("POST", "?EIO=4&transport=polling", "{\"code\":2,\"message\":\"Bad handshake method\"}"),
            ("GET", "?EIO=4&transport=websocket", RawEngineIO.bad),
            ("GET", "?EIO=5&transport=polling", "{\"code\":5,\"message\":\"Unsupported protocol version\"}"),
            ("GET", "?transport=polling", "{\"code\":5,\"message\":\"Unsupported protocol version\"}"),
            ("GET", "?EIO=%34&transport=polling", "{\"code\":5,\"message\":\"Unsupported protocol version\"}"),
        ]

        @Test("invalid requests get the answers of Socket.IO's own server")
        func invalidRequests() async throws {
            try await ServerProcess.run { server in
                for (method, query, expected) in Self.invalid {
                    for path in ["/socket.io/", "/socket.io"] {
                        let answer = try RawSocket(port: server.port).ask(path + query, method: method)
                        #expect(answer.status == 400 && answer.text == expected, "\(method) \(query): \(answer)")
                        #expect(answer["Content-Type"] == "application/json", "\(method) \(query)")
                    }
                }
            }
        }

        @Test("clients of every version are in one queue, and learn that the other left", arguments: [3, 4], [3, 4])
        func queue(_ one: Int, _ other: Int) async throws {
            try await ServerProcess.run { server in
                let ada = try RawEngineIO.webSocket(port: server.port, version: one)
                let bob = try RawEngineIO(port: server.port, version: other)
                let old = try RawSocketIO(port: server.port)
                _ = try ada.hear("initial")
                try bob.enter()
                _ = try old.hear(#"5:::{"name":"initial""#)
                try ada.send("42[\"next\",{}]")
                _ = try ada.hear("empty")
                try bob.post("42[\"next\"]")
                _ = try ada.hear("subscribe")
                try bob.hear("subscribe")
                try bob.post("41")
                _ = try ada.hear("disconnectPartner")
                try old.post(RawSocketIO.event("next"))
                _ = try old.hear(RawSocketIO.event("empty"))
                try ada.send("42[\"next\"]")
                _ = try ada.hear("subscribe")
                try ada.send("1")
                _ = try old.hear(RawSocketIO.event("disconnectPartner"))
            }
        }

        @Test("two polls at once end the connection", arguments: [3, 4])
        func twoPolls(_ version: Int) async throws {
            try await ServerProcess.run { server in
                let client = try RawEngineIO(port: server.port, version: version)
                try client.enter()
                let sockets = try (0..<2).map { _ in try RawSocket(port: server.port) }
                for socket in sockets { try socket.send("GET \(client.path) HTTP/1.1\r\nHost: x\r\n\r\n") }
                let answers = try sockets.map { try $0.readAnswer() }.sorted { $0.status < $1.status }
                #expect(answers[0].status == 200 && answers[0].text == client.body("1"), "\(answers)")
                #expect(answers[1].status == 400 && answers[1].text == RawEngineIO.bad, "\(answers)")
                #expect(try client.poll().text == RawEngineIO.unknown)
            }
        }

        @Test("a post is answered during another post and during a poll")
        func posts() async throws {
            try await ServerProcess.run { server in
                let client = try RawEngineIO(port: server.port)
                try client.enter()
                let slow = try RawSocket(port: server.port)
                try slow.send("POST \(client.path) HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n42[\"n")
                let waiting = try RawSocket(port: server.port)
                try waiting.send("GET \(client.path) HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(try client.post("421[\"next\"]").text == "ok")
                #expect(try waiting.readAnswer().text.hasPrefix("431[]"))
                try slow.send("ext\"]")
                #expect(try slow.readAnswer().text == "ok")
                try client.hear("empty")
            }
        }

        /// Bodies that cannot be parsed.
        private static let unreadableBodies: [(version: Int, body: String)] = [
            (4, ""), (4, "x"), (4, "40\u{1E}"), (4, "b=="), (3, ""), (3, "x"), (3, "5:40"), (3, "999999999:4"),
            (3, "\u{0}\u{9}40"), (3, "\u{1}"),
        ]

        /// Bodies whose packets can be parsed, but are not allowed.
        private static let forbiddenBodies: [(version: Int, body: String)] = [
            (4, "2"), (4, "42{}"), (4, "499999999999999999999[]"), (3, "1:3"), (3, "4:42{}"),
        ]

        @Test("a malformed body is answered and ends the connection")
        func malformed() async throws {
            try await ServerProcess.run { server in
                for (bodies, status, text) in [
                    (Self.unreadableBodies, 400, RawEngineIO.bad), (Self.forbiddenBodies, 200, "ok"),
                ] {
                    for (version, body) in bodies {
                        let client = try RawEngineIO(port: server.port, version: version)
                        try client.enter()
                        let answer = try client.post(bytes: Array(body.utf8))
                        #expect(answer.status == status && answer.text == text, "\(version), \(body): \(answer)")
                        let next = try client.poll()
                        #expect(next.status == 400 && next.text == RawEngineIO.unknown, "\(version), \(body): \(next)")
                    }
                }
            }
        }

        @Test("a body that is too large is refused", arguments: [3, 4])
        func large(_ version: Int) async throws {
            try await ServerProcess.run { server in
                let client = try RawEngineIO(port: server.port, version: version)
                try client.enter()
                let answer = try client.post(bytes: [UInt8](repeating: 0x34, count: 70_000))
                #expect(answer.status == 413 && answer["Connection"] == "close")
                // The body was not read, so the connection continues.
                #expect(try client.post("42[\"next\"]").text == "ok")
                try client.hear("empty")
            }
        }

        @Test("an upgrade that never finishes is closed, and the client continues to poll", arguments: ["", "2probe"])
        func unfinishedUpgrade(_ probe: String) async throws {
            let settings = ["CONFAB_SOCKET_IO_HANDSHAKE_TIMEOUT": "1s"]
            try await ServerProcess.run(settings) { server in
                let client = try RawEngineIO(port: server.port, version: 3)
                try client.enter()
                let path = RawEngineIO.path(3, "websocket", client.id)
                let line = try RawWebSocket.open(port: server.port, path: path, subprotocol: nil)
                if !probe.isEmpty {
                    try line.send(probe)
                    #expect(try line.readText() == "3probe")
                }
                #expect(try line.readClose(within: .seconds(20)) == 4408)
                #expect(try client.post("42[\"next\"]").text == "ok")
                try client.hear("empty")
            }
        }

        @Test("a polling client upgrades once", arguments: [3, 4])
        func upgrade(_ version: Int) async throws {
            try await ServerProcess.run { server in
                let client = try RawEngineIO(port: server.port, version: version)
                try client.enter()
                let path = RawEngineIO.path(version, "websocket", client.id)
                let line = try RawWebSocket.open(port: server.port, path: path, subprotocol: nil)
                try line.send("2probe")
                #expect(try line.readText() == "3probe")
                try line.send("5")
                try line.send("42[\"next\"]")
                _ = try line.hear("empty")
                for answer in [try client.poll(), try client.post("6")] {
                    #expect(answer.status == 400 && answer.text == RawEngineIO.bad, "\(answer)")
                }
                let again = try RawSocket(port: server.port)
                try again.send(RawWebSocket.request(path: path, subprotocol: nil, headers: []))
                let refusal = try again.readAnswer()
                #expect(refusal.status == 400 && refusal.text == RawEngineIO.bad, "\(refusal)")
                // The connection continues on its WebSocket.
                try line.send("421[\"next\"]")
                #expect(try line.hear("431") == "431[]")
            }
        }

        @Test("attachments that never come, and frames that break the protocol, end only their connection")
        func frames() async throws {
            try await ServerProcess.run { server in
                let waiting = try RawEngineIO.webSocket(port: server.port)
                try waiting.send("4516-[\"next\"]")
                for packet in ["49", "2", "x", "42[\"next\"", "451000-[]", "4299999999999999999999[\"next\"]", "bA="] {
                    let line = try RawEngineIO.webSocket(port: server.port)
                    try line.send(packet)
                    #expect(try line.readClose(within: .seconds(10)) == 4400, "\(packet)")
                }
                let binary = try RawEngineIO.webSocket(port: server.port)
                try binary.send("451-[\"next\",{\"_placeholder\":true,\"num\":0}]")
                try binary.socket.send(RawFrame(opcode: 2, payload: [1, 2, 3]).bytes)
                _ = try binary.hear("empty")
                try binary.socket.send(RawFrame(opcode: 2, payload: [1]).bytes)
                #expect(try binary.readClose(within: .seconds(10)) == 4400)
                for _ in 0..<16 { try waiting.socket.send(RawFrame(opcode: 2, payload: [1]).bytes) }
                _ = try waiting.hear("empty")
            }
        }

        /// Returns the text that an answer passes to the page's callback.
        private static func called(_ answer: HTTPResponse) throws -> String {
            guard answer.status == 200, answer["Content-Type"] == "application/javascript; charset=utf-8",
                answer.text.hasPrefix("___eio[2]("), answer.text.hasSuffix(");")
            else { throw TimedOut("no call: \(answer)") }
            return try JSONDecoder().decode(String.self, from: Data(answer.text.dropFirst(10).dropLast(2).utf8))
        }

        @Test("JSONP carries both directions", arguments: [3, 4])
        func scripts(_ version: Int) async throws {
            try await ServerProcess.run { server in
                let base = RawEngineIO.path(version, "polling") + "&j=2"
                let opened = try Self.called(RawSocket(port: server.port).ask(base))
                // A form with only this many bytes fits into a request's body, even if each takes four.
                #expect(opened.contains("\"maxPayload\":16383}"), "\(opened)")
                let id = opened.components(separatedBy: "\"sid\":\"")[1].prefix { $0 != "\"" }
                let path = "\(base)&sid=\(id)"
                func post(_ form: String) throws -> HTTPResponse {
                    try RawSocket(port: server.port).ask(path, method: "POST", body: Array(form.utf8))
                }
                #expect(try post(version == 3 ? "d=2%3A40" : "d=40").text == "ok")
                #expect(try Self.called(RawSocket(port: server.port).ask(path)).contains("40"))
                let next = version == 3 ? "d=11%3A427%5B%22next%22%5D" : "d=427%5B%22next%22%5D"
                #expect(try post(next).text == "ok")
                var heard = ""
                while !heard.contains("437[]") { heard += try Self.called(RawSocket(port: server.port).ask(path)) }
                // Like Socket.IO's own server, report errors by the status. A browser does not run such a script, and the
                // client's `onerror` closes the connection.
                for (path, body) in [(path, "x=1"), (path, "d=40"), ("\(base)&sid=nobody", "d=40")] {
                    let answer = try RawSocket(port: server.port).ask(path, method: "POST", body: Array(body.utf8))
                    #expect(answer.status == 400 && answer["Content-Type"] == "application/json", "\(body): \(answer)")
                }
                let gone = try RawSocket(port: server.port).ask(path)
                #expect(gone.status == 400 && gone.text == RawEngineIO.unknown, "\(gone)")
            }
        }

        @Test("a dropped client recovers its connection with the events that it missed, and its partner stays")
        func recovery() async throws {
            try await ServerProcess.run { server in
                let first = try RawWebSocket.open(
                    port: server.port, path: RawEngineIO.path(4, "websocket"), subprotocol: nil)
                _ = try first.readText()
                try first.send("40")
                let connected = try first.hear("\"pid\"")
                let pid = connected.components(separatedBy: "\"pid\":\"")[1].prefix { $0 != "\"" }
                let sid = connected.components(separatedBy: "\"sid\":\"")[1].prefix { $0 != "\"" }
                #expect(try first.hear("initial").hasSuffix(",\"\(sid)-1\"]"))
                let partner = try RawEngineIO(port: server.port, version: 3)
                try partner.enter()
                try partner.post("42[\"next\"]")
                try partner.hear("empty")
                try first.send("42[\"next\"]")
                #expect(try first.hear("subscribe").hasSuffix(",\"\(sid)-2\"]"))
                try partner.hear("subscribe")
                first.socket.reset()
                try partner.post("42[\"disconnectPartners\"]")
                try partner.hear("disconnectPartner")
                let second = try RawWebSocket.open(
                    port: server.port, path: RawEngineIO.path(4, "websocket"), subprotocol: nil)
                _ = try second.readText()
                try second.send("40{\"pid\":\"\(pid)\",\"offset\":\"\(sid)-2\"}")
                #expect(try second.readText() == connected)
                #expect(try second.readText() == "42[\"disconnectPartner\",\"\(sid)-3\"]")
                // The secret recovers only a connection that still exists.
                let third = try RawEngineIO.webSocket(port: server.port, auth: "{\"pid\":\"nobody\",\"offset\":\"1\"}")
                let initial = try third.hear("initial")
                #expect(initial.hasSuffix("-1\"]") && !initial.hasSuffix("\(sid)-1\"]"), "\(initial)")
                // With an unknown offset the client gets a new connection, and its earlier one ends.
                try partner.post("42[\"next\"]")
                try third.send("42[\"next\"]")
                try partner.hear("subscribe")
                let auth = "{\"pid\":\"\(pid)\",\"offset\":\"\(sid)-9\"}"
                let fourth = try RawEngineIO.webSocket(port: server.port, auth: auth)
                let fresh = try fourth.hear("initial")
                #expect(fresh.hasSuffix("-1\"]") && !fresh.hasSuffix("\(sid)-1\"]"), "\(fresh)")
                #expect(try second.readClose() == 1001)
            }
        }
    }
}
