import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// Secrets of banned people, and secrets that are almost valid.
    @Suite("Case 9: altered secrets") struct KeptSecretAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_STORAGE_POLL_INTERVAL": "20ms",
        ]

        @Test("a banned person is refused with 4403, with any of their tokens")
        func banned() async throws {
            try await Attack(number: 9, name: "tokens of a banned person", settings: Self.settings).run { server in
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

        private static func newSecret(_ server: ServerProcess) throws -> String {
            try #require(try Person.arrive(port: server.port).welcome.identity)
        }

        /// Returns the secret with each character changed in turn, and truncated, extended and differently encoded
        /// secrets.
        private static func altered(_ secret: String) -> [String] {
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
