import Foundation
import Signaling
import TestSupport
import Testing
import Wire

/// How many people are simulated, on how many nodes, for how long. `CONFAB_MODEL_PEOPLE=1000000` simulates as many as a large host
/// has. That takes a release build, some gigabytes and up to an hour, and no other test may run in the process, because its memory
/// is measured.
private enum PopulationRun {
    private static let environment = ProcessInfo.processInfo.environment

    private static func number(_ name: String) -> Int? { environment[name].flatMap { Int($0) }.map { max(1, $0) } }

    static let isMeasured = number("CONFAB_MODEL_PEOPLE") != nil
    static let people = number("CONFAB_MODEL_PEOPLE") ?? 1200
    static let nodes = min(200, number("CONFAB_MODEL_NODES") ?? (isMeasured ? 8 : 3))
    static let minutes = number("CONFAB_MODEL_MINUTES") ?? (isMeasured ? 10 : 1)
    static let seed = ModelRun.seed

    /// The resident memory of this process in bytes; nil where the kernel does not show it.
    static var memory: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
            let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return nil }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// A population on many nodes: what must be true, and what a person costs.
@Suite struct PopulationTests {
    /// How long everyone takes to come.
    private static let filling = Duration.seconds(PopulationRun.isMeasured ? 120 : 20)
    private static let calm = Duration.seconds(60)

    @Test func `a population on many nodes keeps the rules of a cluster`() {
        let minutes = PopulationRun.minutes
        let began = ContinuousClock.now
        let world = PopulationWorld(
            nodes: PopulationRun.nodes, people: PopulationRun.people, seed: PopulationRun.seed,
            for: Self.filling + .seconds(60 * minutes) + Self.calm)
        print("population: \(world.count) people on \(PopulationRun.nodes) nodes, seed \(world.seed)")
        let empty = PopulationRun.memory
        world.fill(within: Self.filling)
        world.pass(Self.filling)
        report(world, "come", since: began, empty)
        let (before, filled) = (world.cluster.figures, ContinuousClock.now)
        for minute in 1...minutes where world.fault == nil {
            world.pass(.seconds(60))
            // Judging takes memory that the nodes do not use.
            if minute == minutes { report(world, "lived \(minutes) minutes", since: filled, empty) }
            world.judgeEveryone()
        }
        let after = world.cluster.figures
        world.beCalm()
        world.pass(Self.calm)
        if world.fault == nil { world.judgeRest() }
        report(world, from: before, to: after, minutes: minutes)
        if let fault = world.fault { Issue.record("population, seed \(world.seed): \(fault)") }
        for kind in ["matches of a person", "calls accepted", "rooms joined", "redirects", "departures"] {
            #expect(world.fault != nil || world.figures[kind, default: 0] > 0, "\(kind) never happened")
        }
        #expect(world.fault != nil || after.letters > before.letters, "no letter was posted")
    }

    private func report(_ world: PopulationWorld, _ what: String, since start: ContinuousClock.Instant, _ empty: Int?) {
        guard PopulationRun.isMeasured, let empty, let memory = PopulationRun.memory else { return }
        let grown = (memory - empty) / world.count
        let state = world.cluster.hubs.reduce(into: [0, 0, 0, 0, 0]) { counts, hub in
            let more = [hub.clientCount, hub.personCount, hub.sessionCount, hub.matchCount, hub.callCount]
            for index in more.indices { counts[index] += more[index] }
        }
        print("population: \(what) in \(ContinuousClock.now - start)")
        print("population: \(grown) bytes for each person, with the simulated clients, places and storage")
        print("population: clients, people, sessions, matches, calls: \(state)")
    }

    private func report(
        _ world: PopulationWorld, from before: PopulationCluster.Figures, to after: PopulationCluster.Figures,
        minutes: Int
    ) {
        func rate(_ name: String, _ figure: KeyPath<PopulationCluster.Figures, Int>) {
            let total = after[keyPath: figure] - before[keyPath: figure]
            let each = Double(total) / Double(world.count * minutes)
            let rounded = (each * 10_000).rounded() / 10_000
            print("population: \(name): \(total / (60 * minutes)) a second, \(rounded) a person and minute")
        }
        rate("inputs from clients", \.inputs)
        rate("messages to clients", \.messages)
        rate("bytes of messages", \.messageBytes)
        rate("inputs that were committed", \.commits)
        rate("changes", \.changes)
        rate("letters", \.letters)
        rate("entries of letters", \.entries)
        rate("bytes of letters", \.letterBytes)
        rate("claims of places", \.claims)
        rate("look-ups of places", \.lookUps)
        rate("releases of places", \.releases)
        print("population: \(world.figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" })")
    }
}
