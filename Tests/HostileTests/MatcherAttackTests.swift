import Foundation
import Signaling
import Testing
import Wire

extension Person {
    /// Requests the number of waiting people. The answer also shows that the server has handled all earlier messages.
    fileprivate func waiting() throws -> Int {
        let seq = try say(.roulette(.count))
        return try hear("count") {
            if case .roulette(.count(let count)) = $0, count.re == seq { count.waiting } else { nil }
        }
    }

    /// The matches announced so far.
    fileprivate var matches: [MatchID] {
        heard.compactMap { if case .roulette(.matched(let matched)) = $0 { matched.match } else { nil } }
    }
}

extension Hostile {
    @Suite("Case 21: the matcher") struct MatcherAttacks {
        /// Settings with which only identities, addresses and blocks prevent two people from being paired.
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUESTS_PER_SECOND": "100",
            "CONFAB_LIMITS_REQUEST_BURST": "1000", "CONFAB_LIMITS_PERSON_REQUESTS_PER_SECOND": "1000",
            "CONFAB_LIMITS_PERSON_REQUEST_BURST": "10000",
            "CONFAB_ROULETTE_REMATCH_WAIT": "0s", "CONFAB_ROULETTE_SKIPS_BEFORE_WAIT": "1000",
            "CONFAB_ROULETTE_RETRY_INTERVAL": "10ms",
        ]

        @Test("tabs of one identity are never paired, even if Start is pressed in all of them at once")
        func tabs() async throws {
            try await Attack(number: 21, name: "tabs of one identity", settings: Self.settings).run { server in
                let forging = try await Forging(server)
                let token = forging.token(forging.userClaims("ada"))
                let secret = try #require(try Person.arrive(port: server.port).welcome.identity)
                var tally = Tally()
                for arrive in [
                    { try Person.arrive(port: server.port, token: token) },
                    { try Person.arrive(port: server.port, identity: secret) },
                ] {
                    let tabs = try (0..<16).map { _ in try arrive() }
                    for _ in 0..<5 {
                        for tab in tabs { try tab.say(.roulette(.start(.init()))) }
                        for tab in tabs.shuffled() { try tab.say(.roulette(.next(.init()))) }
                        // Only one tab is waiting. Stop it, and press Start in all tabs again.
                        #expect(try tabs.map { try $0.waiting() }.allSatisfy { $0 == 1 })
                        for tab in tabs { try tab.say(.roulette(.stop)) }
                        #expect(try tabs.map { try $0.waiting() }.last == 0)
                    }
                    #expect(tabs.allSatisfy { $0.matches.isEmpty })
                    for tab in tabs { for error in tab.errors { tally.count(error.code.rawValue) } }
                    for tab in tabs { try tab.say(.roulette(.start(.init()))) }
                    // One of the tabs is paired with a person who arrives now.
                    let bob = try Person.arrive(port: server.port)
                    let match = try bob.meet().match
                    #expect(try tabs.map { try $0.waiting() }.allSatisfy { $0 == 0 })
                    #expect(tabs.flatMap { $0.matches } == [match])
                    for person in tabs + [bob] { try person.say(.bye) }
                    for person in tabs + [bob] { try person.hearClose() }
                }
                #expect(tally["elsewhere"] >= 2 * 5 * 15)
                return AttackOutcome(sent: "40 tabs, 440 × Start", cameBack: tally.text + ", 2 matches with others")
            }
        }

        @Test("bots of one address fill only its places in the queue, and other people are paired")
        func bots() async throws {
            let settings = Self.settings.merging([
                "CONFAB_ROULETTE_ENTRIES_PER_ADDRESS": "10", "CONFAB_ROULETTE_INTEREST_WAIT": "1h",
                "CONFAB_TRUSTED_PROXIES": "127.0.0.1",
            ]) { $1 }
            try await Attack(number: 21, name: "bots in the queue", settings: settings).run { server in
                var (tally, all) = (Tally(), [[Person]]())
                let networks: [@Sendable (Int) -> String] = [
                    // The header starts with values from the bot, to which the proxy appends the address that it saw.
                    { "198.51.100.\($0), 203.0.113.7" },
                    // A whole IPv6 /64, which is one customer's network, counts as one address.
                    { "2001:db8:1:2:\($0)::1" },
                ]
                for network in networks {
                    all.append(try Self.fillQueue(server, from: network, &tally))
                    for _ in 0..<10 { try Self.letTwoMeet(server) }
                    // All bots in the queue are still waiting.
                    for bot in all.joined() { #expect(try bot.waiting() == tally["waits"]) }
                    #expect(all.joined().allSatisfy { $0.matches.isEmpty })
                }
                return AttackOutcome(sent: "80 bots from 2 networks", cameBack: tally.text + "; 20 pairs met")
            }
        }

        /// Starts forty bots, of which ten may wait. Each has a unique interest, so it stays in the queue.
        private static func fillQueue(
            _ server: ServerProcess, from network: (Int) -> String, _ tally: inout Tally
        ) throws -> [Person] {
            let bots = try (0..<40).map { index in
                try Person.arrive(port: server.port, headers: [("X-Forwarded-For", network(index))])
            }
            for (index, bot) in bots.enumerated() {
                try bot.say(.roulette(.start(.init(interests: [network(index)]))))
                _ = try bot.waiting()
                let full = bot.errors.filter { $0.code == .queueFull }
                tally.count(full.isEmpty ? "waits" : "queue_full")
                #expect(full.isEmpty == (index < 10))
                #expect(full.allSatisfy { $0.retryable && $0.retryAfter != nil })
            }
            // A freed place can be used again.
            try bots[0].say(.roulette(.stop))
            #expect(try bots[0].waiting() == tally["waits"] - 1)
            try bots[39].say(.roulette(.start(.init(interests: [network(39)]))))
            #expect(try bots[39].waiting() == tally["waits"])
            return bots
        }

        private static func letTwoMeet(_ server: ServerProcess) throws {
            let people = try (0..<2).map { _ in try Person.arrive(port: server.port) }
            try people[0].say(.roulette(.start(.init())))
            let met = try people[1].meet()
            #expect(try people[0].hearMatched().match == met.match)
            for person in people { try person.say(.bye) }
            for person in people { try person.hearClose() }
        }

        @Test("a blocked person is never paired again: not by Next, not in a new tab, not after kill -9")
        func blocked() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let secrets = try (0..<2).map { _ in try #require(try Person.arrive(port: server.port).welcome.identity)
                }
                var people = try secrets.map { try Person.arrive(port: server.port, identity: $0) }
                for person in people { try person.say(.roulette(.start(.init()))) }
                let first = try people.map { try $0.hearMatched().match }
                #expect(first[0] == first[1])
                // Without a block they are paired again immediately, because the settings do not keep former partners
                // apart.
                try people[0].say(.roulette(.next(.init())))
                for person in people { _ = try person.hearMatched().match }
                #expect(try people[0].hearAnswer(to: people[0].say(.roulette(.block(.init())))) == nil)
                try Self.stayApart(people)
                for _ in 0..<5 {
                    for person in people { try person.say(.bye) }
                    for person in people { try person.hearClose() }
                    people = try secrets.map { try Person.arrive(port: server.port, identity: $0) }
                    for person in people { try person.say(.roulette(.start(.init()))) }
                    try Self.stayApart(people)
                }
                server.kill()
                try server.restart()
                people = try secrets.reversed().map { try Person.arrive(port: server.port, identity: $0) }
                for person in people { try person.say(.roulette(.start(.init(mode: .text)))) }
                let attack = try UnderAttack(server, case: 21, "a blocked pair")
                try Self.stayApart(people)
                // The block concerns only these two people. Each is paired with a newcomer.
                let others = try (0..<2).map { _ in try Person.arrive(port: server.port) }
                let matches = try others.map { try $0.meet(.init(mode: .text)).match }
                #expect(try Set(people.map { try $0.hearMatched().match }) == Set(matches))
                try attack.finish(sent: "150 × Next and Start in 3 lives", cameBack: "0 matches of the two")
            }
        }

        /// Makes two waiting people press every button, and checks that they are never paired.
        private static func stayApart(_ people: [Person]) throws {
            // An answer shows that all earlier messages were handled.
            for person in people { _ = try person.waiting() }
            let before = people.map { $0.matches.count }
            for round in 0..<20 {
                for person in people { #expect(try person.waiting() == 2, "round \(round)") }
                try people[round % 2].say(.roulette(.next(.init())))
            }
            #expect(people.map { $0.matches.count } == before)
        }
    }
}
