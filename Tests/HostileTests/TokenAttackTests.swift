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

    /// Returns a token that the command made.
    func makeToken(_ arguments: String...) async throws -> String {
        try await command(["token", "create"] + arguments).output.trimmingCharacters(in: .newlines)
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
}

extension Hostile {
    @Suite("Case 9: forged tokens") struct TokenAttacks {
        /// The hello budget is large, because the tests make hundreds of attempts from one address.
        private static let settings = ["CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]

        @Test("a forged token, or one for elsewhere, is refused with its code and 4401, in the hello and in a join")
        func forged() async throws {
            try await Attack(number: 9, name: "forged tokens", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let (first, second) = (try await server.makeSession(), try await server.makeSession())
                let token = try await server.makeToken("--session", first.text)
                let user = try await server.makeToken("--user", "ada")
                let claims = forging.sessionClaims(first.text)
                func session(_ changes: [String: String?]) -> String {
                    forging.token(forging.sessionClaims(first.text, changes))
                }
                let forged = [
                    (forging.token(claims, header: #"{"alg":"none"}"#), "token_malformed 4401"),
                    (forging.token(claims, secret: ""), "token_signature 4401"), (token + "=", "token_malformed 4401"),
                    (session(["exp": "\(forging.now - 1)"]), "token_expired 4401"),
                    (session(["exp": "\(forging.now + 31 * 86_400)", "iat": nil]), "token_lifetime 4401"),
                    (session(["nbf": "\(forging.now + 86_400)"]), "token_not_yet 4401"),
                    (session(["iss": "\"45000002\""]), "token_project 4401"),
                    (session(["scope": nil]), "token_scope 4401"),
                ]
                var tally = Tally()
                func expect(_ expected: String, _ verdict: String) {
                    tally.count(verdict)
                    #expect(verdict == expected)
                }
                for (token, expected) in forged {
                    expect(expected, try server.verdict(helloToken: token))
                    expect(expected, try server.verdict(join: first, token))
                }
                expect("token_session 4401", try server.verdict(join: second, token))
                expect("token_scope 4401", try server.verdict(join: first, user))
                for token in [forging.token(claims), session(["iat": "\(forging.now + 50)"])] {
                    #expect(try server.verdict(helloToken: token) == "welcome")
                    #expect(try server.verdict(join: first, token) == "joined")
                }
                #expect(try server.verdict(join: first, token) == "joined")
                // A session token is no proof of identity: a client with it gets a new identity.
                let guest = try Person.arrive(port: server.port, token: token)
                #expect(guest.welcome.identity?.hasPrefix("a_") == true)
                let known = try Person.arrive(port: server.port, token: user)
                #expect(known.welcome.identity == nil)
                return AttackOutcome(sent: "\(tally.total) tokens", cameBack: tally.text)
            }
        }

        @Test("a forged T1 token, or one for elsewhere, is refused with its code and 4401")
        func forgedT1() async throws {
            try await Attack(number: 9, name: "forged T1 tokens", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let (first, second) = (try await server.makeSession(), try await server.makeSession())
                let fields = forging.t1Fields(first.text)
                func signed(_ changes: [String: String?]) -> String {
                    forging.t1(forging.t1Fields(first.text, changes))
                }
                let good = forging.t1(fields)
                // The same bytes with a field that was not signed.
                let decoded = String(
                    decoding: try #require(Data(base64Encoded: String(good.dropFirst(4)))), as: UTF8.self)
                let longer = "T1==" + Data((decoded + "&role=moderator").utf8).base64EncodedString()
                let forged = [
                    (forging.t1(fields, secret: ""), "token_signature 4401"), (longer, "token_signature 4401"),
                    (forging.t1(fields, apiKey: "45000002"), "token_project 4401"),
                    (signed(["expire_time": "\(forging.now - 1)"]), "token_expired 4401"),
                    (signed(["expire_time": "\(forging.now + 31 * 86_400)"]), "token_lifetime 4401"),
                    (signed(["create_time": "\(forging.now + 86_400)"]), "token_not_yet 4401"),
                    (signed(["create_time": "../../key"]), "token_malformed 4401"),
                    (signed(["role": "god"]), "token_role 4401"), ("T1==", "token_malformed 4401"),
                    ("T1==" + String(repeating: "A", count: 9000), "token_malformed 4401"),
                    (good.replacing("T1==", with: "t1=="), "token_malformed 4401"),
                ]
                var tally = Tally()
                for (token, expected) in forged {
                    for verdict in [
                        try server.verdict(helloToken: token), try server.verdict(join: first, token),
                    ] {
                        tally.count(verdict)
                        #expect(verdict == expected, "\(token.prefix(60))")
                    }
                }
                let elsewhere = try server.verdict(join: second, good)
                tally.count(elsewhere)
                #expect(elsewhere == "token_session 4401")
                #expect(try server.verdict(join: first, good) == "joined")
                return AttackOutcome(sent: "\(tally.total) tokens", cameBack: tally.text)
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
