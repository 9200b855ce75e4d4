import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    /// The attackers have an address of their own. On systems where that is not possible, they share the pair's address, and the
    /// tests are skipped.
    @Suite("Case 26: budgets of an address", .enabled(if: FloodedSession.elsewhere != nil))
    struct AddressBudgetAttacks {
        private static let attackers = "127.0.0.9"
        /// So that only the address's budgets limit the attackers.
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUESTS_PER_SECOND": "1000000",
            "CONFAB_LIMITS_REQUEST_BURST": "1000000", "CONFAB_LIMITS_PERSON_REQUESTS_PER_SECOND": "1000000",
            "CONFAB_LIMITS_PERSON_REQUEST_BURST": "1000000",
        ]

        // MARK: Messages

        @Test("a flood from connections of one address is read slowly, then closed with 4429; others there are served")
        func messages() async throws {
            let (rate, burst, connections) = (500, 2000, 6)
            let settings = [
                "CONFAB_LIMITS_ADDRESS_MESSAGES_PER_SECOND": "\(rate)",
                "CONFAB_LIMITS_ADDRESS_MESSAGE_BURST": "\(burst)",
            ].merging(Self.settings) { $1 }
            try await Attack(number: 26, name: "messages of an address", settings: settings).run { server in
                let port = server.port
                let neighbor = try Person.arrive(port: port, from: Self.attackers)
                let began = ContinuousClock.now
                let frames = Flooder.frames([.roulette(.count)], numbers: 1...5000)
                let floods = (0..<connections).map { _ in
                    Background {
                        let flooder = Flooder(try RawWebSocket.openWelcomed(port: port, from: Self.attackers))
                        try flooder.flood(frames, pace: 500)
                        return flooder.flooding
                    }
                }
                var served = 0
                while floods.contains(where: { !$0.isFinished }) {
                    guard case .roulette(.count) = try neighbor.ask(.roulette(.count)) else {
                        throw TimedOut("the neighbor is refused: \(neighbor.errors)")
                    }
                    served += 1
                }
                let floodings = try floods.map { try $0.join(within: .seconds(120)) }
                let elapsed = (ContinuousClock.now - began).inSeconds
                #expect(floodings.allSatisfy { $0.close == 4429 }, "\(floodings.map(\.close))")
                #expect(served > 0 && neighbor.closeCode == nil)
                let answers = floodings.reduce(0) { $0 + $1.answers }
                // Each connection may read once more than the budget allows, and is closed after 200 messages in debt.
                let most = burst + Int(elapsed * Double(rate)) + connections * 700
                #expect(answers <= most, "\(answers) answers in \(elapsed) s")
                #expect(answers < connections * 5000 / 2)
                return AttackOutcome(
                    sent: "\(connections) × 5000 messages", cameBack: "4429 ×\(connections) after \(answers) answers")
            }
        }

        @Test("requests over HTTP count too: 429 with Retry-After, for WHIP and for Socket.IO")
        func requests() async throws {
            let settings = [
                "CONFAB_LIMITS_ADDRESS_MESSAGES_PER_SECOND": "100", "CONFAB_LIMITS_ADDRESS_MESSAGE_BURST": "1000",
            ].merging(Self.settings) { $1 }
            try await Attack(number: 26, name: "requests of an address", settings: settings).run { server in
                var tally = Tally()
                let whip = try RawSocket(port: server.port, from: Self.attackers)
                for _ in 0..<2000 where tally["429"] < 50 {
                    let answer = try whip.ask("/whip/x", method: "POST", body: Array("v=0".utf8))
                    tally.count("\(answer.status)")
                    guard answer.status == 429 else { continue }
                    #expect(answer["Retry-After"] == "1" && answer.text.contains("\"rate_limited\""), "\(answer.text)")
                }
                #expect(tally["429"] == 50, "\(tally.text)")
                // The Socket.IO requests of the address are refused as well, those of another address are not.
                let poll = try RawSocket(port: server.port, from: Self.attackers)
                var status = 0
                for _ in 0..<500 where status != 429 {
                    status = try poll.ask("/socket.io/1/xhr-polling/none?t=1").status
                    tally.count("poll \(status)")
                }
                #expect(status == 429)
                let other = try RawSocket(port: server.port).ask("/socket.io/1/")
                #expect(other.status == 200)
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }

        @Test("a post of many packets costs as much as that many posts")
        func batches() async throws {
            let settings = [
                "CONFAB_LIMITS_ADDRESS_MESSAGES_PER_SECOND": "100", "CONFAB_LIMITS_ADDRESS_MESSAGE_BURST": "1000",
            ].merging(Self.settings) { $1 }
            try await Attack(number: 26, name: "batches of an address", settings: settings).run { server in
                var tally = Tally()
                let client = try RawSocketIO(port: server.port)
                let socket = try RawSocket(port: server.port, from: Self.attackers)
                #expect(try client.poll(on: socket) == "1::")
                let batch = String(repeating: "\u{FFFD}3\u{FFFD}2::", count: 256)
                for _ in 0..<50 where tally["429"] == 0 { tally.count("\(try client.post(batch, on: socket).status)") }
                // The budget refills by 100 a second, so a slow machine accepts a few more.
                #expect(tally["429"] == 1 && (4..<30).contains(tally["200"]), "\(tally.text)")
                return AttackOutcome(sent: "\(tally.total) posts of 256 packets", cameBack: tally.text)
            }
        }

        // MARK: Stored bytes

        private static func endpoint(_ number: Int) -> ClientMessage {
            .push(.register(.browser("https://fcm.googleapis.com/\(number)/" + String(repeating: "x", count: 900))))
        }

        @Test("throw-away identities of one address store a limited amount; people there can still block and report")
        func disk() async throws {
            let quota = 256 << 10
            let settings = [
                "CONFAB_LIMITS_STORED_PER_ADDRESS_AND_DAY": "\(quota >> 10)KiB",
                "CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "1000",
            ].merging(Self.settings) { $1 }
            try await Attack(number: 26, name: "stored by an address", settings: settings).run { server in
                var tally = Tally()
                for number in 0..<10 {
                    let stranger = try Person.arrive(port: server.port, from: Self.attackers)
                    for turn in 0..<20 { tally.count(try stranger.verdict(Self.endpoint(20 * number + turn))) }
                }
                #expect(tally["not_present"] == 200, "\(tally.text)")
                tally = Tally()
                for number in 0..<100 where tally["storage_quota"] < 50 {
                    let stranger = try Person.arrive(port: server.port, from: Self.attackers)
                    tally.count(try stranger.verdict(.presence(.appear(Appearance(name: "x")))))
                    for turn in 0..<20 { tally.count(try stranger.verdict(Self.endpoint(20 * number + turn))) }
                    try stranger.close()
                }
                #expect(tally["storage_quota"] >= 50)
                let stored = tally["ok"] * 1200
                #expect(stored > quota / 2 && stored < quota * 3 / 2, "\(tally.text)")
                let (ann, bob) = (
                    try Person.arrive(port: server.port, from: Self.attackers),
                    try Person.arrive(port: server.port, from: Self.attackers)
                )
                try ann.say(.roulette(.start(.init())))
                _ = try bob.meet()
                _ = try ann.hearMatched()
                #expect(try ann.verdict(.roulette(.report(.init(reason: "rude")))) == "ok")
                #expect(try ann.verdict(.roulette(.block(.init()))) == "ok")
                let elsewhere = try Person.present("Elsewhere", port: server.port).person
                #expect(try elsewhere.verdict(Self.endpoint(0)) == "ok")
                return AttackOutcome(sent: "\(tally.total) things to store", cameBack: tally.text)
            }
        }

        @Test("on a nearly full disk nothing optional is stored; blocks and reports are, and the server stays ready")
        func nearlyFull() async throws {
            // More than any disk has.
            let settings = ["CONFAB_STORAGE_LOW_SPACE": "1048576MiB"].merging(Self.settings) { $1 }
            try await Attack(number: 26, name: "nearly full disk", settings: settings).run { server in
                var tally = Tally()
                try eventually("nothing is refused: \(tally.text)") {
                    let stranger = try Person.arrive(port: server.port, from: Self.attackers)
                    tally.count(try stranger.verdict(.presence(.appear(Appearance(name: "x")))))
                    return tally["storage_full"] > 0
                }
                let (ann, bob) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
                try ann.say(.roulette(.start(.init())))
                _ = try bob.meet()
                _ = try ann.hearMatched()
                #expect(try ann.verdict(.roulette(.report(.init(reason: "rude")))) == "ok")
                #expect(try ann.verdict(.roulette(.block(.init()))) == "ok")
                #expect(ann.errors.isEmpty)
                #expect(try RawSocket(port: server.port).ask("/ready").status == 200)
                return AttackOutcome(sent: "\(tally.total) profiles", cameBack: tally.text)
            }
        }

        // MARK: Queues

        @Test("clients of one address that do not read lose the largest queues; those that read keep their connection")
        func queues() async throws {
            let settings = [
                "CONFAB_LIMITS_SEND_QUEUE": "64MiB", "CONFAB_LIMITS_SEND_QUEUES_PER_ADDRESS": "4MiB",
            ].merging(Self.settings) { $1 }
            try await Attack(number: 26, name: "queues of an address", settings: settings).run { server in
                let forging = try await Forging(server)
                // In one session, the session's own budget would end the flood.
                var admissions: [Admission] = []
                for _ in 0..<10 {
                    let session = try await server.makeSession()
                    let token = forging.token(forging.sessionClaims(session.text))
                    admissions.append(Admission(session: session, token: token))
                }
                func join(_ person: Person) throws {
                    for admission in admissions { _ = try person.join(admission) }
                }
                let (sender, reader) = (
                    try Person.arrive(port: server.port), try Person.arrive(port: server.port, from: Self.attackers)
                )
                try join(sender)
                try join(reader)
                var deaf: [Person] = []
                for _ in 0..<20 {
                    let socket = try RawSocket(port: server.port, from: Self.attackers, receiveBuffer: 4096)
                    let person = try Person.connect(on: socket)
                    try person.greet()
                    try join(person)
                    deaf.append(person)
                }
                let mark = "too much data queued for its address"
                var sent = 0
                let text = String(repeating: "x", count: 8000)
                while sent < 30_000, server.log.components(separatedBy: mark).count <= 10 {
                    for _ in 0..<20 {
                        let session = admissions[sent % admissions.count].session
                        let signal = ClientMessage.session(.signal(.init(session: session, type: "chat", data: text)))
                        sent += 1
                        // On a fast machine, the sessions' budgets end before the queues are full, and refill.
                        if let refusal = try sender.hearAnswer(to: sender.say(signal)) {
                            try #require(refusal.code == .rateLimited, "\(refusal)")
                            continue
                        }
                        sender.forget()
                        try reader.hear("signal") { if case .session(.signal) = $0 { () } else { nil } }
                        try reader.say(.ack)
                        reader.forget()
                    }
                }
                let dropped = server.log.components(separatedBy: mark).count - 1
                #expect(deaf.count == 20)
                #expect(dropped >= 10, "only \(dropped) were dropped after \(sent) signals")
                #expect(reader.closeCode == nil && sender.closeCode == nil)
                #expect(!server.log.contains("reads too slowly"))
                return AttackOutcome(
                    sent: "\(sent) signals of 8 kB to 20 deaf clients", cameBack: "\(dropped) connections dropped")
            }
        }
    }
}
