import Foundation
import Signaling
import Testing
import Wire

/// Texts that the server, a terminal, a browser or a database could misinterpret.
enum HostileText {
    /// Texts of at most 256 bytes. The server may relay them, but only unchanged.
    static let short = [
        "../../../../etc/passwd", "..\\..\\project.json", "/etc/passwd", "C:\\nul", "a/b\u{0}.txt", "\u{0}", "con", ".",
        "",
        "\u{202E}gnp.exe", "\u{2066}right\u{2069}", "\u{200F}\u{200E}", "А\u{200B}dmin", "Аdmіn", "ａｄｍｉｎ", "\u{FEFF}x",
        "a\r\nSet-Cookie: x=1", "a\nb", "\u{85}\u{2028}\u{2029}", "\u{1B}[2J\u{1B}[31mred\u{1B}]0;title\u{7}",
        "\u{8}\u{8}\u{7F}",
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "javascript:alert(1)", "</textarea><!--",
        "&lt;b&gt;",
        "' OR 1=1; DROP TABLE reports; --", "${jndi:ldap://127.0.0.1/x}", "{{7*7}}", "%s%n%x", "$(reboot)`reboot`",
        "--help",
        "*3\r\n$3\r\nSET\r\n", "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
        "e" + String(repeating: "\u{301}", count: 100),
        "\u{10FFFF}\u{FFFE}\u{FFFF}\u{E000}", "\\u0000\\n\\", "null", "undefined", "__proto__", "constructor", "\"",
        "\u{FFFD}",
        String(repeating: "n", count: 256), String(repeating: "\u{1F600}", count: 64),
    ]

    /// Texts longer than every limit for names and ids.
    static let long = [
        String(repeating: "n", count: 257), String(repeating: "n", count: 10_000),
        String(repeating: "\u{1F600}", count: 65),
        String(repeating: "../", count: 3_000),
    ]

    /// JSON string contents that two parsers could read differently, and the expected result.
    static let escapes = [
        (#"\ud800"#, "\u{FFFD}"), (#"\udc00"#, "\u{FFFD}"), (#"a\ud83dz"#, "a\u{FFFD}z"),
        (#"\ud83d\ud83d\ude00"#, "\u{FFFD}\u{1F600}"),
        (#"\ude00\ud83d"#, "\u{FFFD}\u{FFFD}"), (#"\ud83d\u0041"#, "\u{FFFD}A"), (#"\ud83d\n"#, "\u{FFFD}\n"),
        (#"\u0000"#, "\u{0}"), (#"\u202e"#, "\u{202E}"), (#"\/\"\\"#, "/\"\\"), (#"\ud83d\ude00"#, "\u{1F600}"),
    ]

    /// Invalid JSON.
    static let broken = [
        "\u{0}", "\n", "\r", "\t", "\u{1B}", "\u{1F}", #"\x41"#, #"\u12"#, #"\u{41}"#, #"\ud83d\u"#, #"\"#, #"\u٠٠٤١"#,
    ]
}

extension Hostile {
    @Suite("Case 12: names and other text") struct NameAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_ROULETTE_INTEREST_WAIT": "0s",
            "CONFAB_ROULETTE_MAX_INTERESTS": "60",
        ]

        /// Compares bytes, because Swift treats canonically equivalent strings as equal.
        private static func isSame(_ left: String?, _ right: String?) -> Bool {
            left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
        }

        @Test("the partner receives the exact name, or the sender gets an error code")
        func names() async throws {
            try await Attack(number: 12, name: "names", settings: Self.settings).run { server in
                var tally = Tally()
                for name in HostileText.short {
                    // Both people send the name, one in `hello` and the other in `roulette.start`.
                    let ann = try Person.arrive(port: server.port, name: name)
                    let bob = try Person.arrive(port: server.port)
                    try ann.say(.roulette(.start(.init())))
                    let (told, heard) = (try bob.meet(.init(name: name)), try ann.hearMatched())
                    for partner in [told.partner, heard.partner] {
                        #expect(Self.isSame(partner.name, name), "\(name.debugDescription)")
                        tally.count("passed on")
                    }
                    for person in [ann, bob] { try person.line.close() }
                    for person in [ann, bob] { try person.hearClose() }
                }
                for name in HostileText.long {
                    var hello = Hello()
                    hello.name = name
                    let verdict = try server.verdict(hello)
                    tally.count(verdict)
                    #expect(verdict == "malformed 4400", "\(name.utf8.count) bytes")
                    let person = try Person.arrive(port: server.port)
                    let answer = try person.hearAnswer(to: person.say(.roulette(.start(.init(name: name)))))
                    tally.count(answer?.code.rawValue ?? "ok")
                    #expect(answer?.code == .malformed)
                }
                return AttackOutcome(sent: "\(tally.total) names", cameBack: tally.text)
            }
        }

        @Test("escapes are unambiguous: half a character is replaced, and invalid JSON is malformed")
        func escapes() async throws {
            try await Attack(number: 12, name: "escapes and raw control characters", settings: Self.settings).run {
                server in
                var tally = Tally()
                for (escaped, plain) in HostileText.escapes {
                    let bob = try Person.arrive(port: server.port)
                    let ann = try Person.connect(port: server.port)
                    try ann.line.send(text: #"{"type":"hello","version":1,"name":"\#(escaped)"}"#)
                    try ann.hear("welcome") { if case .welcome = $0 { () } else { nil } }
                    try ann.say(.roulette(.start(.init())))
                    let matched = try bob.meet()
                    #expect(Self.isSame(matched.partner.name, plain), "\(escaped)")
                    tally.count("passed on")
                    for person in [ann, bob] { try person.line.close() }
                    for person in [ann, bob] { try person.hearClose() }
                }
                for text in HostileText.broken {
                    let ann = try Person.connect(port: server.port)
                    try ann.line.send(text: #"{"type":"hello","version":1,"name":"\#(text)"}"#)
                    let verdict = try ann.verdict()
                    tally.count(verdict)
                    #expect(verdict == "malformed 4400", "\(text.debugDescription)")
                }
                for bytes: [UInt8] in [
                    [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xE2, 0x82],
                ] {
                    let line = try RawWebSocket.open(port: server.port)
                    let head = Array(#"{"type":"hello","version":1,"name":""#.utf8)
                    try line.send(text: head + bytes + Array(#""}"#.utf8))
                    let code = try line.readClose()
                    tally.count("\(code)")
                    #expect(code == 1007, "\(bytes)")
                }
                return AttackOutcome(sent: "\(tally.total) hellos", cameBack: tally.text)
            }
        }

        @Test("interests are compared only as text; interests that are too long or too many are refused")
        func interests() async throws {
            try await Attack(number: 12, name: "interests", settings: Self.settings).run { server in
                var tally = Tally()
                let texts = HostileText.short.filter { $0.count <= 50 }
                let (ann, bob) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
                try ann.say(.roulette(.start(.init(interests: texts))))
                let shared = try bob.meet(.init(interests: texts.reversed())).partner.interests ?? []
                tally.count("\(shared.count) shared")
                // The shared interests are exactly the sent ones, trimmed and in lower case, as the protocol requires.
                let expected = Set(
                    texts.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased() })
                #expect(Set(shared) == expected.subtracting([""]))
                let person = try Person.arrive(port: server.port)
                let refused: [([String], WireError.Code)] = [
                    ([String(repeating: "x", count: 51)], .invalidInterests),
                    ((0..<61).map { "i\($0)" }, .invalidInterests),
                    ([String(repeating: "x", count: 257)], .malformed), ((0..<65).map { "i\($0)" }, .malformed),
                    ([String(repeating: "x", count: 10_000)], .malformed),
                ]
                for (interests, code) in refused {
                    let answer = try person.hearAnswer(to: person.say(.roulette(.start(.init(interests: interests)))))
                    tally.count(answer?.code.rawValue ?? "ok")
                    #expect(answer?.code == code)
                }
                // An interest of fifty characters and 256 bytes. In lower case it is longer, so the partner's client
                // would reject it.
                let growing = String(repeating: "İ", count: 50) + String(repeating: "\u{301}", count: 78)
                let grown = try person.hearAnswer(
                    to: person.say(.roulette(.start(.init(mode: .text, interests: [growing])))))
                #expect(grown?.code == .invalidInterests)
                return AttackOutcome(sent: "\(texts.count) interests, \(refused.count) too many", cameBack: tally.text)
            }
        }

        @Test("only valid ids reach a session, a stream, a connection or a match")
        func ids() async throws {
            try await Attack(number: 12, name: "ids", settings: Self.settings).run { server in
                let session = try await server.makeSession()
                var tally = Tally()
                let texts =
                    HostileText.short + HostileText.long + [
                        session.text + "=", session.text + " ", " " + session.text, session.text.uppercased(),
                        session.text + "\u{0}",
                        String(session.text.dropLast()), "2" + session.text.dropFirst(),
                        String(repeating: "A", count: 255),
                        String(repeating: "A", count: 256), String(repeating: "0", count: 33),
                        String(repeating: "g", count: 32),
                        String(repeating: "٠", count: 32),
                    ]
                for text in texts {
                    let person = try Person.arrive(port: server.port)
                    var writer = JSONWriter()
                    writer.string(text)
                    let json = String(decoding: writer.bytes, as: UTF8.self)
                    for (index, message) in Self.messages(json, session).enumerated() {
                        try person.line.send(text: #"{"seq":\#(index + 1),"# + message.dropFirst())
                        let error = try #require(try person.hearAnswer(to: UInt64(index + 1)), "\(message)")
                        tally.count(error.code.rawValue)
                        #expect(Self.refusals.contains(error.code), "\(message)")
                    }
                    #expect(person.closeCode == nil)
                }
                return AttackOutcome(sent: "\(tally.total) ids", cameBack: tally.text)
            }
        }

        private static let refusals: Set<WireError.Code> = [.malformed, .sessionInvalid, .notJoined]

        private static func messages(_ id: String, _ session: SessionID) -> [String] {
            [
                #"{"type":"session.leave","sessionId":\#(id)}"#,
                #"{"type":"session.signal","sessionId":\#(id),"data":"x"}"#,
                #"{"type":"session.signal","sessionId":"\#(session)","to":\#(id)}"#,
                #"{"type":"session.unpublish","sessionId":"\#(session)","streamId":\#(id)}"#,
                #"{"type":"session.forceDisconnect","sessionId":"\#(session)","connectionId":\#(id)}"#,
                #"{"type":"roulette.block","matchId":\#(id)}"#,
            ]
        }
    }
}
