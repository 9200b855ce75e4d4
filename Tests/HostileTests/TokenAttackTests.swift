import Foundation
import Signaling
import Testing
import Wire

extension Forging {
    init(_ server: ServerProcess) async throws {
        self = try Forging(printed: try await server.command(["project", "show"]).output)
    }
}

extension ServerProcess {
    /// Returns the id of a new session, as the command prints it.
    func makeSession() async throws -> SessionID {
        let printed = try await command(["session", "create"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
        guard let session = SessionID(printed) else { throw TimedOut("no session id: \(printed)") }
        return session
    }

    /// Returns the outcome of a hello with this token on a new socket.
    func verdict(helloToken token: String) throws -> String {
        var hello = Hello()
        hello.token = token
        return try verdict(hello)
    }

    func verdict(_ hello: Hello) throws -> String {
        let person = try Person.connect(port: port)
        try person.say(.hello(hello))
        return try person.verdict()
    }

    /// Returns the outcome of an anonymous client's join with this token.
    func verdict(join session: SessionID, _ token: String) throws -> String {
        let person = try Person.arrive(port: port)
        return try person.verdict(on: person.say(.session(.join(.init(session: session, token: token)))))
    }

    /// Checks that these tokens are no longer valid.
    func expectOver(_ admissions: [Admission], _ tally: inout Tally, at place: SourceLocation = #_sourceLocation) throws
    {
        for admission in admissions {
            let verdict = try verdict(join: admission.session, admission.token)
            tally.count(verdict)
            #expect(verdict == "token_match_ended 4401", sourceLocation: place)
        }
    }
}

extension Hostile {
    @Suite("Case 9: forged tokens") struct TokenAttacks {
        /// The hello budget is large, because the tests make hundreds of attempts from one address.
        private static let settings = ["CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]

        /// Checks that every forgery is answered with one of its codes and closed with 4401.
        private func check(_ forgery: Forgery, _ verdict: String, _ tally: inout Tally) {
            tally.count(verdict)
            let expected = forgery.codes.map { "\($0) 4401" }
            #expect(expected.contains(verdict), "\(forgery.name)")
        }

        @Test("a forged session token is refused with its code and 4401, in the hello and in a join")
        func sessionTokens() async throws {
            try await Attack(number: 9, name: "forged session tokens", settings: Self.settings).run { server in
                let (forging, session) = (try await Forging(server), try await server.makeSession())
                let claims = forging.sessionClaims(session.text)
                let forgeries =
                    forging.headers(claims) + forging.signatures(claims) + forging.shapes(claims)
                    + forging.dates({ forging.sessionClaims(session.text, $0) }, longest: 30 * 86_400)
                    + forging.contents { forging.sessionClaims(session.text, $0) }
                var tally = Tally()
                for forgery in forgeries {
                    check(forgery, try server.verdict(helloToken: forgery.token), &tally)
                    check(forgery, try server.verdict(join: session, forgery.token), &tally)
                }
                for (name, token) in forging.good({ forging.sessionClaims(session.text, $0) }) {
                    #expect(try server.verdict(helloToken: token) == "welcome", "\(name)")
                    #expect(try server.verdict(join: session, token) == "joined", "\(name)")
                }
                return AttackOutcome(sent: "\(2 * forgeries.count) tokens", cameBack: tally.text)
            }
        }

        @Test("a forged user token is refused with its code and 4401")
        func userTokens() async throws {
            try await Attack(number: 9, name: "forged user tokens", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let claims = forging.userClaims()
                func changed(_ changes: [String: String?]) -> String { forging.userClaims("ada", changes) }
                func named(_ name: String, _ changes: [String: String?]) -> Forgery {
                    Forgery(name, forging.token(changed(changes)), "token_malformed")
                }
                let long = "\"" + String(repeating: "x", count: 257) + "\""
                let forgeries =
                    forging.headers(claims) + forging.signatures(claims) + forging.shapes(claims)
                    + forging.dates(changed, longest: 86_400) + [
                        named("sub missing", ["sub": nil]), named("sub empty", ["sub": "\"\""]),
                        named("sub a number", ["sub": "7"]), named("sub too long", ["sub": long]),
                        named("name too long", ["name": long]),
                        Forgery("another project", forging.token(changed(["iss": "\"45000002\""])), "token_project"),
                        Forgery("of an account", forging.token(changed(["ist": "\"account\""])), "token_scope"),
                        Forgery(
                            "two scopes", forging.token(changed(["scope": "\"user.connect session.connect\""])),
                            "token_scope"),
                    ]
                var tally = Tally()
                for forgery in forgeries { check(forgery, try server.verdict(helloToken: forgery.token), &tally) }
                for (name, token) in forging.good(changed) {
                    #expect(try server.verdict(helloToken: token) == "welcome", "\(name)")
                }
                return AttackOutcome(sent: "\(forgeries.count) tokens", cameBack: tally.text)
            }
        }

        @Test("a token is valid only for its session, scope and server")
        func elsewhere() async throws {
            try await Attack(number: 9, name: "tokens for elsewhere", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let (first, second) = (try await server.makeSession(), try await server.makeSession())
                let printed = try await server.command(["token", "create", "--session", first.text]).output
                let token = printed.trimmingCharacters(in: .whitespacesAndNewlines)
                let user = try await server.command(["token", "create", "--user", "ada"]).output
                    .trimmingCharacters(in: .whitespacesAndNewlines)
                let stranger = try #require(Project(apiKey: forging.apiKey, secret: String(forging.secret.reversed())))
                var generator = SystemRandomNumberGenerator()
                let foreign = stranger.makeSessionToken(
                    SessionTokenClaims(session: first, role: .moderator, lifetime: .seconds(60)),
                    now: Timestamp(milliseconds: forging.now * 1000), using: &generator)
                var tally = Tally()
                let wrong = [
                    (second, token, "token_session 4401"), (first, user, "token_scope 4401"),
                    (first, foreign, "token_signature 4401"),
                    (first, forging.token(forging.sessionClaims(second.text)), "token_session 4401"),
                    (first, forging.token(forging.sessionClaims(first.text + "AA")), "token_session 4401"),
                ]
                for (session, token, expected) in wrong {
                    let verdict = try server.verdict(join: session, token)
                    tally.count(verdict)
                    #expect(verdict == expected)
                }
                #expect(try server.verdict(helloToken: foreign) == "token_signature 4401")
                #expect(try server.verdict(join: first, token) == "joined")
                // A session token is no proof of identity: a client with it gets a new identity.
                let guest = try Person.arrive(port: server.port, token: token)
                #expect(guest.welcome.identity?.hasPrefix("a_") == true)
                let known = try Person.arrive(port: server.port, token: user)
                #expect(known.welcome.identity == nil)
                return AttackOutcome(sent: "\(wrong.count + 1) tokens", cameBack: tally.text)
            }
        }

        @Test("a token of one mebibyte closes the connection and does not fill the server's memory")
        func enormous() async throws {
            try await Attack(number: 9, name: "tokens of up to 1 MiB", settings: Self.settings).run { server in
                let session = try await server.makeSession()
                func text(_ size: Int) -> String { "eyJ" + String(repeating: "A", count: size - 3) }
                var tally = Tally()
                let sizes = [
                    8193: "token_malformed 4401", 60_000: "token_malformed 4401", 100_000: "message_too_large 4413",
                ]
                for (size, expected) in sizes {
                    for verdict in [
                        try server.verdict(helloToken: text(size)), try server.verdict(join: session, text(size)),
                    ] {
                        tally.count(verdict)
                        #expect(verdict == expected, "\(size) bytes")
                    }
                }
                var hello = Hello()
                hello.token = text(1 << 20)
                let enormous = RawFrame.text(Envelope(message: ClientMessage.hello(hello)).encode()).bytes
                for _ in 0..<20 {
                    let person = try Person.connect(port: server.port)
                    person.line.socket.sendWhatGoes(enormous)
                    let code = try person.hearClose()
                    tally.count("\(code)")
                    #expect(code == 1009)
                }
                return AttackOutcome(sent: "8 KiB to 20 × 1 MiB", cameBack: tally.text)
            }
        }
    }
}

extension Forging {
    /// Invalid claims of a session token, each signed with the right secret.
    func contents(_ claims: (_ changes: [String: String?]) -> String) -> [Forgery] {
        func forged(_ name: String, _ changes: [String: String?], _ code: String) -> Forgery {
            Forgery(name, token(claims(changes)), code)
        }
        let data = "\"" + String(repeating: "x", count: 1001) + "\""
        return [
            forged("another project", ["iss": "\"45000002\""], "token_project"),
            forged("a number for the project", ["iss": apiKey], "token_project"),
            forged("no project", ["iss": nil], "token_project"),
            forged("of an account", ["ist": "\"account\""], "token_scope"),
            forged("two scopes", ["scope": "\"session.connect user.connect\""], "token_scope"),
            forged("a list of scopes", ["scope": "[\"session.connect\"]"], "token_scope"),
            forged("no scope", ["scope": nil], "token_scope"),
            forged("no session", ["session_id": nil], "token_session"),
            forged("a number for a session", ["session_id": "1"], "token_session"),
            forged("a path for a session", ["session_id": "\"../../project.json\""], "token_session"),
            forged("a role nobody has", ["role": "\"admin\""], "token_role"),
            forged("a role in capitals", ["role": "\"Moderator\""], "token_role"),
            forged("a list of roles", ["role": "[\"moderator\"]"], "token_role"),
            forged("1001 characters of data", ["connection_data": data], "token_malformed"),
            forged("a match that is no id", ["match": "\"../x\""], "token_malformed"),
            forged("a match that is a number", ["match": "5"], "token_malformed"),
        ]
    }

    /// Valid tokens, because otherwise a server that refuses every token would pass the test.
    func good(_ claims: (_ changes: [String: String?]) -> String) -> [(String, String)] {
        [
            ("plain", token(claims([:]))), ("no iat", token(claims(["iat": nil]))),
            ("a fraction", token(claims(["exp": "\(now + 60).5"]))),
            ("iat of a clock that is ahead", token(claims(["iat": "\(now + 50)"]))),
            ("nbf past", token(claims(["nbf": "\(now - 60)"]))),
            ("unknown claims", token(claims(["jti": "\"x\"", "aud": "[\"a\",\"b\"]", "nested": "{\"a\":[{}]}"]))),
            // The server ignores the key's name in the header, because there is only one key.
            ("a key's name", token(claims([:]), header: #"{"kid":"../../x","alg":"HS256"}"#)),
        ]
    }
}
