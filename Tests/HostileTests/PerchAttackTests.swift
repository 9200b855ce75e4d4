import Foundation
import Testing

extension Hostile {
    /// The calls and WebSockets of PerchRTC's protocol.
    @Suite("PerchRTC's endpoints") struct PerchAttacks {
        private static let settings = ["CONFAB_PERCH_IDENT": "ident", "CONFAB_PERCH_SECRET": "shipped-with-the-app"]
        private static let credential = "ident=ident&secret=shipped-with-the-app"

        private func call(_ port: Int, _ name: String, _ form: String) throws -> HTTPResponse {
            let type = [("Content-Type", "application/x-www-form-urlencoded")]
            return try RawSocket(port: port).ask(
                "/xirsys/\(name)", method: "POST", headers: type, body: Array(form.utf8))
        }

        private func token(_ port: Int, _ user: String, room: String = "lunch") throws -> String {
            let answer = try call(port, "getToken", "\(Self.credential)&username=\(user)&room=\(room)")
            let parts = answer.text.components(separatedBy: "\"token\":\"")
            guard parts.count == 2, let token = parts[1].components(separatedBy: "\"").first else {
                throw TimedOut("no token: \(answer)")
            }
            return token
        }

        @Test("without the settings there is no such protocol")
        func off() async throws {
            try await ServerProcess.run { server in
                #expect(try call(server.port, "getToken", Self.credential).status == 404)
                let socket = try RawSocket(port: server.port)
                try socket.send(RawWebSocket.request(path: "/xirsys/ws/x", subprotocol: nil))
                #expect(try socket.readAnswer().status == 404)
            }
        }

        @Test("a wrong credential opens nothing, and is not repeated in the answer")
        func credentials() async throws {
            try await Attack(number: 7, name: "wrong credentials", settings: Self.settings).run { server in
                var statuses = Tally()
                let forms = [
                    "", "ident=ident", "ident=ident&secret=", "ident=ident&secret=shipped-with-the-ap",
                    "ident=IDENT&secret=shipped-with-the-app", "secret=shipped-with-the-app",
                    "ident=ident&secret=%00", "ident[]=ident&secret[]=shipped-with-the-app",
                ]
                for name in ["getToken", "signal/token", "wsList", "getIceServers", "ice"] {
                    for form in forms {
                        let answer = try call(server.port, name, form + "&username=a&room=b")
                        statuses.count("\(answer.status)")
                        #expect(answer.text.hasPrefix(#"{"s":401,"d":null,"#), "\(answer)")
                        #expect(!answer.text.contains("shipped"))
                    }
                }
                return AttackOutcome(sent: "\(statuses.total) calls", cameBack: statuses.text)
            }
        }

        @Test("forms that are too large, not forms, or name nobody are refused")
        func forms() async throws {
            try await Attack(number: 7, name: "forms for PerchRTC", settings: Self.settings).run { server in
                let long = String(repeating: "x", count: 9000)
                #expect(try call(server.port, "getToken", Self.credential + "&x=\(long)").status == 413)
                let names = ["", "&username=", "&username=a%0Ab", "&username=\(long.prefix(200))", "&username=%FF"]
                for name in names {
                    let answer = try call(server.port, "getToken", Self.credential + name + "&room=lunch")
                    #expect(answer.text.hasPrefix(#"{"s":400,"#), "\(answer)")
                }
                for room in ["", "a/b", "..", "%E2%80%AE", String(long.prefix(300))] {
                    let answer = try call(server.port, "getToken", Self.credential + "&username=a&room=\(room)")
                    #expect(answer.text.hasPrefix(#"{"s":400,"#), "\(answer)")
                }
                return AttackOutcome(sent: "\(names.count + 6) forms", cameBack: "400 and 413")
            }
        }

        @Test("a token opens one WebSocket, and an invented one opens none")
        func tokens() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let token = try token(server.port, "a")
                let line = try RawWebSocket.open(port: server.port, path: "/xirsys/ws/\(token)", subprotocol: nil)
                #expect(try line.readText()?.contains("peers") == true)
                for guess in [token, "x", String(repeating: "A", count: 22), "v2", "%00"] {
                    let socket = try RawSocket(port: server.port)
                    try socket.send(RawWebSocket.request(path: "/xirsys/ws/\(guess)", subprotocol: nil))
                    #expect(try socket.readAnswer().status == 401, "\(guess)")
                }
            }
        }

        @Test("a thousand tokens and a flood of messages disturb nobody")
        func floods() async throws {
            try await Attack(number: 7, name: "PerchRTC's messages", settings: Self.settings).run { server in
                var tokens: [String] = []
                for number in 0..<500 { tokens.append(try token(server.port, "a\(number)")) }
                let line = try RawWebSocket.open(
                    port: server.port, path: "/xirsys/ws/v2/\(tokens[0])", subprotocol: nil)
                var sent = 0
                let texts = [
                    "ping", "{}", #"{"t":"u","m":{"t":"a","o":"bye"},"p":{"connectionId":"c"}}"#, "[[[[[[[[[[[[[[[[",
                ]
                // The server closes after more than ten that it cannot read.
                for _ in 0..<100 {
                    for text in texts where (try? line.send(text: text)) != nil { sent += 1 }
                }
                while try line.read() != nil {}
                #expect(line.closeCode == 4400)
                return AttackOutcome(sent: "500 tokens, \(sent) messages", cameBack: "4400")
            }
        }
    }
}
