import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// Attacks by pages of other sites. There are no cookies to exploit, because every client authenticates in `hello`.
    /// Other sites could only try to connect, or to read responses.
    @Suite("Case 10: foreign pages") struct OriginAttacks {
        private static let allowed = "https://chat.example.org"

        private static let foreign = [
            "https://evil.example", "http://chat.example.org", "https://chat.example.org:444",
            "https://chat.example.org.",
            "https://chat.example.org.evil.example", "https://evil.example/https://chat.example.org",
            "https://sub.chat.example.org", "https://example.org", "https://chat.example.org/",
            "https://chat.example.org https://evil.example", "https://evil.example https://chat.example.org",
            "https://chat.example.org, https://evil.example", "https://chat.example.org@evil.example",
            "https://evil.example#https://chat.example.org", "https://evil.example\\@chat.example.org", "null", "*",
            "file://",
            "chat.example.org", "//chat.example.org", "https://chat.examp1e.org", "https://chаt.example.org",
        ]

        /// Returns the outcome of a hello on a socket that was opened with these headers.
        private static func verdict(_ server: ServerProcess, _ headers: [(String, String)]) throws -> String {
            let person = try Person.connect(port: server.port, headers: headers)
            try person.say(.hello(Hello()))
            return try person.verdict()
        }

        @Test("with a list of origins, clients with another origin or without one are closed with 4403")
        func listed() async throws {
            let settings = ["CONFAB_ALLOWED_ORIGINS": "\(Self.allowed),https://second.example:8443"]
            try await ServerProcess.run(settings) { server in
                // No pair chats during this attack, because the pair would need an allowed origin.
                var tally = Tally()
                for origin in Self.foreign {
                    for cookies in [[], [("Cookie", "session=1"), ("Authorization", "Bearer x")]] {
                        let verdict = try Self.verdict(server, [("Origin", origin)] + cookies)
                        tally.count(verdict)
                        #expect(verdict == "forbidden_origin 4403", "\(origin)")
                    }
                }
                for headers in [[], [("Origin", "")], [("Referer", Self.allowed)], [("X-Origin", Self.allowed)]] {
                    let verdict = try Self.verdict(server, headers)
                    tally.count(verdict)
                    #expect(verdict == "forbidden_origin 4403", "\(headers)")
                }
                let twice = try Self.verdict(server, [("Origin", "https://evil.example"), ("Origin", Self.allowed)])
                tally.count(twice)
                #expect(twice == "forbidden_origin 4403")
                for origin in [Self.allowed, "HTTPS://Chat.Example.ORG", "https://second.example:8443"] {
                    #expect(try Self.verdict(server, [("Origin", origin)]) == "welcome", "\(origin)")
                }
                print("hostile 10 | foreign origins: \(tally.total) sockets | \(tally.text)")
                #expect(server.isRunning)
            }
        }

        /// Returns the status of a request, or of a WebSocket handshake.
        private static func status(
            _ server: ServerProcess, _ method: String, _ path: String, _ headers: [(String, String)]
        ) throws -> Int {
            let socket = try RawSocket(port: server.port)
            guard method == "upgrade" else { return try socket.ask(path, method: method, headers: headers).status }
            try socket.send(RawWebSocket.request(path: path, subprotocol: nil, headers: headers))
            return try socket.readAnswer().status
        }

        @Test("with a list of origins, Socket.IO serves no other page over any transport")
        func socketIO() async throws {
            try await ServerProcess.run(["CONFAB_ALLOWED_ORIGINS": Self.allowed]) { server in
                // A program, which sends no origin, gets the id. Pages that know it must not be able to use it.
                let id = try RawSocketIO(port: server.port).id
                let scripts = [("GET", "/socket.io/1/?jsonp=0"), ("GET", "/socket.io/1/jsonp-polling/\(id)?i=0")]
                let webSocket = ("upgrade", "/socket.io/1/websocket/\(id)")
                let all =
                    scripts + [
                        webSocket, ("GET", "/socket.io/1/"), ("GET", "/socket.io/1/xhr-polling/\(id)"),
                        ("POST", "/socket.io/1/xhr-polling/\(id)"), ("POST", "/socket.io/1/jsonp-polling/\(id)?i=0"),
                    ]
                var tally = Tally()
                for origin in Self.foreign {
                    // What a program could add, and a browser would not.
                    for more in [[], [("Referer", "\(Self.allowed)/"), ("Sec-Fetch-Site", "same-origin")]] {
                        for (method, path) in all {
                            let status = try Self.status(server, method, path, [("Origin", origin)] + more)
                            tally.count("\(status)")
                            #expect(status == 403, "\(method) \(path) from \(origin)")
                        }
                    }
                }
                #expect(try Self.status(server, "upgrade", webSocket.1, []) == 403)
                for headers in [
                    [], [("Referer", "https://evil.example/")], [("Referer", "\(Self.allowed).evil.example/")],
                    [("Referer", "https://evil.example/\(Self.allowed)")], [("Sec-Fetch-Site", "cross-site")],
                    [("Sec-Fetch-Site", "same-site")], [("Sec-Fetch-Site", "cross-site"), ("Referer", "")],
                    [("Referer", "https://evil.example/"), ("Referer", "\(Self.allowed)/")],
                ] as [[(String, String)]] {
                    for (method, path) in scripts {
                        let status = try Self.status(server, method, path, headers)
                        tally.count("\(status)")
                        #expect(status == 403, "\(path) with \(headers)")
                    }
                }
                for headers in [
                    [("Referer", "\(Self.allowed)/page?x=1")], [("Referer", Self.allowed)],
                    [("Sec-Fetch-Site", "cross-site"), ("Referer", "\(Self.allowed)/")],
                    [("Sec-Fetch-Site", "same-origin")], [("Sec-Fetch-Site", "none")], [("Origin", Self.allowed)],
                ] as [[(String, String)]] {
                    #expect(try Self.status(server, "GET", scripts[0].1, headers) == 200, "\(headers)")
                }
                #expect(try Self.status(server, "upgrade", webSocket.1, [("Origin", Self.allowed)]) == 101)
                print("hostile 10 | Socket.IO for foreign pages: \(tally.total) requests | \(tally.text)")
                #expect(server.isRunning)
            }
        }

        @Test("with a list of origins, Socket.IO 1 to 4 serve no other page over any transport")
        func engineIO() async throws {
            try await ServerProcess.run(["CONFAB_ALLOWED_ORIGINS": Self.allowed]) { server in
                // A program, which sends no origin, may poll. Pages that know its id must not be able to use it.
                let client = try RawEngineIO(port: server.port)
                try client.enter()
                let upgrade = RawEngineIO.path(4, "websocket", client.id)
                let webSockets = [("upgrade", RawEngineIO.path(3, "websocket")), ("upgrade", upgrade)]
                let polls = [
                    ("GET", RawEngineIO.path(4, "polling")), ("GET", client.path), ("POST", client.path),
                    ("GET", RawEngineIO.path(3, "polling") + "&j=0"),
                ]
                var tally = Tally()
                for (method, path) in webSockets + polls {
                    for origin in Self.foreign {
                        let status = try Self.status(server, method, path, [("Origin", origin)])
                        tally.count("\(status)")
                        #expect(status == 403, "\(method) \(path) from \(origin)")
                    }
                }
                // Browsers send an origin with each WebSocket, and send none with some polls and with scripts.
                for (method, path) in webSockets + polls.suffix(1) {
                    #expect(try Self.status(server, method, path, []) == 403, "\(method) \(path)")
                }
                #expect(try client.post("421[\"next\"]").text == "ok")
                try client.hear("431[]")
                for (method, path) in webSockets {
                    #expect(try Self.status(server, method, path, [("Origin", Self.allowed)]) == 101, "\(path)")
                }
                print("hostile 10 | Socket.IO 1 to 4 for foreign pages: \(tally.total) requests | \(tally.text)")
                #expect(server.isRunning)
            }
        }

        @Test("without a list, any origin may connect, and is anonymous until it authenticates")
        func open() async throws {
            try await Attack(number: 10, name: "any origin, cookies ignored").run { server in
                let known = try Person.arrive(port: server.port)
                let secret = try #require(known.welcome.identity)
                var tally = Tally()
                for origin in Self.foreign {
                    // A browser may send its cookies, but the server uses none.
                    let cookies = ["identity", "token", "session", "confab", "sid"].map { "\($0)=\(secret)" }
                    let headers = [
                        ("Origin", origin), ("Cookie", cookies.joined(separator: "; ")),
                        ("Authorization", "Bearer \(secret)"),
                    ]
                    let guest = try Person.arrive(port: server.port, headers: headers)
                    let identity = try #require(guest.welcome.identity)
                    #expect(identity != secret)
                    tally.count("a newcomer")
                }
                return AttackOutcome(sent: "\(Self.foreign.count) sockets with cookies", cameBack: tally.text)
            }
        }

        @Test("no response sets a cookie or allows other sites to read it with credentials", arguments: [true, false])
        func answers(isNarrowed: Bool) async throws {
            try await ServerProcess.run(isNarrowed ? ["CONFAB_ALLOWED_ORIGINS": Self.allowed] : [:]) { server in
                var tally = Tally()
                for path in [
                    "/", "/try", "/health", "/v1/socket", "/v1/qr", "/lib/index.js", "/lib/signaling/client.js",
                    "/none",
                    "/metrics",
                ] {
                    for method in ["GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE"] {
                        for origin in ["https://evil.example", Self.allowed, "null"] {
                            let socket = try RawSocket(port: server.port)
                            let answer = try socket.ask(path, method: method, headers: Self.crossSite(origin))
                            tally.count("\(answer.status)")
                            #expect(answer["Set-Cookie"] == nil && answer["Set-Cookie2"] == nil)
                            #expect(answer["Access-Control-Allow-Credentials"] == nil)
                            #expect(answer["Access-Control-Allow-Origin"] != origin)
                        }
                    }
                }
                for origin in ["https://evil.example", Self.allowed] {
                    let line = try RawWebSocket.open(port: server.port, headers: Self.crossSite(origin))
                    tally.count("\(line.answer.status)")
                    #expect(line.answer["Set-Cookie"] == nil)
                    #expect(line.answer["Access-Control-Allow-Credentials"] == nil)
                }
                print("hostile 10 | \(tally.total) requests of other sites | \(tally.text), no cookie, no credentials")
                #expect(server.isRunning)
            }
        }

        private static func crossSite(_ origin: String) -> [(String, String)] {
            [
                ("Origin", origin), ("Cookie", "session=1"), ("Access-Control-Request-Method", "DELETE"),
                ("Access-Control-Request-Headers", "authorization"), ("Authorization", "Basic YWRtaW46YWRtaW4="),
            ]
        }
    }
}
