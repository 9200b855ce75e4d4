import Foundation
import Testing

/// A raw Socket.IO 0.9 client over plain HTTP.
struct RawSocketIO {
    let port: Int
    let id: String

    /// - Parameter path: one of the spellings of the handshake's path.
    init(port: Int, path: String = "/socket.io/1/", method: String = "GET") throws {
        let answer = try RawSocket(port: port).ask(path, method: method)
        guard answer.status == 200, let id = answer.text.split(separator: ":").first else {
            throw TimedOut("no handshake: \(answer)")
        }
        self.port = port
        self.id = String(id)
    }

    var pollPath: String { "/socket.io/1/xhr-polling/\(id)?t=1" }

    @discardableResult
    func poll(on socket: RawSocket? = nil, within limit: Duration = .seconds(10)) throws -> String {
        try (socket ?? RawSocket(port: port)).ask(pollPath, within: limit).text
    }

    @discardableResult
    func post(_ text: String, on socket: RawSocket? = nil) throws -> HTTPResponse {
        try (socket ?? RawSocket(port: port)).ask(pollPath, method: "POST", body: Array(text.utf8))
    }

    func openWebSocket(slash: String = "") throws -> RawWebSocket {
        try RawWebSocket.open(port: port, path: "/socket.io/1/websocket/\(id)\(slash)", subprotocol: nil)
    }

    /// Polls until a packet with this prefix arrives, and returns that packet.
    func hear(_ prefix: String) throws -> String {
        let deadline = ContinuousClock.now + .seconds(30)
        var heard: [String] = []
        while ContinuousClock.now < deadline {
            heard += Self.packets(try poll())
            if let packet = heard.first(where: { $0.hasPrefix(prefix) }) { return packet }
        }
        throw TimedOut("no \(prefix), but \(heard)")
    }

    /// Splits a payload into packets and ignores their lengths. These packets are ASCII.
    static func packets(_ payload: String) -> [String] {
        let parts = payload.components(separatedBy: "\u{FFFD}")
        guard parts.count > 1 else { return [payload] }
        return stride(from: 2, to: parts.count, by: 2).map { parts[$0] }
    }

    static func event(_ name: String) -> String { #"5:::{"name":"\#(name)"}"# }
}

extension Hostile {
    @Suite("Socket.IO's endpoints") struct SocketIOSurface {
        @Test(
            "a handshake is answered in any spelling",
            arguments: [
                ("GET", "/socket.io/1/"), ("GET", "/socket.io/1"), ("POST", "/socket.io/1/"), ("POST", "/socket.io/1"),
                ("GET", "/socket.io/1?t=1700000000000"), ("GET", "/socket.io/1/?t=1&x=%00"),
            ])
        func handshakes(_ method: String, _ path: String) async throws {
            try await ServerProcess.run { server in
                let answer = try RawSocket(port: server.port).ask(path, method: method)
                #expect(answer.status == 200)
                #expect(answer["Content-Type"]?.hasPrefix("text/plain") == true)
                let parts = answer.text.split(separator: ":")
                #expect(parts.count == 4 && parts[0].count == 20)
                #expect(parts.dropFirst() == ["60", "60", "websocket,xhr-polling,jsonp-polling"])
            }
        }

        @Test("every path has its response")
        func answers() async throws {
            try await ServerProcess.run { server in
                for (method, path, status, body) in [
                    ("GET", "/socket.io", 200, "Socket.IO clients connect here"),
                    ("GET", "/socket.io/", 200, "Socket.IO clients connect here"),
                    ("GET", "/socket.io/2/", 500, "Unsupported protocol"),
                    ("GET", "/socket.io/0", 500, "Unsupported protocol"),
                    ("PUT", "/socket.io/1/", 405, "Use GET"), ("OPTIONS", "/socket.io/1/", 204, ""),
                    ("GET", "/socket.io/1/xhr-polling/nobody", 200, "7:::1+0"),
                    ("POST", "/socket.io/1/xhr-polling/nobody", 200, "7:::1+0"),
                    ("GET", "/socket.io/1/jsonp-polling/nobody?i=4", 200, "io.j[4](\"7:::1+0\");"),
                    ("GET", "/socket.io/1/flashsocket/nobody", 200, "7:::0"),
                    ("GET", "/socket.io/1/websocket/nobody", 200, "7:::0"),
                    ("GET", "/socket.io/1//nobody/?disconnect=1", 200, ""),
                    ("GET", "/socket.io/1/xhr-polling/nobody?disconnect", 200, ""),
                    ("GET", "/socket.io/nothing.js", 404, ""), ("GET", "/socket.iox/1/", 404, ""),
                ] {
                    let answer = try RawSocket(port: server.port).ask(path, method: method)
                    #expect(answer.status == status, "\(method) \(path)")
                    #expect(answer.text.hasPrefix(body), "\(method) \(path) was answered \(answer.text)")
                }
                let script = try RawSocket(port: server.port).ask("/socket.io/1/?jsonp=7")
                #expect(script["Content-Type"]?.hasPrefix("application/javascript") == true)
                #expect(
                    script.text.hasPrefix("io.j[7](\"")
                        && script.text.hasSuffix(":60:60:websocket,xhr-polling,jsonp-polling\");"))
                let injected = try RawSocket(port: server.port).ask("/socket.io/1/?jsonp=0](alert(1));//")
                #expect(!injected.text.contains("alert"))
            }
        }

        @Test("a WebSocket for an unknown connection gets an error and closes", arguments: ["", "/"])
        func unknownWebSocket(slash: String) async throws {
            try await ServerProcess.run { server in
                let line = try RawWebSocket.open(
                    port: server.port, path: "/socket.io/1/websocket/nobody\(slash)", subprotocol: nil)
                #expect(try line.readText() == "7:::1+0")
                #expect(try line.readClose(within: .seconds(10)) == 1000)
            }
        }

        @Test("origins are echoed only here and restricted by the configuration")
        func origins() async throws {
            let origin = ("Origin", "https://page.example")
            try await ServerProcess.run { server in
                let answer = try RawSocket(port: server.port).ask("/socket.io/1/", headers: [origin])
                #expect(answer["Access-Control-Allow-Origin"] == origin.1)
                #expect(answer["Access-Control-Allow-Credentials"] == "true")
                for path in ["/", "/health", "/v1/socket", "/lib/index.js"] {
                    let other = try RawSocket(port: server.port).ask(path, headers: [origin])
                    #expect(other["Access-Control-Allow-Credentials"] == nil, "\(path)")
                }
            }
            try await ServerProcess.run(["CONFAB_ALLOWED_ORIGINS": "https://chat.example"]) { server in
                let refused = try RawSocket(port: server.port).ask("/socket.io/1/", headers: [origin])
                #expect(refused.status == 403)
                #expect(refused["Access-Control-Allow-Origin"] == nil)
                let allowed = ("Origin", "https://chat.example")
                #expect(try RawSocket(port: server.port).ask("/socket.io/1/", headers: [allowed]).status == 200)
            }
        }

        @Test("invalid posts are answered, and at most 64 KiB is read")
        func posts() async throws {
            try await ServerProcess.run { server in
                let client = try RawSocketIO(port: server.port)
                #expect(try client.poll() == "1::")
                #expect(try client.post("").status == 200)
                let large = String(repeating: "x", count: 70_000)
                let refused = try client.post(large)
                #expect(refused.status == 413 && refused["Connection"] == "close")
                let socket = try RawSocket(port: server.port)
                try socket.send("POST \(client.pollPath) HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in 0..<5 {
                    socket.sendWhatGoes(Array("4000\r\n\(String(repeating: "y", count: 0x4000))\r\n".utf8))
                }
                #expect(try socket.readAnswer().status == 413)
                let form = "/socket.io/1/jsonp-polling/\(client.id)?i=0"
                let broken = try RawSocket(port: server.port).ask(form, method: "POST", body: Array("d=%zz".utf8))
                #expect(broken.status == 400)
                let good = try RawSocket(port: server.port).ask(
                    form, method: "POST", body: Array("d=%222%3A%3A%22".utf8))
                #expect(good.text == "1")
            }
        }

        @Test("one connection serves pages, polls and posts in any order, also pipelined")
        func mixing() async throws {
            try await ServerProcess.run { server in
                let client = try RawSocketIO(port: server.port)
                let socket = try RawSocket(port: server.port)
                #expect(try client.poll(on: socket) == "1::")
                #expect(try socket.ask("/health").status == 200)
                #expect(try client.poll(on: socket).contains("initial"))
                #expect(try client.post(RawSocketIO.event("next"), on: socket).text == "1")
                #expect(try client.poll(on: socket) == RawSocketIO.event("empty"))
                let packet = "3:9::x"
                let all =
                    "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
                    + "POST \(client.pollPath) HTTP/1.1\r\nHost: x\r\nContent-Length: \(packet.utf8.count)\r\n\r\n\(packet)"
                    + "GET \(client.pollPath) HTTP/1.1\r\nHost: x\r\n\r\nGET /lib/index.js HTTP/1.1\r\nHost: x\r\n\r\n"
                try socket.send(all)
                #expect(try socket.readAnswer().text.contains("ok"))
                #expect(try socket.readAnswer().text == "1")
                #expect(RawSocketIO.packets(try socket.readAnswer().text).first == "6:::9")
                #expect(try socket.readAnswer()["Content-Type"]?.hasPrefix("text/javascript") == true)
            }
        }

        @Test(
            "an invalid upgrade after other requests is answered as a plain one, and the connection closes",
            arguments: ["/", "/v1/socket", "/socket.io/1/xhr-polling/nobody"])
        func lateUpgrade(path: String) async throws {
            try await ServerProcess.run { server in
                for before in ["/socket.io/1/", "/health"] {
                    let socket = try RawSocket(port: server.port)
                    #expect(try socket.ask(before).status == 200)
                    let upgrade = [
                        ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                    ]
                    let answer = try socket.ask(
                        path, headers: upgrade + [("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])
                    #expect(answer.status != 101 && answer["Connection"] == "close", "\(before), then \(path)")
                    socket.sendWhatGoes([0x81, 0x80, 0, 0, 0, 0], within: .seconds(1))
                    #expect(socket.isClosedByPeer(within: .seconds(10)))
                }
            }
        }

        @Test("a HEAD is answered without a body, and a bad request ends the connection")
        func heads() async throws {
            try await ServerProcess.run { server in
                let socket = try RawSocket(port: server.port)
                #expect(try socket.ask("/socket.io/1/", method: "HEAD").status == 405)
                #expect(try socket.ask("/socket.io").status == 200)
                let health = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
                try socket.send(health + health + "nonsense\r\n\r\n")
                #expect(try [200, 200, 400].map { _ in try socket.readAnswer().status } == [200, 200, 400])
                #expect(socket.isClosedByPeer(within: .seconds(10)))
            }
        }

        @Test("a client that changes its transport early misses no message")
        func changingTransports() async throws {
            try await ServerProcess.run { server in
                let client = try RawSocketIO(port: server.port)
                #expect(try client.poll() == "1::")
                let line = try client.openWebSocket()
                #expect(try line.readText() == "1::")
                #expect(try line.readText()?.contains("initial") == true)
            }
        }

        @Test("a poll may wait longer than the idle timeout, but an idle connection may not")
        func idleness() async throws {
            let settings = ["CONFAB_LIMITS_REQUEST_HEADER_TIMEOUT": "1s", "CONFAB_SOCKET_IO_POLL_DURATION": "3s"]
            try await ServerProcess.run(settings) { server in
                let client = try RawSocketIO(port: server.port)
                let socket = try RawSocket(port: server.port)
                #expect(try client.poll(on: socket) == "1::")
                try client.poll(on: socket)
                #expect(try client.poll(on: socket) == "8::")
                #expect(socket.isClosedByPeer(within: .seconds(20)))
            }
        }

        @Test("Connection: close is honored, for HTTP/1.0 too")
        func closing() async throws {
            try await ServerProcess.run { server in
                let client = try RawSocketIO(port: server.port)
                for request in [
                    "GET \(client.pollPath) HTTP/1.0\r\n\r\n",
                    "GET \(client.pollPath) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                ] {
                    let socket = try RawSocket(port: server.port)
                    try socket.send(request)
                    #expect(try socket.readAnswer().status == 200)
                    #expect(socket.isClosedByPeer(within: .seconds(10)))
                }
            }
        }

        @Test(
            "a disconnect by HTTP notifies the partner",
            arguments: [
                "/socket.io/1/xhr-polling/ID?disconnect", "/socket.io/1//ID/?disconnect=1",
                "/socket.io/1/xhr-polling/ID?t=1&disconnect=True",
            ])
        func goodbyes(_ path: String) async throws {
            try await ServerProcess.run { server in
                let (ada, bob) = (try RawSocketIO(port: server.port), try RawSocketIO(port: server.port))
                for client in [ada, bob] {
                    _ = try client.hear("1::")
                    _ = try client.hear(#"5:::{"name":"initial""#)
                    try client.post(RawSocketIO.event("next"))
                }
                _ = try bob.hear(#"5:::{"name":"subscribe""#)
                let goodbye = path.replacingOccurrences(of: "ID", with: ada.id)
                #expect(try RawSocket(port: server.port).ask(goodbye).status == 200)
                #expect(try bob.hear(RawSocketIO.event("disconnectPartner")) == RawSocketIO.event("disconnectPartner"))
                #expect(try ada.poll() == "7:::1+0")
            }
        }
    }
}
