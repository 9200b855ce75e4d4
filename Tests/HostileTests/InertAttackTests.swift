import Foundation
import Signaling
import TestSupport
import Testing
import Wire

extension Hostile {
    /// Attacks with hostile text that tries to forge log lines or to create files.
    @Suite("Case 12: logs and files") struct InertAttacks {
        /// A forged log line.
        private static let forgery = "2026-01-01T00:00:00.000Z info  confab  forged"

        private static let texts =
            HostileText.short + HostileText.long
            + [
                "x\n\(forgery)", "x\r\n\(forgery)\r\n", "x\u{2028}\(forgery)", "x\u{85}\(forgery)", "x\u{B}\(forgery)",
                forgery,
            ]

        @Test("no external text creates a log line or a control character, in text and in JSON logs")
        func log() async throws {
            let settings = ["CONFAB_LOG_LEVEL": "debug", "CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]
            try await Attack(number: 12, name: "log lines", settings: settings).run { server in
                let sent = try Self.say(port: server.port)
                let lines = try Self.judge({ server.log }) { line in
                    line.hasPrefix("Confab is ready: ") || Self.isStamped(line)
                }
                let second = try PlainServer(settings.merging(["CONFAB_LOG_FORMAT": "json"]) { $1 })
                defer { second.end() }
                _ = try Self.say(port: try second.port())
                let objects = try Self.judge({ second.log }) { line in
                    guard !line.hasPrefix("Confab is ready: ") else { return true }
                    let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                    return object?["level"] is String && object?["message"] is String
                }
                return AttackOutcome(
                    sent: "\(2 * sent) hellos and messages",
                    cameBack: "\(lines) lines and \(objects) JSON objects, none forged")
            }
        }

        /// Whether a line begins with the server's timestamp format.
        private static func isStamped(_ line: String) -> Bool {
            let shape = "0000-00-00T00:00:00.000Z "
            return line.count > shape.count
                && zip(line, shape).allSatisfy { $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1 }
        }

        /// Sends each text in every place where the server accepts text. Returns how many texts were sent.
        private static func say(port: Int) throws -> Int {
            for text in texts {
                let person = try Person.connect(
                    port: port, headers: [("User-Agent", text), ("Origin", text)].filter { isHeader($0.1) })
                var hello = Hello()
                (hello.client, hello.name) = (text, text)
                try person.say(.hello(hello))
                guard try person.verdict() == "welcome" else { continue }
                try person.say(.roulette(.start(.init(interests: [text], name: text))))
                try person.say(.roulette(.report(.init(reason: text))))
                try person.say(.session(.join(.init(session: SessionID("1_x") ?? .unset, token: text))))
                #expect(try person.hearClose() == 4401)
            }
            try greet(port: port)
            return 4 * texts.count
        }

        /// Connects one more client. Once the log contains this client, it contains all earlier ones.
        private static func greet(port: Int) throws {
            var hello = Hello()
            hello.client = "mark"
            try Person.connect(port: port).greet(hello)
        }

        /// Whether a text can be a header value, which must not contain a line feed.
        private static func isHeader(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }

        /// Waits until the log contains the last client, checks all lines, and returns their number.
        private static func judge(_ log: () -> String, isLine: (String) -> Bool) throws -> Int {
            try eventually("the last client is not in the log") { log().contains("mark") }
            let text = log()
            expectInert(text)
            // Split by bytes, because Swift treats CR LF as one character.
            let lines = text.utf8.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
            for line in lines { #expect(isLine(line), "\(line)") }
            #expect(!lines.contains { $0.hasPrefix(forgery) })
            #expect(lines.contains { $0.contains("forged") }, "the texts were not logged, so this proves nothing")
            return lines.count
        }

        @Test("no header value is taken for an address or a log line, not even from a trusted proxy")
        func headers() async throws {
            let settings = [
                "CONFAB_LOG_LEVEL": "debug", "CONFAB_LIMITS_HANDSHAKE_BURST": "100000",
                "CONFAB_TRUSTED_PROXIES": "127.0.0.1",
            ]
            try await Attack(number: 12, name: "header values", settings: settings).run { server in
                var tally = Tally()
                for text in Self.texts {
                    for name in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "User-Agent", "Origin", "Cookie"] {
                        let value = name == "Forwarded" ? "for=\"\(text)\"" : text
                        let socket = try RawSocket(port: server.port)
                        socket.sendWhatGoes(Array(RawWebSocket.request(headers: [(name, value)]).utf8))
                        let answer = try socket.readAnswer()
                        tally.count("\(answer.status)")
                        #expect([101, 400].contains(answer.status), "\(name): \(text.debugDescription)")
                        #expect(answer["Set-Cookie"] == nil)
                        guard answer.status == 101 else { continue }
                        socket.sendWhatGoes(RawFrame.text(#"{"type":"hello","version":1,"client":"forged"}"#).bytes)
                        _ = try socket.receive()
                    }
                }
                try Self.greet(port: server.port)
                let addresses = Set(
                    server.log.split(whereSeparator: \.isWhitespace).filter { $0.hasPrefix("address=") })
                #expect(addresses == ["address=127.0.0.1"])
                _ = try Self.judge({ server.log }) { $0.hasPrefix("Confab is ready: ") || Self.isStamped($0) }
                return AttackOutcome(sent: "\(tally.total) upgrades", cameBack: tally.text)
            }
        }

        @Test("no external text names a file: none is created inside or outside the data directory")
        func files() async throws {
            try await Attack(number: 12, name: "files", settings: ["CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]).run {
                server in
                let forging = try await Forging(server)
                let parent = URL(fileURLWithPath: server.dataDirectory).deletingLastPathComponent().path
                let (before, around) = (Self.listing(server.dataDirectory), Self.listing("."))
                let beside = try FileManager.default.contentsOfDirectory(atPath: parent).filter {
                    !$0.hasPrefix("command-")
                }
                let sent = try Self.say(port: server.port)
                for text in Self.texts where text.utf8.count <= 256 && !text.isEmpty {
                    var writer = JSONWriter()
                    writer.string(text)
                    let sub = String(decoding: writer.bytes, as: UTF8.self)
                    let user = forging.token(forging.userClaims("x", ["sub": sub, "name": sub]))
                    #expect(try server.verdict(helloToken: user) == "welcome", "\(text.debugDescription)")
                    let path = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
                    let answer = try RawSocket(port: server.port).ask("/\(path)")
                    // An empty file name in the path returns the first page.
                    #expect([400, 404].contains(answer.status), "\(text.debugDescription)")
                }
                #expect(Self.listing(server.dataDirectory) == before)
                // Other programs may create files here. Only files with a test text in their names matter.
                let new = Self.listing(".").subtracting(around)
                #expect(new.allSatisfy { name in !Self.texts.contains { $0.contains(name) } }, "\(new)")
                let after = try FileManager.default.contentsOfDirectory(atPath: parent).filter {
                    !$0.hasPrefix("command-")
                }
                #expect(Set(after) == Set(beside))
                return AttackOutcome(sent: "\(sent) texts", cameBack: "\(before.count) files as before")
            }
        }

        private static func listing(_ folder: String) -> Set<String> {
            Set((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        }
    }
}
