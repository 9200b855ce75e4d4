import Foundation
import Testing
import Wire

extension Hostile {
    @Suite("Case 23: names and link codes of people") struct PersonAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUEST_BURST": "1000",
            "CONFAB_TRUSTED_PROXIES": "127.0.0.1",
        ]

        /// Names to test in addition to `HostileText`: names that meet one limit but not another, and invisible names.
        private static let names = [
            String(repeating: "n", count: 40), String(repeating: "n", count: 41),
            String(repeating: "\u{1F600}", count: 40),
            String(repeating: "\u{1F600}", count: 41), "e" + String(repeating: "\u{301}", count: 5_000),
            String(repeating: " ", count: 10_000), String(repeating: "\u{202E}", count: 3_000), "\u{61C}x", "\u{2069}",
            "\u{2800}\u{3164}\u{115F}", "\u{200D}\u{200C}", "a\u{A0}\u{3000} b", "\u{E0001}", "\u{FFF9}x\u{FFFB}",
            "\u{AD}",
            String(repeating: "\u{0}", count: 10_000), String(repeating: "\u{E9}", count: 30_000),
        ]

        /// Whether a name is safe to display.
        private static func isInert(_ name: String) -> Bool {
            let directions: Set<UInt32> = [0x61C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E]
            return name.count <= 40 && name.utf8.count <= 160
                && name == name.trimmingCharacters(in: .whitespacesAndNewlines)
                && name.unicodeScalars.allSatisfy {
                    $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) && !directions.contains($0.value)
                        && !(0x2028...0x2029).contains($0.value) && !(0x2066...0x2069).contains($0.value)
                }
                && name.unicodeScalars.contains {
                    !$0.properties.isWhitespace && !$0.properties.isDefaultIgnorableCodePoint
                }
        }

        @Test(
            "a name is shown without characters that hide or reorder text, or it is refused and the old name stays")
        func names() async throws {
            try await Attack(number: 23, name: "names of people", settings: Self.settings).run { server in
                let (ann, id) = try Person.present("Ann", port: server.port)
                let (bob, bobID) = try Person.present("Bob", port: server.port)
                var tally = Tally()
                var shown = "Ann"
                for name in HostileText.short + HostileText.long + Self.names {
                    let appearance = Appearance(name: name)
                    let answer = try ann.ask(
                        .presence(tally.total.isMultiple(of: 2) ? .set(appearance) : .appear(appearance)))
                    switch answer {
                    case .presence(.own(let own)):
                        shown = own.name
                        tally.count("shown")
                    default:
                        tally.count(answer.verdict)
                        #expect(answer.verdict == "invalid_name", "\(name.debugDescription.prefix(80))")
                    }
                    #expect(Self.isInert(shown), "\(name.debugDescription.prefix(80)) became \(shown.debugDescription)")
                    guard case .presence(.person(let found)) = try bob.ask(.presence(.find(.init(person: id))))
                    else {
                        throw TimedOut("the person is not found: \(bob.errors)")
                    }
                    // Compare bytes, because Swift treats canonically equivalent strings as equal.
                    #expect(Array(found.person.name.utf8) == Array(shown.utf8))
                }
                #expect(tally["invalid_name"] > 20 && tally["shown"] > 20, "\(tally.text)")
                // A call shows the current name.
                let call = try ann.place(bobID)
                try bob.hearRing(call)
                let ring = bob.callNews.compactMap { if case .incoming(let incoming) = $0 { incoming } else { nil } }
                #expect(ring.first?.person.name == shown)
                #expect(ann.closeCode == nil)
                return AttackOutcome(sent: "\(tally.total) names", cameBack: tally.text)
            }
        }

        private static func from(_ address: String, _ server: ServerProcess) throws -> Person {
            try Person.arrive(port: server.port, headers: [("X-Forwarded-For", address)])
        }

        private static func use(_ code: String, _ label: String? = nil) -> ClientMessage {
            .presence(.useLink(.init(code: code, label: label)))
        }

        private static func newCode(_ owner: Person) throws -> String {
            guard case .presence(.linkCode(let code)) = try owner.ask(.presence(.link)) else {
                throw TimedOut("no code: \(owner.errors)")
            }
            return code.code
        }

        @Test("link codes cannot be guessed: ten attempts per minute and address, and each code works once")
        func codes() async throws {
            var random = Random(ofCase: 23)
            try await Attack(number: 23, name: "linking codes guessed", settings: Self.settings).run { server in
                let (owner, id) = try Person.present("Owner", port: server.port)
                var tally = Tally()
                let first = try Self.newCode(owner)
                let code = try Self.newCode(owner)
                let began = ContinuousClock.now
                // A whole IPv6 /64, which is one customer's network, counts as one address.
                for index in 0..<8 {
                    let guesser = try Self.from("2001:db8:1:2:\(index)::1", server)
                    for _ in 0..<10 {
                        let guess = String(
                            (0..<8).compactMap { _ in "0123456789ABCDEFGHJKMNPQRSTVWXYZ".randomElement(using: &random) }
                        )
                        tally.count(try guesser.verdict(Self.use(guess)))
                    }
                }
                let allowed = 10 + Int((ContinuousClock.now - began).inSeconds / 6) + 1
                #expect(tally["link_invalid"] >= 10 && tally["link_invalid"] <= allowed, "\(tally.text)")
                #expect(tally["link_invalid"] + tally["rate_limited"] == 80)
                // Malformed codes do not count as guesses.
                let stranger = try Self.from("198.51.100.1", server)
                let digits = String(repeating: "0", count: 10_000)
                for (code, label, expected) in [
                    (digits, nil, "malformed"), ("ABCD-EFGH", digits, "invalid_name"),
                    ("ABCD-EFGH", "\u{202E}x", "invalid_name"),
                    ("", nil, "link_invalid"), ("\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}", nil, "link_invalid"),
                    ("٠١٢٣٤٥٦٧", nil, "link_invalid"), (first, nil, "link_invalid"), ("' OR 1=1", nil, "link_invalid"),
                ] {
                    let verdict = try stranger.verdict(Self.use(code, label))
                    tally.count(verdict)
                    #expect(verdict == expected, "\(code.prefix(20).debugDescription)")
                }
                #expect(try owner.verdict(Self.use(code)) == "link_invalid", "the owner's own code")
                let device = try Self.from("198.51.100.2", server)
                let spelled = code.replacing("-", with: " ").lowercased()
                guard case .presence(.linked(let linked)) = try device.ask(Self.use(spelled, "Phone")) else {
                    throw TimedOut("not linked: \(device.errors)")
                }
                #expect(linked.person == id)
                #expect(try device.hearClose() == 4409)
                for address in ["198.51.100.1", "198.51.100.3"] {
                    let verdict = try Self.from(address, server).verdict(Self.use(code))
                    tally.count(verdict)
                    #expect(verdict == "link_invalid", "a second time")
                }
                guard case .presence(.devices(let list)) = try owner.ask(.presence(.devices)) else {
                    throw TimedOut("no devices: \(owner.errors)")
                }
                #expect(list.devices.map(\.label) == ["First device", "Phone"])
                return AttackOutcome(sent: "\(tally.total) codes from 4 networks", cameBack: tally.text)
            }
        }
    }
}
