import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// What an operator does to a running server: rotating the secret, reloading the configuration, restarting.
    @Suite("An operator at work") struct OperatorTests {
        private static let settings = [
            "CONFAB_STORAGE_POLL_INTERVAL": "20ms", "CONFAB_LIMITS_HANDSHAKE_BURST": "100000",
        ]

        private static func command(_ server: ServerProcess, _ arguments: String...) async throws -> String {
            let result = try await server.command(arguments)
            #expect(result.status == 0, "\(arguments): \(result.errors)")
            return result.output.trimmingCharacters(in: .newlines)
        }

        /// Joins, and returns `joined` or the error's code.
        private static func join(_ server: ServerProcess, _ session: String, _ token: String) throws -> String {
            let person = try Person.arrive(port: server.port)
            defer { person.drop() }
            let id = try #require(SessionID(session))
            let seq = try person.say(.session(.join(.init(session: id, token: token))))
            return try person.hear("an answer") { message -> String? in
                switch message {
                case .session(.joined): "joined"
                case .error(let failure) where failure.re == nil || failure.re == seq: failure.error.code.rawValue
                default: nil
                }
            }
        }

        private static func until(
            _ outcome: String, _ server: ServerProcess, _ session: String, _ token: String
        ) throws {
            try eventually("joining is not yet \(outcome)") { (try? join(server, session, token)) == outcome }
        }

        private static func isAnswered(_ person: Person) throws -> Bool {
            try person.ask(.roulette(.count)).type == "roulette.count"
        }

        @Test("rooms are created, listed and closed by command, and the token of a person who was removed is dead")
        func rooms() async throws {
            try await ServerProcess.run(Self.settings) { server in
                #expect(try await Self.command(server, "room", "create", "Clinic", "--lobby") == "Clinic")
                let people = try (0..<3).map { _ in try Person.arrive(port: server.port) }
                var joins: [RoomVerb.Join] = []
                for role in ["host", "guest"] {
                    var join = RoomVerb.Join()
                    join.token = try await Self.command(server, "room", "token", "clinic", "--role", role)
                    joins.append(join)
                }
                for (person, join) in zip(people, joins) {
                    #expect(try person.verdict(.room(.join(join))) == "room.joined")
                }
                let remove = RoomVerb.remove(.init(connection: people[1].welcome.connection))
                #expect(try people[0].verdict(.room(remove)) == "ok")
                #expect(try people[2].verdict(on: people[2].say(.room(.join(joins[1])))) == "token_revoked 4401")
                #expect(try await Self.command(server, "room", "list").contains("Clinic"))
                _ = try await Self.command(server, "room", "close", "Clinic")
                #expect(try await Self.command(server, "room", "list") == "No rooms.")
            }
        }

        @Test(
            "`confab project rotate` prints the new secret alone, and the running server uses it and disconnects nobody"
        )
        func rotation() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let session = try await Self.command(server, "session", "create", "--media", "relayed")
                let old = try await Self.command(server, "token", "create", "--session", session)
                let before = try await Forging(server).secret
                let ann = try Person.arrive(port: server.port)
                let identity = try #require(ann.welcome.identity)
                #expect(try Self.join(server, session, old) == "joined")

                let result = try await server.command(["project", "rotate"])
                let secret = result.output.trimmingCharacters(in: .newlines)
                #expect(result.status == 0 && secret.count == 48 && secret.allSatisfy(\.isHexDigit) && secret != before)
                #expect(result.errors.contains("accepted until") && !result.errors.contains(secret))
                #expect(try await Forging(server).secret == secret)
                let new = try await Self.command(server, "token", "create", "--session", session)
                try Self.until("joined", server, session, new)
                #expect(try Self.join(server, session, old) == "joined")

                let again = try await server.command(["project", "rotate", "--overlap", "0s"])
                #expect(again.errors.contains("now refused") && again.errors.contains("that one"))
                try Self.until("token_signature", server, session, new)
                #expect(try Self.join(server, session, old) == "token_signature")
                let last = try await Self.command(server, "token", "create", "--session", session)
                try Self.until("joined", server, session, last)
                #expect(try Self.isAnswered(ann))

                #expect(try await Self.command(server, "audit").contains("project.rotate"))
                for secret in [before, secret, again.output.trimmingCharacters(in: .newlines)] {
                    #expect(!server.log.contains(secret))
                }
                try server.restart()
                let back = try Person.arrive(port: server.port, identity: identity)
                #expect(back.welcome.identity == nil, "the identity is still valid")
                #expect(try Self.join(server, session, last) == "joined")
            }
        }

        @Test("projects are created, used, rotated and deleted by command, and their secrets are not logged")
        func projects() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let main = try await Forging(server)
                let printed = try await Self.command(
                    server, "project", "create", "--name", "Second", "--connections", "50")
                let second = try Forging(printed: printed)
                let key = second.apiKey
                #expect(key != main.apiKey && second.secret.count == 48 && second.secret != main.secret)
                let session = try await Self.command(server, "session", "create", "--project", key)
                let old = try await Self.command(server, "token", "create", "--session", session, "--project", key)
                try Self.until("joined", server, session, old)
                #expect(try Self.join(server, session, second.t1(second.t1Fields(session))) == "joined")
                #expect(try await Self.command(server, "project", "list").contains("Second"))
                #expect(try await !Self.command(server, "project", "list").contains(second.secret))

                let rotated = try await Self.command(server, "project", "rotate", key, "--overlap", "0s")
                try Self.until("token_signature", server, session, old)
                let shown = try Forging(printed: try await Self.command(server, "project", "show", key))
                #expect(shown.secret == rotated && rotated != second.secret)
                let new = try await Self.command(server, "token", "create", "--session", session, "--project", key)
                let hook = try await Self.command(
                    server, "project", "set", key, "--webhook", "https://hooks.example/x", "--connections", "4")
                #expect(!hook.contains(rotated))
                let webhookSecret = try #require(hook.split(separator: "Webhook secret: ").last).prefix(48)
                let member = try Person.arrive(port: server.port)
                let id = try #require(SessionID(session))
                #expect(try member.verdict(.session(.join(.init(session: id, token: new)))) == "session.joined")
                try Self.until("too_many_connections", server, session, new)

                _ = try await Self.command(server, "project", "delete", key)
                _ = try member.hear("the end of the session") { message -> Bool? in
                    if case .session(.left) = message { true } else { nil }
                }
                try Self.until("token_signature", server, session, new)
                #expect(try Self.isAnswered(member), "the connection stays open")
                #expect(try await Forging(server).secret == main.secret)
                let audit = try await Self.command(server, "audit")
                for action in ["create", "rotate", "set", "delete"] { #expect(audit.contains("project.\(action)")) }
                for secret in [second.secret, rotated, String(webhookSecret)] {
                    #expect(!server.log.contains(secret) && !audit.contains(secret))
                }
            }
        }

        @Test("a command for a project that cannot work is refused with a sentence and changes nothing")
        func refusedProjects() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let key = try await Forging(server).apiKey
                let before = try await Self.command(server, "project", "list")
                let cases: [([String], String)] = [
                    (["set", key], "at least one"), (["delete", key], "cannot be deleted"),
                    (["delete", "1"], "No project"), (["rotate", "1"], "No project"), (["show", "1"], "No project"),
                    (["set", "1", "--name", "x"], "No project"), (["create", "--application", "x"], "together"),
                    (["create", "--public-key", "/x"], "together"),
                    (["create", "--application", "x", "--public-key", "/x"], "Cannot read"),
                    (["create", "--webhook", "ftp://x"], "http"), (["create", "--connections=-1"], "from 1"),
                ]
                for (arguments, reason) in cases {
                    let result = try await server.command(["project"] + arguments)
                    #expect(result.status != 0 && result.errors.contains(reason), "\(arguments): \(result.errors)")
                }
                #expect(try await Self.command(server, "project", "list") == before)
            }
        }

        @Test("a rotation that cannot work is refused with a sentence and changes nothing")
        func refusedRotations() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let before = try await Forging(server).secret
                for overlap in ["31d", "-1s", "soon", "24"] {
                    let result = try await server.command(["project", "rotate", "--overlap=\(overlap)"])
                    #expect(result.status != 0 && result.errors.contains("--overlap"), "\(result.errors)")
                }
                #expect(try await Forging(server).secret == before)
            }
            let override = ["CONFAB_API_KEY": "45000001", "CONFAB_API_SECRET": String(repeating: "s", count: 32)]
            try await ServerProcess.run(override) { server in
                let result = try await server.command(["project", "rotate"])
                #expect(result.status != 0 && result.errors.contains("CONFAB_API_SECRET"), "\(result.errors)")
                #expect(!FileManager.default.fileExists(atPath: server.dataDirectory + "/project.json"))
            }
        }

        @Test("SIGHUP applies what it can and names what needs a restart, and an invalid file changes nothing")
        func reload() async throws {
            let file = NSTemporaryDirectory() + "confab-hostile-\(UUID().uuidString).yaml"
            defer { try? FileManager.default.removeItem(atPath: file) }
            func write(_ yaml: String) throws { try Data(yaml.utf8).write(to: URL(fileURLWithPath: file)) }
            try write("limits:\n  socketsPerAddress: 100\n")
            try await ServerProcess.run(flags: ["--config", file]) { server in
                let ann = try Person.arrive(port: server.port)
                try write("limits:\n  socketsPerAddress: 1\nmedia:\n  enabled: false\n")
                kill(server.processID, SIGHUP)
                try eventually("not reloaded: \(server.log)") { server.log.contains("Configuration reloaded") }
                let log = server.log
                #expect(log.contains("Setting changed after=1 before=100 setting=limits.socketsPerAddress"), "\(log)")
                #expect(log.contains("apply this setting after=false before=true setting=media.enabled"), "\(log)")
                #expect(log.contains("changed=1 needRestart=1"), "\(log)")
                let second = try Person.connect(port: server.port)
                #expect(try second.hearClose() == 4429)
                try write("limits:\n  socketsPerAddress: none\n")
                kill(server.processID, SIGHUP)
                try eventually("not refused: \(server.log)") { server.log.contains("stays in use") }
                #expect(try Self.isAnswered(ann))
            }
        }

        /// The number of clients in the restart that is timed.
        private static let clients = 200

        @Test("a restart with 200 clients, of which one does not answer, opens the port again for all of them")
        func restart() async throws {
            try await ServerProcess.run(Self.settings) { server in
                var people = try (0..<Self.clients).map { _ in try Person.arrive(port: server.port) }
                // Nobody reads from this one, so it never answers the close frame.
                let silent = people.removeLast()
                let closes = people.map { person in Background { try person.hearClose() } }
                let start = ContinuousClock.now
                try server.restart()
                let time = ContinuousClock.now - start
                for close in closes { #expect(try close.join() == 1001) }
                let back = ContinuousClock.now
                for person in people {
                    let returned = try Person.arrive(port: server.port, identity: person.welcome.identity)
                    #expect(!returned.welcome.resumed && returned.welcome.identity == nil)
                    returned.drop()
                }
                silent.drop()
                print(
                    "restart | \(Self.clients) clients, one silent | from SIGTERM to the next server's port: \(time)"
                        + " | all back after another \(ContinuousClock.now - back)")
            }
        }
    }
}
