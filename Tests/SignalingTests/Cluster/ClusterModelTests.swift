import TestSupport
import Testing

/// Random people, failures and redirects in clusters of one, three and five nodes.
@Suite struct ClusterModelTests {
    /// As below, but people stay on their nodes in rooms on other ones, and in chats and calls with people on other ones.
    @Test func randomEventsKeepTheRulesWhenRoomsSpanNodes() {
        let count = ModelRun.events * 3 / 10
        let world = ClusterWorld(nodes: 3, seed: ModelRun.seed, spans: true) { $0.routesMedia = true }
        world.answersCalls = true
        world.acquaintEveryone()
        print("rooms that span 3 nodes: seed \(world.seed), \(count) events")
        while world.fault == nil, world.events < count { world.step() }
        if world.fault == nil { world.beCalm() }
        if let fault = world.fault {
            Issue.record("rooms that span nodes, seed \(world.seed), event \(world.events): \(fault)")
        }
        let spanning = ["chat that spans nodes", "call that spans nodes"]
        for kind in ["arrival", "drop", "kill", "drain", "restart", "letters lost"] + spanning {
            let figures = world.figures.merging(world.post.figures) { $0 + $1 }
            #expect(world.fault != nil || figures[kind, default: 0] > 0, "\(kind) never happened, seed \(world.seed)")
        }
    }

    @Test(arguments: [1, 3, 5]) func randomEventsKeepTheRulesOfACluster(nodes: Int) {
        // Each size gets its share of the events of a run.
        let count = ModelRun.events * (nodes == 1 ? 2 : nodes == 3 ? 5 : 3) / 10
        let started = ContinuousClock.now
        let world = ClusterWorld(nodes: nodes, seed: ModelRun.seed)
        world.acquaintEveryone()
        print("cluster of \(nodes): seed \(world.seed), \(count) events")
        while world.fault == nil, world.events < count { world.step() }
        if world.fault == nil { world.beCalm() }
        let figures = world.figures.merging(world.post.figures) { $0 + $1 }
        print("cluster of \(nodes): \(figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" })")
        print("cluster of \(nodes): took \(ContinuousClock.now - started)")
        if let fault = world.fault {
            Issue.record("cluster of \(nodes), seed \(world.seed), event \(world.events): \(fault)")
        }
        let manyNodes = ["kill", "drain", "restart", "letters posted", "letters received", "letters lost"]
        for kind in ["arrival", "drop", "outage", "failover", "calm"] + (nodes > 1 ? manyNodes : []) {
            #expect(world.fault != nil || figures[kind, default: 0] > 0, "\(kind) never happened, seed \(world.seed)")
        }
    }
}
