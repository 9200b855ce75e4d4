import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// Secrets of matches, sessions and identities that were valid before or are almost valid.
    @Suite("Case 9: replayed and altered secrets") struct KeptSecretAttacks {
        static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_CONNECTION_RESUME_GRACE": "100ms",
            "CONFAB_STORAGE_POLL_INTERVAL": "20ms",
        ]

        /// How a match can end.
        enum Ending: CaseIterable {
            case next, stop, block, bye, leave, drop, ban

            /// Whether the person who ended the match is still connected.
            var stays: Bool { self == .next || self == .stop || self == .block }
        }

        @Test("a match's token is revoked when the match ends, for every holder")
        func matchTokens() async throws {
            try await Attack(number: 9, name: "replayed match tokens", settings: Self.settings).run { server in
                let (forging, project) = (try await Forging(server), try server.project())
                var tally = Tally()
                var tokens: [Admission] = []
                for (index, ending) in Ending.allCases.enumerated() {
                    let (ann, bob, admission) = try Self.meet(
                        server, token: forging.token(forging.userClaims("u\(index)")))
                    // During the match, only its own person can use a token.
                    #expect(
                        try server.verdict(join: admission.session, admission.token) == "token_identity 4401",
                        "\(ending)")
                    try await Self.end(ending, ann, server, project.identity(ofUser: "u\(index)"))
                    let ended = try bob.hear("end") { if case .roulette(.ended(let ended)) = $0 { ended } else { nil } }
                    #expect([.partnerNext, .partnerLeft].contains(ended.reason), "\(ending)")
                    let verdict = try server.verdict(join: admission.session, admission.token)
                    tally.count(verdict)
                    #expect(verdict == "token_match_ended 4401", "\(ending)")
                    // A former member gets only an error and stays connected, because the join may have crossed the
                    // partner's Next.
                    let join = try bob.say(.session(.join(.init(session: admission.session, token: admission.token))))
                    #expect(try bob.verdict(on: join) == "token_match_ended -", "\(ending)")
                    tokens.append(admission)
                    // Leave the queue before the next two people connect.
                    for person in ending.stays ? [ann, bob] : [bob] { try Self.leave(person) }
                }
                try server.expectOver(tokens, &tally)
                return AttackOutcome(sent: "\(2 * tokens.count) tokens of ended matches", cameBack: tally.text)
            }
        }

        @Test("a match's token is invalid after the server is killed and restarted")
        func matchTokenAfterRestart() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let forging = try await Forging(server)
                let (_, _, admission) = try Self.meet(server, token: forging.token(forging.userClaims()))
                server.kill()
                try server.restart()
                let attack = try UnderAttack(server, case: 9, "match token after kill -9")
                let verdict = try server.verdict(join: admission.session, admission.token)
                #expect(verdict == "token_match_ended 4401")
                try attack.finish(sent: "1 token", cameBack: verdict)
            }
        }

        @Test("a member removed by a moderator cannot return with the same token")
        func kicked() async throws {
            try await Attack(number: 9, name: "token after a kick", settings: Self.settings).run { server in
                let (forging, session) = (try await Forging(server), try await server.makeSession())
                let token = forging.token(forging.sessionClaims(session.text))
                let moderating = forging.token(forging.sessionClaims(session.text, ["role": "\"moderator\""]))
                let moderator = try Person.arrive(port: server.port)
                _ = try moderator.join(Admission(session: session, token: moderating))
                let guest = try Person.arrive(port: server.port)
                let joined = try guest.join(Admission(session: session, token: token))
                let kick = SessionVerb.ForceDisconnect(session: session, connection: joined.connection.id)
                #expect(try moderator.hearAnswer(to: moderator.say(.session(.forceDisconnect(kick)))) == nil)
                let left = try guest.hear("left") { if case .session(.left(let left)) = $0 { left } else { nil } }
                #expect(left.reason == .forceDisconnected)
                var tally = Tally()
                for person in [guest, try Person.arrive(port: server.port)] {
                    let join = try person.say(.session(.join(.init(session: session, token: token))))
                    let verdict = try person.verdict(on: join)
                    tally.count(verdict)
                    #expect(verdict.hasPrefix("token_") && verdict.hasSuffix(" 4401"), "\(verdict)")
                }
                // Only this person was removed. Other people's tokens are still valid.
                let other = forging.token(forging.sessionClaims(session.text, ["nonce": "2"]))
                #expect(try server.verdict(join: session, other) == "joined")
                return AttackOutcome(sent: "1 token twice", cameBack: tally.text)
            }
        }

        @Test("a banned person is refused with 4403, with any of their tokens")
        func banned() async throws {
            try await Attack(number: 9, name: "tokens of somebody banned", settings: Self.settings).run { server in
                let (forging, project) = (try await Forging(server), try server.project())
                let person = try Person.arrive(port: server.port, token: forging.token(forging.userClaims("mallory")))
                _ = try await server.command(["ban", "add", "\(project.identity(ofUser: "mallory"))"])
                #expect(try person.hearClose() == 4403)
                var tally = Tally()
                for lifetime in 1...10 {
                    let another = forging.token(
                        forging.userClaims("mallory", ["exp": "\(forging.now + 60 * Int64(lifetime))"]))
                    let verdict = try server.verdict(helloToken: another)
                    tally.count(verdict)
                    #expect(verdict == "banned 4403")
                }
                #expect(try server.verdict(helloToken: forging.token(forging.userClaims("malory"))) == "welcome")
                return AttackOutcome(sent: "10 tokens of one user", cameBack: tally.text)
            }
        }

        @Test("an anonymous identity's secret with any changed character is invalid")
        func identities() async throws {
            try await Attack(number: 9, name: "altered identity secrets", settings: Self.settings).run { server in
                let project = try server.project()
                let (ann, bob) = (try Self.newSecret(server), try Self.newSecret(server))
                let stranger = try #require(Project(apiKey: "45000001", secret: String(repeating: "s", count: 48)))
                var generator = SystemRandomNumberGenerator()
                let foreign = stranger.secret(of: IdentityID.random(using: &generator))
                var altered = Self.altered(ann)
                // Combine one person's identity with another person's proof.
                altered.append(String(ann.prefix(23) + bob.dropFirst(23)))
                altered += ["A", "r", ""].map { "\($0)_\(ann.dropFirst(2))" }
                altered += [
                    ann.uppercased(), foreign, ann + ann, "", "a_", "null", "\(project.identity(ofUser: "ada"))",
                ]
                altered += [43, 60_000].map { "a_" + String(repeating: "A", count: $0) }
                altered.removeAll { $0 == ann }
                var tally = Tally()
                for secret in altered {
                    var hello = Hello()
                    hello.identity = secret
                    let verdict = try server.verdict(hello)
                    tally.count(verdict)
                    #expect(["token_signature 4401", "token_malformed 4401"].contains(verdict), "\(secret.prefix(60))")
                }
                let back = try Person.arrive(port: server.port, identity: ann)
                #expect(back.welcome.identity == nil)
                return AttackOutcome(sent: "\(altered.count) secrets", cameBack: tally.text)
            }
        }

        // MARK: Shared helpers

        /// Matches two people, and returns them and the first person's admission. The first person has a user token.
        static func meet(_ server: ServerProcess, token: String) throws -> (Person, Person, Admission) {
            let ann = try Person.arrive(port: server.port, token: token)
            let bob = try Person.arrive(port: server.port)
            try ann.say(.roulette(.start(.init())))
            try bob.say(.roulette(.start(.init())))
            let matches = try [ann, bob].map { try $0.hearMatched() }
            #expect(matches[0].match == matches[1].match)
            for (person, matched) in zip([ann, bob], matches) { _ = try person.join(matched.publish) }
            return (ann, bob, matches[0].publish)
        }

        private static func end(
            _ ending: Ending, _ person: Person, _ server: ServerProcess, _ identity: IdentityID
        ) async throws {
            switch ending {
            case .next: try person.say(.roulette(.next(.init())))
            case .stop: try person.say(.roulette(.stop))
            case .block: try person.say(.roulette(.block(.init())))
            case .bye: try person.say(.bye)
            case .leave: try person.close()
            case .drop: person.drop()
            case .ban: _ = try await server.command(["ban", "add", "\(identity)"])
            }
        }

        private static func leave(_ person: Person) throws {
            try person.say(.bye)
            #expect(try person.hearClose() == 1000)
        }

        static func newSecret(_ server: ServerProcess) throws -> String {
            try #require(try Person.arrive(port: server.port).welcome.identity)
        }

        /// Returns the secret with each character changed in turn, and truncated, extended and differently encoded
        /// secrets.
        static func altered(_ secret: String) -> [String] {
            let characters = Array(secret)
            let changed = characters.indices.map { index in
                var copy = characters
                copy[index] = copy[index] == "B" ? "C" : "B"
                return String(copy)
            }
            return changed + [
                String(secret.dropLast()), secret + "A", secret + "=", secret + "\u{0}", " " + secret, secret + "\n",
            ]
        }
    }
}
