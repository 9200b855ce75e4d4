import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// Floods in which each attempt uses a new socket, a new hello or a new client connection.
    @Suite("Case 11: connection floods") struct StormAttacks {
        private static let duration: Duration = .seconds(1)
        private static let threads = 4
        /// The minimum number of attempts. A slow machine continues beyond `duration` until it has made them.
        private static let fewest = 200

        /// Repeats the body on several threads for a while and counts the results.
        private static func storm(_ body: @escaping @Sendable () throws -> String) throws -> Tally {
            let (end, count) = (ContinuousClock.now + duration, Counter())
            let threads = (0..<threads).map { _ in
                Background {
                    var answers: [String] = []
                    repeat {
                        answers.append(try body())
                        count.add()
                    } while ContinuousClock.now < end || count.count < fewest
                    return answers
                }
            }
            var tally = Tally()
            for answer in try threads.flatMap({ try $0.join() }) { tally.count(answer) }
            return tally
        }

        @Test("hellos beyond an address's budget are refused, whatever they claim, and others connect")
        func hellos() async throws {
            let settings = ["CONFAB_LIMITS_HANDSHAKES_PER_SECOND": "10", "CONFAB_LIMITS_HANDSHAKE_BURST": "40"]
            try await Attack(number: 11, name: "hellos of one address", settings: settings).run { server in
                let (port, began) = (server.port, ContinuousClock.now)
                let visitors = Background {
                    // During the storm, five people connect one after another from another address.
                    try (0..<5).map { _ in try Person.arrive(port: port).welcome.connection }
                }
                let tally = try Self.storm {
                    let spoofed = "203.0.113.\(Int.random(in: 1...254))"
                    let headers = [
                        ("X-Forwarded-For", spoofed), ("Forwarded", "for=\(spoofed)"), ("X-Real-IP", spoofed),
                    ]
                    let person = try Person.connect(port: port, headers: headers, from: FloodedSession.elsewhere)
                    try person.say(.hello(Hello()))
                    let verdict = try person.verdict()
                    guard let error = person.errors.first else { return verdict }
                    return "\(verdict)\(error.retryable && error.retryAfter != nil ? "" : ", without saying when")"
                }
                let allowed = 40 + 10 * (ContinuousClock.now - began).inSeconds + 10
                #expect(tally["welcome"] + tally["rate_limited 4429"] == tally.total, "\(tally.text)")
                #expect(tally["rate_limited 4429"] > 0 && Double(tally["welcome"]) <= allowed, "\(tally.text)")
                if FloodedSession.elsewhere != nil { #expect(try visitors.join().count == 5) }
                return AttackOutcome(sent: "\(tally.total) hellos", cameBack: tally.text)
            }
        }

        @Test("resuming uses the same budget as connecting")
        func resumes() async throws {
            let settings = ["CONFAB_LIMITS_HANDSHAKES_PER_SECOND": "10", "CONFAB_LIMITS_HANDSHAKE_BURST": "40"]
            try await Attack(number: 11, name: "resumes of one address", settings: settings).run { server in
                let (port, began) = (server.port, ContinuousClock.now)
                let tally = try Self.storm {
                    let person = try Person.connect(port: port, from: FloodedSession.elsewhere)
                    var hello = Hello()
                    hello.resume = Hello.Resume(secret: "r_" + String(repeating: "A", count: 43), received: 0)
                    try person.say(.hello(hello))
                    guard case .error(let error)? = try person.next(until: .now + .seconds(10)) else {
                        return "welcome"
                    }
                    return error.error.code == .rateLimited ? "\(try person.hearClose())" : error.error.code.rawValue
                }
                let allowed = 40 + 10 * (ContinuousClock.now - began).inSeconds + 10
                #expect(tally["resume_failed"] + tally["4429"] == tally.total, "\(tally.text)")
                #expect(tally["4429"] > 0 && Double(tally["resume_failed"]) <= allowed, "\(tally.text)")
                return AttackOutcome(sent: "\(tally.total) resumes", cameBack: tally.text)
            }
        }

        @Test("open sockets are limited by address, with or without hello, and closing one frees it")
        func sockets() async throws {
            try await Attack(
                number: 11, name: "sockets of one address",
                settings: ["CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "50", "CONFAB_LIMITS_HANDSHAKE_TIMEOUT": "1m"]
            ).run { server in
                let here = FloodedSession.elsewhere
                // If the machine has only one address, two of its sockets are the pair's.
                let free = here == nil ? 48 : 50
                var tally = Tally()
                var held: [Person] = []
                for index in 0..<200 {
                    let person = try Person.connect(port: server.port, from: here)
                    guard index >= free else {
                        if index % 2 == 0 { try person.greet() }
                        held.append(person)
                        tally.count("open")
                        continue
                    }
                    let verdict = try person.verdict()
                    tally.count(verdict)
                    #expect(verdict == "too_many_connections 4429")
                    #expect(person.errors.first?.retryAfter != nil)
                }
                for person in held { person.drop() }
                try eventually("the server still counts sockets that are closed") {
                    let person = try Person.connect(port: server.port, from: here)
                    try person.say(.hello(Hello()))
                    return try person.verdict() == "welcome"
                }
                return AttackOutcome(sent: "200 sockets", cameBack: tally.text)
            }
        }

        /// The defaults, except for hellos.
        private static let budgets = [
            "CONFAB_LIMITS_REQUESTS_PER_SECOND": "20", "CONFAB_LIMITS_REQUEST_BURST": "100",
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000",
        ]

        @Test(
            "malformed messages are answered ten times, then close the connection; unknown verbs have a budget too")
        func garbage() async throws {
            try await Attack(number: 11, name: "malformed, unknown messages", settings: Self.budgets).run { server in
                let place = try await FloodedSession(server)
                let texts = [
                    "x", "{}", "[]", "{\"type\":7}", "{\"type\":\"roulette.start\"}",
                    "{\"type\":\"roulette.start\",\"mode\":1}",
                    "{\"type\":\"session.join\",\"seq\":-1}", String(repeating: "[", count: 5000), "{\"seq\":\"3\"}",
                    "\"",
                ]
                var tally = Tally()
                for text in texts {
                    let flooder = try place.attacker()
                    try flooder.flood(Array(repeating: Flooder.frame(Array(text.utf8)), count: 300), pace: 100)
                    tally.count("\(flooder.flooding.close ?? 0)")
                    #expect(flooder.flooding.close == 4400 && flooder.flooding.answers <= 14, "\(text.prefix(60))")
                }
                let unknown = try place.attacker()
                try unknown.flood(
                    (3..<800).map { Flooder.frame(Array("{\"type\":\"room.enter\",\"seq\":\($0)}".utf8)) }, pace: 100)
                tally.count("\(unknown.flooding.close ?? 0)")
                #expect(unknown.flooding.close == 4429 && unknown.flooding.refusals >= 200, "\(unknown.flooding)")
                let early = try Person.connect(port: server.port, from: FloodedSession.elsewhere)
                for _ in 0..<100 { early.line.socket.sendWhatGoes(Flooder.frame(Array("{\"type\":\"ping\"}".utf8))) }
                let verdict = try early.verdict()
                tally.count(verdict)
                #expect(verdict == "hello_expected 4400")
                return AttackOutcome(sent: "\(texts.count * 300 + 900) messages", cameBack: tally.text)
            }
        }
    }
}
