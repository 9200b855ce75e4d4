import Foundation
import Signaling
import TestSupport
import Testing
import Wire

extension Hostile {
    /// Attacks with text that a report stores for the operator.
    @Suite("Case 12: reports") struct TextAttacks {
        private static let settings = ["CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]

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
