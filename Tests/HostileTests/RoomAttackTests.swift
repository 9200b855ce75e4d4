import Foundation
import Signaling
import Testing
import Wire

extension Person {
    /// Sends a request about rooms and returns the answer's type or the error code.
    fileprivate func verdict(_ verb: RoomVerb) throws -> String { try verdict(.room(verb)) }

    fileprivate func enter(_ join: RoomVerb.Join) throws -> RoomNotice.Joined {
        let answer = try ask(.room(.join(join)))
        guard case .room(.joined(let joined)) = answer else { throw TimedOut("not let in: \(answer)") }
        return joined
    }

    fileprivate func enter(_ name: RoomName, with options: RoomChanges? = nil) throws -> RoomNotice.Joined {
        try enter(RoomVerb.Join(name: name, displayName: "Ada", options: options))
    }

    /// Reads what has arrived, up to the answer of a request that changes nothing.
    fileprivate func catchUp() throws { _ = try ask(.iceServers) }

    fileprivate func count(_ isWanted: (RoomNotice) -> Bool) -> Int {
        heard.count { if case .room(let notice) = $0 { isWanted(notice) } else { false } }
    }

    /// Connects from an address of its own, behind a trusted proxy.
    fileprivate static func arrive(at address: String, _ server: ServerProcess) throws -> Person {
        try arrive(port: server.port, headers: [("X-Forwarded-For", address)])
    }
}

extension Hostile {
    @Suite("Case 27: rooms") struct RoomAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_TRUSTED_PROXIES": "127.0.0.1",
            "CONFAB_STORAGE_POLL_INTERVAL": "20ms",
        ]
        /// For tests that send many permitted requests.
        private static let patient = settings.merging([
            "CONFAB_LIMITS_REQUESTS_PER_SECOND": "10000", "CONFAB_LIMITS_REQUEST_BURST": "10000",
            "CONFAB_ROOMS_PER_PERSON": "10000", "CONFAB_ROOMS_PER_ADDRESS": "10000",
            "CONFAB_ROOMS_EMPTY_GRACE": "10ms",
        ]) { $1 }

        private static func name(_ text: String = "Stand-up") throws -> RoomName { try #require(RoomName(text)) }

        private static func options(_ change: (inout RoomChanges) -> Void) -> RoomChanges {
            var options = RoomChanges()
            change(&options)
            return options
        }

        // MARK: Coming in

        @Test("nobody reaches a room's session without being let in")
        func uninvited() async throws {
            try await Attack(number: 27, name: "coming in uninvited", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let (host, name) = (try Person.arrive(at: "203.0.113.1", server), try Self.name())
                let joined = try host.enter(name, with: Self.options { $0.lobby = true })
                _ = try host.join(joined.admission)
                let session = joined.admission.session
                var tally = Tally()
                let claims = forging.sessionClaims(session.text)
                let tokens = [
                    (joined.admission.token, "token_identity 4401"),
                    (forging.token(claims, secret: String(repeating: "0", count: 48)), "token_signature 4401"),
                    (forging.token(forging.userClaims()), "token_scope 4401"),
                    (joined.admission.token + "x", "token_signature 4401"),
                ]
                for (token, expected) in tokens {
                    let mallory = try Person.arrive(at: "203.0.113.9", server)
                    #expect(try mallory.verdict(.join(.init(name: name, displayName: "M"))) == "room.waiting")
                    let request = SessionVerb.join(.init(session: session, token: token))
                    let verdict = try mallory.verdict(on: mallory.say(.session(request)))
                    tally.count(verdict)
                    #expect(verdict.hasSuffix("4401") && (verdict == expected || token.hasSuffix("x")), "\(expected)")
                    mallory.drop()
                }
                let mallory = try Person.arrive(at: "203.0.113.9", server)
                _ = try mallory.verdict(.join(.init(name: name, displayName: "M")))
                let signal = SessionVerb.Signal(session: session, type: "chat", data: "x")
                #expect(try mallory.verdict(.session(.signal(signal))) == "not_joined")
                try host.catchUp()
                #expect(host.count { if case .person = $0 { true } else { false } } == 0, "nobody came in")
                let others = host.heard.count { if case .session(.connectionCreated) = $0 { true } else { false } }
                #expect(others == 0)
                return AttackOutcome(sent: "\(tally.total) tokens, 1 signal", cameBack: tally.text)
            }
        }

        @Test("verbs of hosts have no effect from guests, from the lobby and from another room")
        func forgedVerbs() async throws {
            try await Attack(number: 27, name: "forged verbs of hosts", settings: Self.patient).run { server in
                let (host, name) = (try Person.arrive(port: server.port), try Self.name())
                _ = try host.enter(name)
                let guest = try Person.arrive(port: server.port)
                _ = try guest.enter(name)
                _ = try host.verdict(.set(.init(options: Self.options { $0.lobby = true })))
                let waiting = try Person.arrive(port: server.port)
                #expect(try waiting.verdict(.join(.init(name: name, displayName: "W"))) == "room.waiting")
                let other = try Person.arrive(port: server.port)
                _ = try other.enter(Self.name("lair"))
                let outside = try Person.arrive(port: server.port)
                let target = host.welcome.connection
                let verbs: [RoomVerb] = [
                    .admit(.init(connection: waiting.welcome.connection)),
                    .deny(.init(connection: waiting.welcome.connection)),
                    .mute(.init(connection: target)), .stopShare(.init(connection: target)),
                    .remove(.init(connection: target, ban: true)), .role(.init(connection: target, role: .guest)),
                    .role(.init(connection: guest.welcome.connection, role: .host)),
                ]
                var tally = Tally()
                for verb in verbs {
                    for (person, expected) in [
                        (guest, "not_permitted"), (waiting, "not_joined"), (other, "not_found"),
                        (outside, "not_joined"),
                    ] {
                        let verdict = try person.verdict(verb)
                        tally.count(verdict)
                        #expect(verdict == expected, "\(verb)")
                    }
                }
                let unlock = RoomVerb.set(.init(options: Self.options { $0.lobby = false }))
                #expect(try guest.verdict(unlock) == "not_permitted")
                #expect(try waiting.verdict(unlock) == "not_joined")
                #expect(try host.verdict(.admit(.init(connection: waiting.welcome.connection))) == "ok", "still host")
                return AttackOutcome(sent: "\(tally.total) verbs", cameBack: tally.text)
            }
        }

        @Test("one connection is in one room, also if it asks for two at once")
        func twoRooms() async throws {
            try await Attack(number: 27, name: "two rooms at once", settings: Self.patient).run { server in
                var tally = Tally()
                let person = try Person.arrive(port: server.port)
                for _ in 0..<20 {
                    let asked = try ["one", "two", "one"].map { text in
                        try person.say(.room(.join(.init(name: Self.name(text), displayName: "A"))))
                    }
                    let verdicts = try asked.map { try person.hearReply(to: $0).verdict }
                    for verdict in verdicts { tally.count(verdict) }
                    #expect(verdicts == ["room.joined", "already_joined", "already_joined"])
                    #expect(try person.verdict(.leave) == "ok")
                }
                return AttackOutcome(sent: "\(tally.total) joins", cameBack: tally.text)
            }
        }

        @Test("a token is dead after its holder was removed")
        func replay() async throws {
            try await Attack(number: 27, name: "tokens of removed people", settings: Self.settings).run { server in
                func command(_ arguments: String...) async throws -> String {
                    let result = try await server.command(arguments)
                    #expect(result.status == 0, "\(result.errors)")
                    return result.output.trimmingCharacters(in: .newlines)
                }
                #expect(try await command("room", "create", "Clinic", "--lobby") == "Clinic")
                let tokens = [
                    try await command("room", "token", "clinic", "--role", "host"),
                    try await command("room", "token", "clinic", "--display-name", "Mallory"),
                ]
                let (host, mallory) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
                var join = RoomVerb.Join()
                join.token = tokens[0]
                #expect(try host.enter(join).role == .host)
                join.token = tokens[1]
                let admission = try mallory.enter(join).admission
                #expect(try host.verdict(.remove(.init(connection: mallory.welcome.connection))) == "ok")
                var tally = Tally()
                try server.expectOver([admission], &tally)
                for _ in 0..<5 {
                    let again = try Person.arrive(port: server.port)
                    let verdict = try again.verdict(on: again.say(.room(.join(join))))
                    tally.count(verdict)
                    #expect(verdict == "token_revoked 4401")
                }
                #expect(try await command("room", "list").contains("Clinic"))
                _ = try await command("room", "close", "Clinic")
                #expect(try await command("room", "list") == "No rooms.")
                return AttackOutcome(sent: "\(tally.total) tokens", cameBack: tally.text)
            }
        }

        // MARK: Texts

        @Test("names of rooms and people are shown as they are, or refused")
        func names() async throws {
            try await Attack(number: 27, name: "names made to break rooms", settings: Self.patient).run { server in
                let texts =
                    HostileText.short + HostileText.long + [
                        "e" + String(repeating: "\u{301}", count: 5_000), String(repeating: "\u{E9}", count: 30_000),
                        String(repeating: "\u{202E}", count: 300), "%2F", "..", "a/../b", "#token=x",
                    ]
                var tally = Tally()
                for text in texts {
                    let person = try Person.arrive(port: server.port)
                    var writer = JSONWriter()
                    writer.string(text)
                    let quoted = String(decoding: writer.bytes, as: UTF8.self)
                    let asRoom = try person.verdict("room.join", members: #""name":\#(quoted),"displayName":"A""#)
                    tally.count(asRoom)
                    #expect(["room.joined", "invalid_name"].contains(asRoom), "\(text.debugDescription.prefix(80))")
                    #expect((asRoom == "room.joined") == (RoomName(text) != nil))
                    if asRoom == "room.joined" { _ = try person.verdict(.leave) }
                    let asPerson = try person.verdict("room.join", members: #""name":"x","displayName":\#(quoted)"#)
                    tally.count(asPerson)
                    #expect(["room.joined", "invalid_name"].contains(asPerson), "\(text.debugDescription.prefix(80))")
                    // Otherwise the room would be full soon.
                    if asPerson == "room.joined" { _ = try person.verdict(.leave) }
                    person.drop()
                }
                let huge = try Person.arrive(port: server.port)
                try huge.say(.room(.join(.init(name: nil, displayName: String(repeating: "x", count: 70_000)))))
                let code = try huge.hearClose()
                tally.count("\(code)")
                #expect(code == 4413)
                return AttackOutcome(sent: "\(tally.total) names", cameBack: tally.text)
            }
        }

        @Test("chat arrives unchanged, and what is no reaction is refused")
        func texts() async throws {
            try await Attack(number: 27, name: "texts made to break rooms", settings: Self.patient).run { server in
                let (ann, bob) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
                _ = try ann.enter(Self.name())
                _ = try bob.enter(Self.name())
                var tally = Tally()
                // The budget of a person allows ten messages at once.
                let texts = Array(HostileText.short.filter { !$0.isEmpty }.prefix(9))
                for text in texts + [String(repeating: "<", count: 4096)] {
                    #expect(try ann.verdict(.say(.init(text: text))) == "ok")
                    let line = try bob.hear("room.said") { if case .room(.said(let line)) = $0 { line } else { nil } }
                    #expect(Array(line.text.utf8) == Array(text.utf8))
                    tally.count("passed on")
                }
                for text in ["", "\u{0}", "a\nb", "\u{202E}", "\u{200D}", String(repeating: "e", count: 41)] {
                    var react = RoomVerb.React()
                    react.reaction = text
                    let verdict = try ann.verdict(.react(react))
                    tally.count(verdict)
                    #expect(verdict == "malformed", "\(text.debugDescription)")
                }
                #expect(try ann.verdict(.say(.init(text: String(repeating: "x", count: 4097)))) == "malformed")
                return AttackOutcome(sent: "\(tally.total) texts", cameBack: tally.text)
            }
        }
    }
}
