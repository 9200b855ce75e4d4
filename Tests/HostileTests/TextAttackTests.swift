import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// Attacks with text that a member sends to the other members, or that a report stores for the operator.
    @Suite("Case 12: signals, streams and reports") struct TextAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUESTS_PER_SECOND": "1000",
            "CONFAB_LIMITS_REQUEST_BURST": "10000",
        ]

        private static func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }

        @Test("a signal is relayed unchanged or refused with a code")
        func signals() async throws {
            try await Attack(number: 12, name: "signals", settings: Self.settings).run { server in
                let (ann, bob, session) = try await Self.together(server)
                var tally = Tally()
                let texts =
                    HostileText.short + [String(repeating: "<", count: 8192), String(repeating: "\u{0}", count: 8192)]
                for text in texts {
                    #expect(
                        try ann.hearAnswer(
                            to: ann.say(.session(.signal(.init(session: session, type: "chat", data: text)))))
                            == nil)
                    let heard = try bob.hear("signal") {
                        if case .session(.signal(let signal)) = $0 { signal } else { nil }
                    }
                    #expect(Self.bytes(heard.data) == Self.bytes(text) && heard.type == "chat")
                    tally.count("passed on")
                }
                for type in HostileText.short + HostileText.long {
                    let isPlain = type.utf8.count <= 128 && type.utf8.allSatisfy { Self.typeBytes.contains($0) }
                    let answer = try ann.hearAnswer(
                        to: ann.say(.session(.signal(.init(session: session, type: type, data: "x")))))
                    tally.count(answer?.code.rawValue ?? "passed on")
                    #expect(answer?.code == (isPlain ? nil : .signalInvalid), "\(type.debugDescription)")
                    guard isPlain else { continue }
                    let heard = try bob.hear("signal") {
                        if case .session(.signal(let signal)) = $0 { signal } else { nil }
                    }
                    #expect(heard.type == type && heard.data == "x")
                }
                let long = SessionVerb.Signal(session: session, type: "chat", data: String(repeating: "x", count: 8193))
                #expect(try ann.hearAnswer(to: ann.say(.session(.signal(long))))?.code == .signalTooLarge)
                return AttackOutcome(sent: "\(tally.total) signals", cameBack: tally.text)
            }
        }

        private static let typeBytes = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~".utf8)

        @Test("stream names and connection data are relayed unchanged or refused with a code")
        func streams() async throws {
            try await Attack(number: 12, name: "streams, connection data", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let (ann, bob, session) = try await Self.together(server)
                var tally = Tally()
                for text in HostileText.short {
                    #expect(try Self.bytes(Self.streamName(text, ann, bob, session)) == Self.bytes(text))
                    tally.count("passed on")
                    let data = Self.json(text)
                    let token = forging.token(forging.sessionClaims(session.text, ["connection_data": data]))
                    let cat = try Person.arrive(port: server.port)
                    let joined = try cat.join(Admission(session: session, token: token))
                    let told = try bob.hear("connection") {
                        if case .session(.connectionCreated(let told)) = $0 { told.connection } else { nil }
                    }
                    #expect(Self.bytes(joined.connection.data) == Self.bytes(text))
                    #expect(Self.bytes(told.data) == Self.bytes(text))
                    try cat.line.close()
                    tally.count("passed on")
                }
                for name in HostileText.long {
                    var publish = SessionVerb.Publish()
                    (publish.session, publish.name) = (session, name)
                    let answer = try ann.hearAnswer(to: ann.say(.session(.publish(publish))))
                    tally.count(answer?.code.rawValue ?? "ok")
                    #expect(answer?.code == .malformed)
                }
                return AttackOutcome(sent: "\(tally.total) texts", cameBack: tally.text)
            }
        }

        private static func json(_ text: String) -> String {
            var writer = JSONWriter()
            writer.string(text)
            return String(decoding: writer.bytes, as: UTF8.self)
        }

        /// Makes the first person publish and unpublish a stream with that name, and returns the name that the second
        /// person received.
        private static func streamName(
            _ name: String, _ first: Person, _ second: Person, _ session: SessionID
        ) throws -> String {
            var publish = SessionVerb.Publish()
            (publish.session, publish.name) = (session, name)
            let seq = try first.say(.session(.publish(publish)))
            let own = try first.hear("published") { message -> StreamID? in
                if case .session(.published(let own)) = message, own.re == seq { own.stream.id } else { nil }
            }
            let seen = try second.hear("stream") {
                if case .session(.streamCreated(let seen)) = $0 { seen.stream } else { nil }
            }
            #expect(seen.id == own)
            var gone = SessionVerb.StreamReference()
            (gone.session, gone.stream) = (session, own)
            #expect(try first.hearAnswer(to: first.say(.session(.unpublish(gone)))) == nil)
            return seen.name
        }

        @Test("a report's text cannot control the operator's terminal or forge a row of the list")
        func reports() async throws {
            try await Attack(number: 12, name: "reports with hostile text", settings: Self.settings).run { server in
                let texts = HostileText.short.filter { !$0.isEmpty }
                // The first reports also contain chat messages. Together, these messages are all texts, twenty per
                // report.
                let chats = stride(from: 0, to: texts.count, by: 20).map {
                    Array(texts[$0..<min($0 + 20, texts.count)])
                }
                for (index, text) in texts.enumerated() {
                    try Self.report(text, chat: index < chats.count ? chats[index] : [], server)
                }
                let list = try await server.command(["report", "list"])
                #expect(list.status == 0)
                let lines = list.output.split(separator: "\n")
                #expect(lines.count == texts.count)
                #expect(lines.allSatisfy { $0.contains("  against ") && $0.first?.isNumber == true })
                expectInert(list.output)
                for (index, chat) in chats.enumerated() {
                    let shown = try await server.command(["report", "show", "\(index + 1)"]).output
                    // Besides the chat, a report has six lines: heading, both identities, match, reason, and what to
                    // do.
                    #expect(shown.split(separator: "\n").count == 6 + chat.count, "\(shown)")
                    expectInert(shown)
                }
                return AttackOutcome(
                    sent: "\(texts.count) reports", cameBack: "\(lines.count) lines of the list, all inert")
            }
        }

        /// Pairs two people. One has the text as its name and sends the chat messages. The other reports it with the
        /// text as the reason.
        private static func report(_ text: String, chat: [String], _ server: ServerProcess) throws {
            let (ann, bob) = (try Person.arrive(port: server.port, name: text), try Person.arrive(port: server.port))
            try ann.say(.roulette(.start(.init())))
            let second = try bob.meet()
            let first = try ann.hear("match") { if case .roulette(.matched(let matched)) = $0 { matched } else { nil } }
            let session = try ann.join(first.publish).session
            _ = try bob.join(second.publish)
            for line in chat {
                #expect(
                    try ann.hearAnswer(
                        to: ann.say(.session(.signal(.init(session: session, type: "chat", data: line))))) == nil)
            }
            #expect(try bob.hearAnswer(to: bob.say(.roulette(.report(.init(reason: text))))) == nil)
            for person in [ann, bob] { try person.say(.bye) }
            for person in [ann, bob] { try person.hearClose() }
        }

        /// Returns two people in an ordinary session, after both have been notified of each other.
        private static func together(_ server: ServerProcess) async throws -> (Person, Person, SessionID) {
            let (forging, session) = (try await Forging(server), try await server.makeSession())
            let admission = Admission(session: session, token: forging.token(forging.sessionClaims(session.text)))
            let (ann, bob) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
            _ = try bob.join(admission)
            _ = try ann.join(admission)
            _ = try bob.hear("the other") { if case .session(.connectionCreated) = $0 { true } else { nil } }
            return (ann, bob, session)
        }
    }
}

/// Checks that a text has only printable characters and line feeds: no control or invisible characters and no
/// separators.
func expectInert(_ text: String) {
    let active = text.unicodeScalars.filter { scalar in
        switch scalar.properties.generalCategory {
        case .control: scalar != "\n"
        case .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
    #expect(active.isEmpty, "\(active.map { String($0.value, radix: 16) })")
}
