import Foundation
import Testing
import Wire

@testable import Confab

/// What a person of a simulation may do.
private enum Act: CaseIterable {
    case search, searchText, next, say, stop, appear, call, accept, hangUp, joinRoom, leaveRoom, rejoinRoom, sayInRoom
    case watch, list, register, joinSession, changeNetwork
}

/// What must be released when a simulation is over, by name.
private final class Traces: Sendable {
    private struct Trace: Sendable {
        let name: String
        weak let object: (any AnyObject & Sendable)?
    }

    private let traces = LockedValue<[Trace]>([])

    func follow(_ name: String, _ object: any AnyObject & Sendable) {
        traces.withLock { $0.append(Trace(name: name, object: object)) }
    }

    /// The names of what is left.
    var names: [String] { traces.withLock { $0 }.filter { $0.object != nil }.map(\.name) }
}

/// What of a simulation has not ended yet, by name.
private final class Pending: Sendable {
    private let names = LockedValue<[String: Int]>([:])

    func run(_ name: String, _ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        names.withLock { $0[name, default: 0] += 1 }
        return Task { [self] in
            await body()
            names.withLock { names in
                let count = names[name, default: 0] - 1
                names[name] = count > 0 ? count : nil
            }
        }
    }

    /// Nil if all has ended.
    var text: String? {
        let left = names.withLock { $0 }
        return left.isEmpty ? nil : left.map { "\($0.key) (\($0.value))" }.sorted().joined(separator: ", ")
    }
}

/// A person of a simulation who uses every part of a client at random, through the actors.
private final class User: Sendable {
    let client: ConfabClient
    private let (pending, heard, traces): (Pending, LockedValue<Int>, Traces)

    init(
        on network: SimulatedNetwork, _ engine: FakeEngine, _ pending: Pending, _ heard: LockedValue<Int>,
        _ traces: Traces
    ) {
        (self.pending, self.heard, self.traces) = (pending, heard, traces)
        client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: engine,
            in: network.dependencies)
        let parts: [(String, any AnyObject & Sendable)] = [
            ("a client", client), ("its core", client.core), ("its parts", client.features),
            ("the roulette", client.roulette), ("the calls", client.calls), ("the rooms", client.rooms),
            ("the presence", client.presence), ("the people nearby", client.nearby),
            ("the contacts", client.contacts), ("the push", client.push), ("the media engine", engine),
        ]
        for (name, part) in parts { traces.follow(name, part) }
        follow("states", client.states)
        follow("notices", client.notices)
        follow("events of the roulette", client.roulette.events)
        follow("events of calls", client.calls.events)
        follow("events of presence", client.presence.events)
        follow("people nearby", client.nearby.events)
        follow("events of contacts", client.contacts.events)
        follow("failures of push", client.push.failures)
    }

    private func follow<Element: Sendable>(_ name: String, _ events: Events<Element>) {
        let iterator = events.makeAsyncIterator()
        _ = pending.run(name) { [heard] in while await iterator.next() != nil { heard.withLock { $0 += 1 } } }
    }

    private func use(_ room: Room) async {
        traces.follow("a room", room)
        follow("events of a room", room.events)
        await room.publish(FakeMedia())
    }

    /// The session is released at once, which leaves it.
    private func use(_ session: Session) async throws(ConfabError) {
        traces.follow("a session", session)
        traces.follow("the core of a session", session.core)
        traces.follow("the media of a session", session.media)
        follow("states of a session", session.statuses)
        follow("events of a session", session.events)
        let publisher = try await session.publish(FakeMedia())
        follow("events of a publisher", publisher.events)
    }

    func connect() async { _ = try? await client.connect() }

    /// Does something, and waits for its result. Errors are expected: the network fails.
    func perform(_ act: Act) async {
        let client = client
        do throws(ConfabError) {
            switch act {
            case .search: try await client.roulette.start(.video, interests: ["chess"])
            case .searchText: try await client.roulette.start(.text, interests: ["chess"])
            case .next: try await client.roulette.next()
            case .say: try await client.roulette.say("Hello")
            case .stop: try await client.roulette.stop()
            case .appear: try await client.presence.appear(.init(name: "Ada"))
            case .call: try await client.calls.start(PersonID(high: 0, low: 1), video: true)
            case .accept:
                guard let call = client.calls.all.first(where: { $0.state == .incoming }) else { return }
                try await client.calls.accept(call.id, video: true)
            case .hangUp: if let call = client.calls.all.first { try await client.calls.end(call.id) }
            case .joinRoom: await use(try await client.rooms.join("garden", displayName: "Ada"))
            case .leaveRoom: try await client.rooms.leave()
            case .rejoinRoom:
                try await client.rooms.leave()
                await use(try await client.rooms.join("garden", displayName: "Ada"))
            case .sayInRoom: try await client.rooms.room?.say("Hello")
            case .watch: _ = try await client.nearby.watch()
            case .list: _ = try await client.contacts.list()
            case .register: try await client.push.register(token: "00")
            case .joinSession: try await use(try await client.join(SessionID("session")!, token: "token"))
            case .changeNetwork: client.networkChanged()
            }
        } catch {}
    }
}

/// Clients whose every part is used through the actors, on a network that fails. `CONFAB_SIMULATED_SEED` names one run, and
/// `CONFAB_SIMULATED_RUNS` sets how many there are.
///
/// A run yields to the tasks of its clients thousands of times. That takes a few hundredths of a second, but among tests that keep
/// all threads busy each time waits for them, so `scripts/test` runs this suite alone. Thirty runs have a restart, an outage and a
/// release alone and in every combination. `scripts/soak` makes more.
@Suite("Actors over a seeded network", .timeLimit(.minutes(5)))
struct ActorSimulationTests {
    private static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["CONFAB_SIMULATED_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        return Array(1...(environment["CONFAB_SIMULATED_RUNS"].flatMap { UInt64($0) } ?? 30))
    }()

    @Test("every method returns, every iteration ends, and nothing is left of a client, whatever its connection does")
    func manyRuns() async throws {
        var (events, cuts, peers) = (0, 0, 0)
        for seed in Self.seeds {
            let network = SimulatedNetwork(seed: seed)
            network.server.knowsFeatures = true
            let (pending, heard, traces) = (Pending(), LockedValue(0), Traces())
            let counts = await use(network, seed, pending, heard, traces)
            // The clock of the simulation continues until everything has ended.
            try await network.run("seed \(seed)") { pending.text }
            // Tasks that have ended soon release what they hold. When is the scheduler's choice.
            try await network.run("seed \(seed)") {
                // Closing a connection is work of the engine, which continues after the release.
                let open = counts.map { $0.open() }.reduce(0, +)
                let names = traces.names + (open > 0 ? ["\(open) peer connections"] : [])
                return names.isEmpty ? nil : names.joined(separator: ", ")
            }
            peers += counts.map { $0.made() }.reduce(0, +)
            #expect(network.server.faults == [], "seed \(seed)")
            (events, cuts) = (events + heard.withLock { $0 }, cuts + network.cuts)
        }
        print(
            "SDK actors: seeds \(Self.seeds.min() ?? 0) to \(Self.seeds.max() ?? 0), \(events) events, \(cuts) cuts, "
                + "\(peers) peer connections")
        if Self.seeds.count > 1 {
            #expect(events > 20 * Self.seeds.count)
            #expect(cuts > Self.seeds.count)
            #expect(peers > Self.seeds.count)
        }
    }

    /// Two people use their clients, and then leave or release them.
    ///
    /// - Returns: how many peer connections of each engine are open, and how many were made.
    private func use(
        _ network: SimulatedNetwork, _ seed: UInt64, _ pending: Pending, _ heard: LockedValue<Int>, _ traces: Traces
    ) async -> [(open: @Sendable () -> Int, made: @Sendable () -> Int)] {
        let engines = [FakeEngine(), FakeEngine()]
        let users = engines.map { User(on: network, $0, pending, heard, traces) }
        if seed % 3 == 0 { network.restartServer(in: 5000...40_000) }
        if seed % 5 == 0 { network.fail(in: 5000...15_000, for: 40_000...60_000) }
        var random = SplitMix(seed: seed)
        for user in users { _ = pending.run("connect") { await user.connect() } }
        for _ in 0..<60 {
            let (user, act) = (users[.random(in: 0...1, using: &random)], Act.allCases.randomElement(using: &random)!)
            let task = pending.run("\(act)") { await user.perform(act) }
            if Int.random(in: 0..<10, using: &random) == 0 { task.cancel() }
            // The clock of the simulation and the tasks of the clients take turns, in no fixed order.
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                network.run(for: .milliseconds(100))
                for _ in 0..<4 { await Task.yield() }
            }
        }
        if seed % 2 == 0 { for user in users { await user.client.leave() } }
        // The others release their clients when their last method returns.
        return engines.map { ($0.countOpen, $0.countMade) }
    }
}

/// What a simulation waited for in vain.
private struct StillPending: Error, CustomStringConvertible {
    var description: String
}

extension SimulatedNetwork {
    /// How long a run may take to end, in steps: hours of simulated time, and as many turns of all tasks.
    private static let maxSteps = 100_000

    /// Lets time pass until nothing is left to wait for.
    fileprivate func run(_ name: String, until whatIsLeft: () -> String?) async throws {
        var steps = 0
        while let left = whatIsLeft() {
            steps += 1
            guard steps < Self.maxSteps, !Task.isCancelled else {
                throw StillPending(description: "\(name) still waits for \(left)")
            }
            run(for: .milliseconds(100))
            await Task.yield()
        }
    }
}
