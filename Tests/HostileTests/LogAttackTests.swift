import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// Secrets must not appear in logs, because many people read logs, and because logs are copied.
    @Suite("Case 10: secrets and logs") struct LogAttacks {
        private static let settings = ["CONFAB_LOG_LEVEL": "debug", "CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]

        @Test("no secret appears in the log at debug level, wherever a client puts it")
        func secrets() async throws {
            try await Attack(number: 10, name: "secrets everywhere", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let session = try await server.makeSession()
                let owner = try Person.arrive(port: server.port)
                let secrets = [
                    "session token": forging.token(forging.sessionClaims(session.text)),
                    "user token": forging.token(forging.userClaims()),
                    "expired token": forging.token(forging.userClaims("ada", ["exp": "1"])),
                    "identity secret": try #require(owner.welcome.identity),
                    "resume secret": owner.welcome.resume.secret, "project secret": forging.secret,
                ]
                var sent = 0
                for secret in secrets.values {
                    sent += try Self.putIntoRequests(secret, server)
                    sent += try Self.putIntoHellos(secret, server)
                    sent += try Self.putIntoMessages(secret, server, session)
                }
                try eventually("the clients are not in the log") {
                    server.log.contains("client=mark") || server.log.contains("\"client\":\"mark\"")
                }
                let log = server.log
                for (name, secret) in secrets {
                    // Half of a secret must not appear either.
                    for part in [secret.prefix(secret.count / 2), secret.suffix(secret.count / 2)] {
                        let line = log.split(separator: "\n").first { $0.contains(part) }
                        #expect(line == nil, "half of the \(name) is in the log")
                    }
                }
                return AttackOutcome(
                    sent: "\(sent) requests and messages",
                    cameBack: "\(log.split(separator: "\n").count) lines, no secret")
            }
        }

        private static func putIntoRequests(_ secret: String, _ server: ServerProcess) throws -> Int {
            let paths = [
                "/?token=\(secret)", "/v1/socket?token=\(secret)&identity=\(secret)", "/\(secret)",
                "/try#token=\(secret)",
                "/v1/socket/\(secret)", "/%2e%2e/\(secret)", "/health?api_secret=\(secret)", "//\(secret)@confab.test/",
            ]
            for path in paths {
                _ = try RawSocket(port: server.port).ask(path, headers: headers(secret))
                let socket = try RawSocket(port: server.port)
                try socket.send(RawWebSocket.request(path: path, headers: headers(secret)))
                _ = try socket.readAnswer()
            }
            let broken = [
                "\(secret)\r\n\r\n", "GET /\(secret) HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\n\(secret)\r\n\r\n",
                "\(secret.prefix(20)) / HTTP/1.1\r\nHost: \(secret)\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: \(secret)\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\nX: \(secret)\u{0}\r\n\r\n",
            ]
            for request in broken {
                let socket = try RawSocket(port: server.port)
                socket.sendWhatGoes(Array(request.utf8))
                socket.shutdownWrite()
                _ = try socket.receiveAll()
            }
            return 2 * paths.count + broken.count
        }

        private static func headers(_ secret: String) -> [(String, String)] {
            ["Authorization", "Cookie", "X-Token", "User-Agent", "Referer", "Origin", "X-Forwarded-For"].map {
                ($0, $0 == "Authorization" ? "Bearer \(secret)" : secret)
            }
        }

        private static func putIntoHellos(_ secret: String, _ server: ServerProcess) throws -> Int {
            let texts = [
                #"{"type":"hello","version":1,"client":"SECRET"}"#,
                #"{"type":"hello","version":1,"client":"my SECRET ok"}"#,
                #"{"type":"hello","version":1,"name":"SECRET"}"#, #"{"type":"hello","version":1,"token":"SECRETx"}"#,
                #"{"type":"hello","version":1,"identity":"SECRETx"}"#, #"{"type":"hello","version":"SECRET"}"#,
                #"{"type":"hello","version":1,"identity":"SECRET","token":"SECRET"}"#,
                #"{"type":"hello","version":1,"resume":{"secret":"SECRETx","received":0}}"#,
                #"{"type":"hello","version":1,"resume":"SECRET"}"#, #"{"type":"hello","version":9,"token":"SECRET"}"#,
                #"{"type":"SECRET"}"#, #"{"SECRET":1}"#, "SECRET", #""SECRET""#,
                #"{"type":"hello","version":1,"client":["SECRET"]}"#,
                #"{"type":"hello","version":1,"client":"mark"}"#,
            ]
            for text in texts {
                let line = try RawWebSocket.open(port: server.port)
                try line.send(text: text.replacing("SECRET", with: secret))
                // The error or welcome shows that the message was handled and logged.
                _ = try line.readText()
            }
            return texts.count
        }

        private static func putIntoMessages(
            _ secret: String, _ server: ServerProcess, _ session: SessionID
        ) throws -> Int {
            let texts = [
                #"{"type":"SECRET","seq":1}"#,
                #"{"type":"roulette.start","seq":1,"name":"SECRET","interests":["SECRET"]}"#,
                #"{"type":"session.join","seq":1,"sessionId":"SECRET","token":"SECRET"}"#,
                #"{"type":"session.join","seq":1,"sessionId":"SESSION","token":"SECRETx"}"#,
                #"{"type":"session.signal","seq":1,"sessionId":"SESSION","signalType":"SECRET","data":"SECRET"}"#,
                #"{"type":"roulette.report","seq":1,"reason":"SECRET"}"#,
                #"{"type":"roulette.block","seq":1,"matchId":"SECRET"}"#,
                #"{"type":"roulette.count","seq":"SECRET"}"#, #"{"type":"roulette.count","seq":99,"x":"SECRET"}"#,
                "SECRET",
            ]
            for text in texts {
                let line = try RawWebSocket.open(port: server.port)
                try line.send(text: #"{"type":"hello","version":1}"#)
                _ = try line.readText()
                try line.send(text: text.replacing("SECRET", with: secret).replacing("SESSION", with: session.text))
                _ = try line.readText()
                // The server does not log the close reason either.
                try line.send(frame: .close(4000, Array(secret.utf8.prefix(100))))
            }
            return texts.count
        }
    }
}
