import Foundation
import Signaling
import Testing
import Wire

extension Person {
    fileprivate static func arrive(at address: String, _ server: ServerProcess) throws -> Person {
        try arrive(port: server.port, headers: [("X-Forwarded-For", address)])
    }

    fileprivate func verdict(join name: RoomName, password: String? = nil, options: RoomChanges? = nil) throws -> String
    {
        try verdict(.room(.join(.init(name: name, displayName: "A", password: password, options: options))))
    }

    /// Reads what has arrived, up to the answer of a request that changes nothing.
    fileprivate func catchUp() throws { _ = try ask(.iceServers) }
}

extension Hostile {
    @Suite("Case 27: floods of rooms") struct RoomFloods {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_TRUSTED_PROXIES": "127.0.0.1",
        ]
        private static let name = RoomName("Stand-up")

        private static func host(_ server: ServerProcess, _ change: (inout RoomChanges) -> Void) throws -> (
            Person, RoomName
        ) {
            let name = try #require(Self.name)
            let host = try Person.arrive(at: "203.0.113.1", server)
            var options = RoomChanges()
            change(&options)
            #expect(try host.verdict(join: name, options: options) == "room.joined")
            return (host, name)
        }

        @Test("a flood of reactions and hands reaches the others only within the budget, and is cut off")
        func gestures() async throws {
            try await Attack(number: 27, name: "reactions and hands", settings: Self.settings).run { server in
                let (host, name) = try Self.host(server) { _ in }
                var (sent, reached) = (0, 0)
                for isHand in [false, true] {
                    let flooder = try Person.arrive(at: "203.0.113.9", server)
                    #expect(try flooder.verdict(join: name) == "room.joined")
                    var react = RoomVerb.React()
                    react.reaction = "🎉"
                    for number in 0..<10_000 where flooder.closeCode == nil {
                        let verb: RoomVerb = isHand ? .hand(.init(raised: number % 2 == 0)) : .react(react)
                        // The server closes in the middle.
                        do { _ = try flooder.verdict(.room(verb)) } catch { break }
                        sent += 1
                        flooder.forget()
                    }
                    #expect(try flooder.hearClose() == 4429, "after \(sent)")
                }
                try host.catchUp()
                reached = host.heard.count {
                    switch $0 {
                    case .room(.reacted): true
                    case .room(.person(let person)): person.handAt != nil
                    default: false
                    }
                }
                #expect(reached > 0 && reached < 100, "\(reached) of \(sent)")
                return AttackOutcome(sent: "\(sent) gestures", cameBack: "2 × 4429, \(reached) reached the host")
            }
        }

        @Test("a thousand knocks of one address reach the host only within the budget, and others can still knock")
        func knocks() async throws {
            try await Attack(number: 27, name: "a thousand knocks", settings: Self.settings).run { server in
                let (host, name) = try Self.host(server) { $0.lobby = true }
                var tally = Tally()
                for _ in 0..<25 {
                    let knocker = try Person.arrive(at: "203.0.113.9", server)
                    for _ in 0..<40 {
                        let verdict = try knocker.verdict(join: name)
                        tally.count(verdict)
                        if verdict == "room.waiting" { _ = try knocker.verdict(.room(.leave)) }
                    }
                    knocker.drop()
                }
                #expect(tally["room.waiting"] >= 60 && tally["room.waiting"] < 200, "\(tally.text)")
                #expect(tally["room.waiting"] + tally["rate_limited"] == 1000, "\(tally.text)")
                try host.catchUp()
                let told = host.heard.count { if case .room(.knock) = $0 { true } else { false } }
                #expect(told == 2 * tally["room.waiting"])
                let friend = try Person.arrive(at: "203.0.113.10", server)
                #expect(try friend.verdict(join: name) == "room.waiting")
                let admit = RoomVerb.admit(.init(connection: friend.welcome.connection))
                #expect(try host.verdict(.room(admit)) == "ok")
                return AttackOutcome(sent: "1000 knocks", cameBack: tally.text)
            }
        }

        @Test("passwords cannot be guessed from one address, however many connections it has")
        func passwords() async throws {
            try await Attack(number: 27, name: "guessing passwords", settings: Self.settings).run { server in
                let (_, name) = try Self.host(server) { $0.password = "open sesame" }
                var tally = Tally()
                for round in 0..<20 {
                    let guesser = try Person.arrive(at: "203.0.113.9", server)
                    for number in 0..<15 {
                        tally.count(try guesser.verdict(join: name, password: "\(round) \(number)"))
                    }
                    guesser.drop()
                }
                #expect(tally["room_password"] >= 10 && tally["room_password"] < 40, "\(tally.text)")
                #expect(tally["room_password"] + tally["rate_limited"] == 300, "\(tally.text)")
                let friend = try Person.arrive(at: "203.0.113.10", server)
                #expect(try friend.verdict(join: name, password: "open sesame") == "room.joined")
                return AttackOutcome(sent: "300 passwords", cameBack: tally.text)
            }
        }

        @Test("rooms are managed only with the API secret")
        func requests() async throws {
            try await Attack(number: 27, name: "managing rooms without the secret", settings: Self.settings).run {
                server in
                let (host, _) = try Self.host(server) { _ in }
                let forging = try await Forging(server)
                let claims = #"{"iss":"\#(forging.apiKey)","ist":"project","exp":\#(forging.now + 60)}"#
                let good = forging.token(claims)
                let wrong = [
                    nil, "", "x", forging.apiKey, forging.secret, "Bearer " + good,
                    forging.token(claims, secret: String(repeating: "0", count: 48)),
                    forging.token(claims, header: #"{"alg":"none"}"#), good + "x", String(good.dropLast()),
                    forging.token(forging.userClaims()), String(repeating: "a", count: 9_000),
                ]
                var tally = Tally()
                for token in wrong {
                    for (method, path) in [
                        ("GET", "/v1/rooms"), ("POST", "/v1/rooms"), ("GET", "/v1/rooms/Stand-up"),
                        ("PATCH", "/v1/rooms/Stand-up"), ("DELETE", "/v1/rooms/Stand-up"),
                        ("POST", "/v1/rooms/Stand-up/tokens"),
                    ] {
                        let headers = token.map { [("X-OPENTOK-AUTH", $0)] } ?? []
                        let answer = try RawSocket(port: server.port).ask(
                            path, method: method, headers: headers, body: Array("{}".utf8))
                        tally.count("\(answer.status)")
                        #expect(answer.status == 401, "\(method) \(path): \(answer)")
                        #expect(!answer.text.contains("Stand-up") && !answer.text.contains(forging.secret))
                    }
                }
                let bodies = [
                    [UInt8](repeating: 0x5B, count: 10_000), [0xFF, 0xFE], Array(#"{"name":"\#u{0}"}"#.utf8),
                    [UInt8](repeating: 0x20, count: 1 << 20), Array(#"{"options":{"capacity":1e999}}"#.utf8),
                ]
                for body in bodies {
                    let answer = try RawSocket(port: server.port).ask(
                        "/v1/rooms", method: "POST", headers: [("X-OPENTOK-AUTH", good)], body: body)
                    tally.count("\(answer.status)")
                    #expect([400, 413].contains(answer.status), "\(answer)")
                }
                let list = try RawSocket(port: server.port).ask("/v1/rooms", headers: [("X-OPENTOK-AUTH", good)])
                #expect(list.status == 200 && list.text.contains("Stand-up"))
                try host.catchUp()
                #expect(!host.heard.contains { if case .room(.ended) = $0 { true } else { false } })
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }
    }
}
