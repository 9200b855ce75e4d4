import Signaling
import TestSupport
import Testing

/// Random people, failures and redirects in clusters of one, three and five nodes.
@Suite struct ClusterModelTests {
    private static let everywhere = ["arrival", "drop", "outage", "failover", "calm", "application in a session"]
    private static let withOthers = ["kill", "drain", "restart", "letters posted", "letters received", "letters lost"]
    private static let acrossNodes = ["chat that spans nodes", "call that spans nodes"]

    /// As below, but people stay on their nodes when they join rooms on other nodes, or chat with and call people on other nodes.
    @Test func randomEventsKeepTheRulesWhenRoomsSpanNodes() {
        let world = ClusterWorld(nodes: 3, seed: ModelRun.seed, spans: true) { $0.routesMedia = true }
        world.answersCalls = true
        run(world, ModelRun.events * 3 / 20, "rooms that span nodes")
    }

    @Test(arguments: [1, 3, 5]) func randomEventsKeepTheRulesOfACluster(nodes: Int) {
        // Each size gets its share of the events of a run.
        let count = ModelRun.events * (nodes == 1 ? 2 : nodes == 3 ? 5 : 3) / 10
        run(ClusterWorld(nodes: nodes, seed: ModelRun.seed), count, "cluster of \(nodes)")
    }

    /// Performs `count` random events, and more until each kind happened. Letters are lost only if some are posted in the second before
    /// a failover, so a short run may need a few thousand events more.
    private func run(_ world: ClusterWorld, _ count: Int, _ name: String) {
        let started = ContinuousClock.now
        let kinds =
            Self.everywhere + (world.nodes.count > 1 ? Self.withOthers : []) + (world.spans ? Self.acrossNodes : [])
        world.acquaintEveryone()
        print("\(name): seed \(world.seed), \(count) events")
        while world.fault == nil, world.events < count { world.step() }
        while world.fault == nil, world.events < count * 4, world.hasMissed(kinds) { world.step() }
        if world.fault == nil { world.beCalm() }
        print("\(name): \(world.allFigures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" })")
        print("\(name): took \(ContinuousClock.now - started)")
        if let fault = world.fault {
            Issue.record("\(name), seed \(world.seed), event \(world.events): \(fault)")
        } else {
            #expect(!world.hasMissed(kinds), "seed \(world.seed): \(world.allFigures)")
        }
    }
}

extension ClusterWorld {
    fileprivate var allFigures: [String: Int] { figures.merging(post.figures) { $0 + $1 } }

    fileprivate func hasMissed(_ kinds: [String]) -> Bool {
        kinds.contains { figures[$0, default: 0] + post.figures[$0, default: 0] == 0 }
    }
}
