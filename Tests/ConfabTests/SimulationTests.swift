import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

/// One client in one session of a simulation. It joins again whenever it has lost or left the session.
private final class Participant: @unchecked Sendable {
    /// Which words may follow each other, with repetitions.
    private static let edges: [String: Set<String>] = [
        "idle": ["connecting", "closed"], "connecting": ["connecting", "online", "offline", "closed"],
        "online": ["reconnecting", "offline", "connecting", "closed"],
        "reconnecting": ["reconnecting", "online", "offline", "connecting", "closed"],
        "offline": ["offline", "connecting", "closed"], "closed": [],
    ]

    /// A successful attempt to join: the connection, and how often that connection had joined before.
    struct SessionMembership {
        let connection: ConnectionID
        let number: Int
    }

    let name: String
    let core: ClientCore
    let session: SessionCore
    let events: Events<Session.Event>.Iterator
    private let network: SimulatedNetwork
    private var state = "idle"
    private var status = Session.Status.notConnected
    private(set) var faults: [String] = []
    /// The outcome of each signal: nil while it is unknown.
    private(set) var outcomes: [String: Bool?] = [:]
    private var count = 0
    /// Each attempt to join, in order. Nil for an attempt that failed.
    private(set) var memberships: [SessionMembership?] = []
    /// How often the connection resumed, and how often the client noticed that it could not be resumed any longer.
    private(set) var (resumes, expirations) = (0, 0)
    private var listening: Listening?
    private(set) var isOver = false
    /// Whether the participant sends signals.
    var isTalkative = true

    init(_ name: String, on network: SimulatedNetwork) {
        (self.name, self.network) = (name, network)
        let log = LockedValue<(@Sendable (LogEntry) -> Void)?>(nil)
        var options = ConfabClient.Options()
        options.log = { entry in log.withLock { $0 }?(entry) }
        core = ClientCore(
            url: URL(string: "ws://simulated/v1/socket"), credential: .anonymous(MemoryIdentity()), hello: Hello(),
            media: nil, options: options, dependencies: network.dependencies)
        session = SessionCore(SessionID("session")!, token: "token", core: core)
        events = session.events.events.makeAsyncIterator()
        log.withLock { $0 = { [unowned self] in hear($0) } }
        listening = core.listen { [unowned self] in count($0) }
        session.setMedia { [unowned self] in if case .status(let status) = $0 { become(status) } }
    }

    var isConnected: Bool { session.machine.status == .connected }

    func start() {
        core.connectNow()
        join()
        network.perform(in: 100...2000) { [unowned self] in talk() }
    }

    func finish() {
        isOver = true
        core.leave()
    }

    private func hear(_ entry: LogEntry) {
        guard entry.message.hasPrefix("The connection is ") else { return }
        let next = String(entry.message.dropFirst("The connection is ".count).dropLast())
        if Self.edges[state]?.contains(next) != true { faults.append("\(name): \(state) became \(next)") }
        state = next
        // A client that gave up its first connection is asked to try again.
        if next == "offline", !isOver { network.perform(in: 100...500) { [unowned self] in core.connectNow() } }
    }

    private func count(_ event: ConnectionEvent) {
        switch event {
        case .connected(_, .resumed): resumes += 1
        case .expired: expirations += 1
        default: break
        }
    }

    private func become(_ next: Session.Status) {
        if !status.canBecome(next) { faults.append("\(name): \(status) became \(next)") }
        status = next
        if next == .connecting { memberships.append(nil) }
        if next == .notConnected, !isOver { network.perform(in: 1...1000) { [unowned self] in join() } }
    }

    private func join() {
        guard session.machine.status == .notConnected else { return }
        session.connect { [unowned self] _ in
            guard let id = session.machine.connection?.id else { return }
            memberships[memberships.count - 1] = SessionMembership(
                connection: id, number: memberships.count { $0?.connection == id })
        }
    }

    private func talk() {
        guard isTalkative, !isOver else { return }
        if [.connected, .reconnecting].contains(session.machine.status) {
            count += 1
            let data = "\(name)\(count)"
            outcomes[data] = .some(nil)
            core.send(.session(.signal(.init(session: session.id, type: nil, data: data)))) { [unowned self] result in
                if outcomes[data] != .some(nil) { faults.append("\(data) has two outcomes") }
                outcomes[data] = if case .success = result { true } else { false }
            }
        }
        if network.isOneOf(30) { core.networkChanged(isAvailable: true) }
        if network.isOneOf(30) { session.disconnect { _ in } }
        network.perform(in: 500...4000) { [unowned self] in talk() }
    }
}

/// Two SDK clients on a network that fails. `CONFAB_SIMULATED_RUNS` sets the number of runs.
@Suite("A seeded simulated network")
struct SimulationTests {
    private static let runs =
        ProcessInfo.processInfo.environment["CONFAB_SIMULATED_RUNS"].flatMap { UInt64($0) }.map { max($0, 1) } ?? 1000

    @Test("no signal is lost or repeated, and states change along legal edges only")
    func manyRuns() async {
        var (signals, cuts, restarts, resumes, expirations) = (0, 0, 0, 0, 0)
        for seed in 1...Self.runs {
            let network = SimulatedNetwork(seed: seed)
            let people = ["a", "b"].map { Participant($0, on: network) }
            let faults = await run(people, on: network, seed: seed)
            #expect(faults.isEmpty, "seed \(seed)")
            (cuts, restarts) = (cuts + network.cuts, restarts + network.restarts)
            for person in people {
                signals += person.outcomes.count
                (resumes, expirations) = (resumes + person.resumes, expirations + person.expirations)
            }
        }
        print("SDK simulation: \(Self.runs) runs, \(signals) signals, \(resumes) resumes, \(expirations) expirations")
        // Otherwise, the test would show nothing.
        guard Self.runs >= 100 else { return }
        let runs = Int(Self.runs)
        #expect(signals > 20 * runs)
        #expect(cuts > runs)
        #expect(restarts > runs / 4)
        #expect(resumes > runs)
        #expect(expirations > runs / 50)
    }

    /// - Returns: what went wrong.
    private func run(_ people: [Participant], on network: SimulatedNetwork, seed: UInt64) async -> [String] {
        for person in people { person.start() }
        if seed % 3 == 0 { network.restartServer(in: 5000...60_000) }
        // Longer than the server keeps a connection, so that some connections cannot be resumed.
        if seed % 5 == 0 { network.fail(in: 5000...15_000, for: 50_000...70_000) }
        network.run(for: .seconds(90))
        // A quiet end, so that everything that can arrive has arrived.
        (network.breaks, network.duplicates) = (0, 0)
        for person in people { person.isTalkative = false }
        network.run(for: .seconds(60))
        var faults = people.filter { !$0.isConnected }.map { "\($0.name) has not come back" }
        for person in people { person.finish() }
        network.run(for: .seconds(1))
        faults += network.server.faults + people.flatMap(\.faults)
        for person in people {
            faults += checkOutcomes(of: person, network.server)
            faults += await checkEvents(of: person, network.server)
        }
        return faults
    }

    private func checkOutcomes(of person: Participant, _ server: SimulatedServer) -> [String] {
        var faults: [String] = []
        for (data, outcome) in person.outcomes {
            if outcome == nil { faults.append("\(data) has no outcome") }
            if server.performed[data, default: 0] > 1 { faults.append("\(data) was performed twice") }
            if outcome == true, server.performed[data] != 1 { faults.append("\(data) was confirmed but not performed") }
        }
        return faults
    }

    /// Compares what a participant heard during each stay in the session with what the server sent it.
    private func checkEvents(of person: Participant, _ server: SimulatedServer) async -> [String] {
        var faults: [String] = []
        person.session.events.finish()
        var heard: [[String]] = []
        var part: [String] = []
        while let event = await person.events.next() {
            switch event {
            case .signal(let signal): part.append(signal.data ?? "")
            case .disconnected:
                heard.append(part)
                part = []
            default: break
            }
        }
        if person.events.failure != nil { faults.append("\(person.name) was too slow") }
        if heard.count != person.memberships.count || !part.isEmpty {
            faults.append("\(person.name) has another history")
        }
        for (index, (part, membership)) in zip(heard, person.memberships).enumerated() {
            let sent = membership.map { server.reported[$0.connection]?[$0.number] ?? ["nothing"] } ?? []
            if !sent.starts(with: part) { faults.append("\(person.name) heard \(part), but was sent \(sent)") }
            // The end of a stay may be lost with its connection. The last stay lasted until everything had arrived.
            if index == heard.count - 1, part != sent {
                faults.append("\(person.name) heard only \(part.count) of \(sent.count) signals")
            }
        }
        return faults
    }
}
