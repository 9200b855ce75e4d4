import Foundation
import Signaling
import Synchronization
import Testing
import Wire

/// The matches and blocks that sixty people observed, in order. `violations` checks them at the end.
private final class Witness: Sendable {
    enum Event: Sendable {
        case matched(MatchID)
        /// The server confirmed the block of that match's partner.
        case blocked(MatchID)
    }

    private struct State: Sendable {
        var members: [MatchID: [Int]] = [:]
        var histories: [[Event]]
        var violations: [String] = []
    }

    private let state: Mutex<State>
    let isOver = Flag()

    init(people: Int) { state = Mutex(State(histories: Array(repeating: [], count: people))) }

    var matchCount: Int { state.withLock { $0.members.count } }
    /// The number of matches that both members observed. Only these matches show who was paired with whom.
    var seenByBoth: Int { state.withLock { $0.members.values.count { $0.count == 2 } } }
    var blockCount: Int {
        state.withLock { $0.histories.joined().count { if case .blocked = $0 { true } else { false } } }
    }

    var text: String { "\(matchCount) matches, \(seenByBoth) seen by both, \(blockCount) blocks" }

    func accuse(_ text: String) { state.withLock { $0.violations.append(text) } }

    func note(_ event: Event, by person: Int) {
        state.withLock { state in
            state.histories[person].append(event)
            if case .matched(let match) = event { state.members[match, default: []].append(person) }
        }
    }

    /// Returns a description of everything that must not have happened.
    func violations() -> [String] {
        state.withLock { state in
            var found = state.violations
            for (match, members) in state.members where members.count > 2 || Set(members).count < members.count {
                found.append("match \(match) is of \(members)")
            }
            for (person, history) in state.histories.enumerated() {
                var blocked: Set<Int> = []
                for event in history {
                    switch event {
                    case .blocked(let match): blocked.formUnion(Self.partner(of: person, in: match, state))
                    case .matched(let match):
                        let met = Self.partner(of: person, in: match, state).intersection(blocked)
                        if !met.isEmpty { found.append("\(person) met \(met), blocked before") }
                    }
                }
            }
            return found
        }
    }

    /// Returns the person's partner in a match; empty if the partner was disconnected before it was notified of the
    /// match.
    private static func partner(of person: Int, in match: MatchID, _ state: State) -> Set<Int> {
        Set(state.members[match] ?? []).subtracting([person])
    }
}

/// Lets people connect only while the server is up. `close` waits for connections in progress, so that they break with
/// the others when the server is killed. A refused connection would prove nothing.
private final class Door: Sendable {
    private struct State: Sendable {
        var isOpen = true
        var entering = 0
    }

    private let state = Mutex(State())

    /// Runs the body if the door is open. Returns nil if it is closed.
    func enter<R>(_ body: () throws -> R) rethrows -> R? {
        let isOpen = state.withLock { state in
            if state.isOpen { state.entering += 1 }
            return state.isOpen
        }
        guard isOpen else { return nil }
        defer { state.withLock { $0.entering -= 1 } }
        return try body()
    }

    func close() throws {
        state.withLock { $0.isOpen = false }
        try eventually("some people are still connecting") { state.withLock { $0.entering == 0 } }
    }

    func open() { state.withLock { $0.isOpen = true } }
}

/// A person who presses Start, Next, Stop and Block, and reconnects as the same person when the connection breaks.
private final class Restless {
    private let number: Int
    private let port: Int
    private let witness: Witness
    private let door: Door
    private var dice: Random
    private var identity: String?
    private var resume: Hello.Resume?
    private var match: MatchID?
    private var pendingBlock: (seq: UInt64, match: MatchID)?

    init(_ number: Int, port: Int, seed: UInt64, _ door: Door, _ witness: Witness) {
        (self.number, self.port, self.door, self.witness) = (number, port, door, witness)
        dice = Random(seed: seed &+ UInt64(number) &* 0x9E37_79B9_7F4A_7C15)
    }

    func live() {
        repeat {
            do {
                try visit()
            } catch {
                // The server was killed. The next visit checks the consequences.
            }
        } while !witness.isOver.isSet(within: .milliseconds(10))
    }

    private func visit() throws {
        guard let person = try door.enter({ try Person.connect(port: port) }) else { return }
        var hello = Hello()
        (hello.identity, hello.resume) = (identity, resume)
        try person.greet(hello)
        identity = identity ?? person.welcome.identity
        if person.welcome.resumed { return witness.accuse("\(number) resumed what a killed server cannot know") }
        if person.welcome.state.roulette.state != .idle || person.welcome.state.sessions != [] {
            witness.accuse("\(number) is believed to be in \(person.welcome.state)")
        }
        resume = Hello.Resume(secret: person.welcome.resume.secret, received: person.received)
        (match, pendingBlock) = (nil, nil)
        try person.say(.roulette(.start(.init(mode: .text))))
        while !witness.isOver.isSet {
            let deadline = ContinuousClock.now + .milliseconds(Int.random(in: 20...150, using: &dice))
            while person.line.socket.isReadable(until: deadline) {
                guard let message = try person.next(until: .now + .seconds(20)) else { return }
                hear(message)
                person.forget()
            }
            try act(person)
        }
        try person.say(.bye)
    }

    private func hear(_ message: ServerMessage) {
        switch message {
        case .roulette(.matched(let matched)):
            if let match { witness.accuse("\(number) is in \(match) and in \(matched.match)") }
            match = matched.match
            witness.note(.matched(matched.match), by: number)
        case .roulette(.ended(let ended)):
            if match != ended.match {
                witness.accuse("\(number) left \(ended.match), being in \(String(describing: match))")
            }
            match = nil
        case .ok(let answer):
            guard let block = pendingBlock, block.seq == answer.re else { return }
            witness.note(.blocked(block.match), by: number)
            pendingBlock = nil
        default: return
        }
    }

    private func act(_ person: Person) throws {
        guard pendingBlock == nil else { return }
        switch (Int.random(in: 0..<10, using: &dice), match) {
        case (0, let match?): pendingBlock = (try person.say(.roulette(.block(.init(match: match)))), match)
        case (1...6, let match?): try person.say(.roulette(.next(.init(match: match))))
        case (7, _):
            try person.say(.roulette(.stop))
            try person.say(.roulette(.start(.init(mode: .text))))
        default: try person.say(.roulette(.start(.init(mode: .text))))
        }
    }
}

extension Hostile {
    @Suite("Case 21: kill -9") struct RestartAttacks {
        private static let people = 60
        private static let kills = 4
        /// The number of new matches after which the crowd counts as active again.
        private static let matchesBetweenKills = 60

        @Test("no one is in two matches and no block is lost, even if the server is killed repeatedly")
        func kills() async throws {
            let settings = [
                "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUESTS_PER_SECOND": "100",
                "CONFAB_LIMITS_REQUEST_BURST": "1000", "CONFAB_ROULETTE_REMATCH_WAIT": "0s",
                "CONFAB_ROULETTE_SKIPS_BEFORE_WAIT": "1000", "CONFAB_ROULETTE_RETRY_INTERVAL": "10ms",
            ]
            try await ServerProcess.run(settings) { server in
                let seed = UInt64.random(in: .min ... .max)
                print("hostile 21 | seed \(seed)")
                let (witness, door, port) = (Witness(people: Self.people), Door(), server.port)
                let crowd = (0..<Self.people).map { number in
                    Background { Restless(number, port: port, seed: seed, door, witness).live() }
                }
                for _ in 0..<Self.kills {
                    let enough = witness.matchCount + Self.matchesBetweenKills
                    try eventually("the crowd has only \(witness.matchCount) matches") { witness.matchCount >= enough }
                    try door.close()
                    server.kill()
                    try server.restart()
                    door.open()
                }
                // Killing the server disturbs everyone, so the pair starts to chat only now.
                let attack = try UnderAttack(server, case: 21, "Start and Next across kill -9")
                let enough = witness.matchCount + 2 * Self.matchesBetweenKills
                try eventually("the crowd has only \(witness.matchCount) matches") { witness.matchCount >= enough }
                try attack.finish(sent: "\(Self.people) people, \(Self.kills) kills", cameBack: witness.text)
                witness.isOver.set()
                for person in crowd { try person.join() }
                let violations = witness.violations()
                #expect(violations.isEmpty, "\(violations.prefix(10))")
                // Without enough observations the test would prove nothing.
                #expect(witness.blockCount > 0 && witness.seenByBoth > Self.matchesBetweenKills)
            }
        }
    }
}
