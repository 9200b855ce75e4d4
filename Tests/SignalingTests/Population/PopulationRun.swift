import Foundation
import Signaling

/// One run of a simulated population: everyone connects, is active for some minutes, and then starts nothing new. It checks the rules of a
/// cluster, and prints what a person costs.
///
/// The program `Benchmarks/Sources/Population` links this folder, so nothing here may use other files of these tests.
struct PopulationRun {
    private static let calm = Duration.seconds(60)

    let people: Int
    let nodes: Int
    let minutes: Int
    /// How long everyone takes to come.
    let filling: Duration
    let seed: UInt64
    let project: Project
    /// Whether nothing else runs in this process. Then its memory is measured.
    let isAlone: Bool

    /// Runs the simulation. Returns the faults, one sentence for each.
    func findFaults() -> [String] {
        let began = ContinuousClock.now
        let world = PopulationWorld(
            nodes: nodes, people: people, seed: seed, project: project,
            for: filling + .seconds(60 * minutes) + Self.calm)
        show("\(world.count) people on \(nodes) nodes, seed \(seed)")
        let empty = memory
        world.fill(within: filling)
        world.pass(filling)
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
        report(world, from: before, to: after)
        if let fault = world.fault { return [fault] }
        let kinds = ["matches of a person", "calls accepted", "rooms joined", "redirects", "departures"]
        let missing = kinds.filter { world.figures[$0, default: 0] == 0 }.map { "\($0) never happened" }
        return after.letters > before.letters ? missing : missing + ["no letter was posted"]
    }

    /// The resident memory of this process in bytes; nil if other tests run in it, or if the kernel does not show it.
    private var memory: Int? {
        guard isAlone, let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
            let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return nil }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    private func show(_ text: String) {
        print("population: \(text)")
        // A run can take an hour, and its output can go to a file.
        fflush(nil)
    }

    private func report(_ world: PopulationWorld, _ what: String, since start: ContinuousClock.Instant, _ empty: Int?) {
        guard isAlone else { return }
        let state = world.cluster.hubs.reduce(into: [0, 0, 0, 0, 0]) { counts, hub in
            let more = [hub.clientCount, hub.personCount, hub.sessionCount, hub.matchCount, hub.callCount]
            for index in more.indices { counts[index] += more[index] }
        }
        show("\(what) in \(ContinuousClock.now - start)")
        if let empty, let memory {
            let grown = (memory - empty) / world.count
            show("\(grown) bytes for each person, with the simulated clients, places and storage")
        }
        show("clients, people, sessions, matches, calls: \(state)")
    }

    private func report(
        _ world: PopulationWorld, from before: PopulationCluster.Figures, to after: PopulationCluster.Figures
    ) {
        func rate(_ name: String, _ figure: KeyPath<PopulationCluster.Figures, Int>) {
            let total = after[keyPath: figure] - before[keyPath: figure]
            let each = Double(total) / Double(world.count * minutes)
            let rounded = (each * 10_000).rounded() / 10_000
            show("\(name): \(total / (60 * minutes)) a second, \(rounded) a person and minute")
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
        show("\(world.figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" })")
    }
}
