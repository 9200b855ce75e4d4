import Testing

extension Hostile {
    /// A handshake costs one request through any proxy. What counts is where the client uses the connection.
    @Suite("A Socket.IO client that changes its address") struct SocketIOAddresses {
        private static let settings = ["CONFAB_TRUSTED_PROXIES": "127.0.0.1", "CONFAB_STORAGE_POLL_INTERVAL": "20ms"]
        private static let proxy = [("X-Forwarded-For", "203.0.113.1")]
        private static let home = [("X-Forwarded-For", "203.0.113.2")]

        private static func handshake(_ server: ServerProcess, _ headers: [(String, String)]) throws -> HTTPResponse {
            try RawSocket(port: server.port).ask("/socket.io/1/", headers: headers)
        }

        private static func id(_ server: ServerProcess, _ headers: [(String, String)]) throws -> String {
            String(try handshake(server, headers).text.prefix { $0 != ":" })
        }

        private static func ban(_ server: ServerProcess) async throws {
            let result = try await server.command(["ban", "add", "203.0.113.2"])
            #expect(result.status == 0, "\(result.errors)")
            try eventually("the ban is not in force") { try handshake(server, home).status == 403 }
        }

        @Test("a banned address cannot use a connection that another address requested")
        func banned() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let id = try Self.id(server, Self.proxy)
                try await Self.ban(server)
                let upgrade = try RawSocket(port: server.port)
                try upgrade.send(
                    RawWebSocket.request(
                        path: "/socket.io/1/websocket/\(id)", subprotocol: nil, headers: Self.home))
                let answer = try upgrade.readAnswer()
                #expect(answer.status == 403 && answer.text.hasPrefix("banned: "), "\(answer)")
                #expect(upgrade.isClosedByPeer(within: .seconds(10)))
                for (method, path) in [
                    ("GET", "xhr-polling/\(id)"), ("POST", "xhr-polling/\(id)"), ("GET", "jsonp-polling/\(id)?i=0"),
                    ("POST", "jsonp-polling/\(id)?i=0"),
                ] {
                    let answer = try RawSocket(port: server.port).ask(
                        "/socket.io/1/\(path)", method: method, headers: Self.home)
                    #expect(answer.status == 403 && answer.text.hasPrefix("banned: "), "\(method) \(path): \(answer)")
                }
                let poll = try RawSocket(port: server.port).ask("/socket.io/1/xhr-polling/\(id)", headers: Self.proxy)
                #expect(poll.text == "1::", "the address that is not banned can use it")
            }
        }

        @Test("a ban ends a WebSocket at the WebSocket's address, wherever its handshake and posts come from")
        func expelled() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let id = try Self.id(server, Self.proxy)
                let line = try RawWebSocket.open(
                    port: server.port, path: "/socket.io/1/websocket/\(id)", subprotocol: nil, headers: Self.home)
                #expect(try line.readText() == "1::")
                let post = try RawSocket(port: server.port).ask(
                    "/socket.io/1/xhr-polling/\(id)", method: "POST", headers: Self.proxy, body: Array("2::".utf8))
                #expect(post.status == 200)
                try await Self.ban(server)
                var heard: [String] = []
                while let text = try line.readText() { heard.append(text) }
                #expect(heard.last == "0::", "\(heard)")
            }
        }

        @Test("a client that polls from another address takes one of the places there, and leaves its old one")
        func counted() async throws {
            let settings = Self.settings.merging(["CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "1"]) { $1 }
            try await ServerProcess.run(settings) { server in
                let id = try Self.id(server, Self.proxy)
                #expect(try Self.handshake(server, Self.proxy).status == 503)
                let poll = try RawSocket(port: server.port).ask("/socket.io/1/xhr-polling/\(id)", headers: Self.home)
                #expect(poll.text == "1::")
                #expect(try Self.handshake(server, Self.home).status == 503)
                let other = try Self.id(server, Self.proxy)
                let refused = try RawSocket(port: server.port).ask(
                    "/socket.io/1/xhr-polling/\(other)", headers: Self.home)
                #expect(refused.status == 503 && refused.text.hasPrefix("too_many_connections"), "\(refused)")
            }
        }
    }
}
