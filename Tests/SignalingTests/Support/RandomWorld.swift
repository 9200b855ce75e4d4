import Foundation
import Signaling
import TestSupport
import Testing
import Wire

/// Reads the number of random events and the seed from `CONFAB_MODEL_EVENTS` and `CONFAB_MODEL_SEED`. The same seed
/// reproduces a run.
enum ModelRun {
    private static let environment = ProcessInfo.processInfo.environment

    static var chosenEvents: Int? { environment["CONFAB_MODEL_EVENTS"].flatMap { Int($0) } }
    static var events: Int { chosenEvents ?? 50_000 }
    static var seed: UInt64 { environment["CONFAB_MODEL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max) }
}

/// A client in a random world.
class RandomClient {
    let guest: Guest
    var droppedAt: Timestamp?

    init(_ guest: Guest) { self.guest = guest }

    var isLive: Bool { guest.socket != nil }
    var connection: ConnectionID { guest.connection }
}

/// Random people on a stage: what all random models share. Each model adds its events, and judges what an outside observer can
/// know: what the clients received, and what was stored.
///
/// The seed determines everything in a run. A run ends at the first fault and prints what led to it.
class RandomWorld<Client: RandomClient> {
    let seed = ModelRun.seed
    let stage: Stage
    var random: SeededGenerator
    var clients: [Client] = []
    /// How often each kind of event happened.
    private(set) var figures: [String: Int] = [:]
    private(set) var fault: String?
    private var log: [String] = []

    init(_ adjust: (inout Rules) -> Void = { _ in }) {
        random = SeededGenerator(seed: seed)
        stage = Stage(seed: seed &+ 7, adjust)
    }

    var rules: Rules { stage.rules }
    var now: Timestamp { stage.now }

    func note(_ text: String) {
        log.append("\(now.milliseconds % 100_000_000) \(text)")
        if log.count > 60 { log.removeFirst() }
    }

    func count(_ what: String) { figures[what, default: 0] += 1 }

    func fail(_ text: String) { if fault == nil { fault = text } }

    // MARK: Chance

    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &random)) }

    func anybody(_ isWanted: (Client) -> Bool = { $0.isLive }) -> Client? {
        clients.filter(isWanted).randomElement(using: &random)
    }

    // MARK: Disconnecting

    func drop(_ client: Client) {
        client.droppedAt = now
        client.guest.drop()
    }

    func leave(_ client: Client) {
        client.guest.leave()
        forget(client)
    }

    func forget(_ client: Client) { clients.removeAll { $0 === client } }

    /// Whether the server no longer waits for a client to resume.
    func isLost(_ client: Client) -> Bool { client.droppedAt.map { $0 + rules.resumeGrace <= now } ?? false }

    // MARK: Running

    /// Performs random events, prints what happened, and records the first fault.
    ///
    /// - Parameter kinds: what must have happened.
    func run(_ name: String, events: Int, kinds: [String] = [], step: () -> Void, end: () -> Void = {}) {
        print("\(name): seed \(seed), \(events) events")
        var done = 0
        while fault == nil, done < events {
            step()
            done += 1
        }
        if fault == nil { end() }
        print("\(name): \(figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", "))")
        if let fault { Issue.record("\(name), seed \(seed), event \(done): \(fault)\n\(log.joined(separator: "\n"))") }
        for kind in kinds {
            #expect(figures[kind, default: 0] > 0 || fault != nil, "\(kind) never happened, seed \(seed)")
        }
    }

    /// Disconnects everyone and passes time. Then nothing may be left.
    func empty() {
        for client in clients where client.isLive {
            if chance(50) { client.guest.leave() } else { client.guest.drop() }
        }
        clients = []
        // Tokens of removed members are remembered until they expire.
        stage.pass(.seconds(14_400))
        let hub = stage.hub
        let left = [
            hub.clientCount, hub.personCount, hub.sessionCount, hub.matchCount, hub.waitingCount, hub.callCount,
            stage.ledger.streams.count,
        ]
        if left.contains(where: { $0 > 0 }) {
            fail("left behind: clients, people, sessions, matches, waiting, calls, routed streams: \(left)")
        }
        if let timer = hub.nextTimeout { fail("a timer is left for \(timer.milliseconds)") }
    }
}
