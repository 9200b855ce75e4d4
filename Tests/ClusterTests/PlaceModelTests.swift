import Cluster
import TestSupport
import Testing

@Suite("Places in bad weather")
struct PlaceModelTests {
    private static var plan: ClusterModel.Plan {
        var plan = ClusterModel.Plan()
        plan.places = 6
        plan.calm = 2_000_000
        plan.troubles += [(.redisCut, 4), (.redisForgets, 2)]
        return plan
    }

    @Test("no two nodes that act have one place, even if Redis forgets while some nodes see the old one")
    func oneOwner() {
        let (seed, events) = (Weather.seed(), Weather.events ?? 60_000)
        var model = ClusterModel(Self.plan, seed: seed)
        model.run(events: events)
        print("places, seed \(seed): \(model.figures)")
        #expect(model.figures.twoOwners == 0, "seed \(seed)")
        #expect(model.figures.overlaps == 0, "seed \(seed)")
        #expect(model.figures.claims > events / 200, "too few claims to show anything, seed \(seed)")
        #expect(model.figures.epochs > events / 10_000, "too few epochs to show anything, seed \(seed)")
    }

    @Test("no node that acts has a place whose origin acts")
    func origins() {
        let (seed, events) = (Weather.seed(), Weather.events ?? 60_000)
        var plan = Self.plan
        (plan.places, plan.origins) = (2, 8)
        var model = ClusterModel(plan, seed: seed)
        model.run(events: events)
        print("places with an origin, seed \(seed): \(model.figures), \(model.figures.inherited) inherited")
        #expect(model.figures.twoOwners == 0, "seed \(seed)")
        #expect(model.figures.inherited > 0, "too few claims to show anything, seed \(seed)")
    }

    @Test("without rule 7 the model finds a place with two owners")
    func findsTwoOwners() {
        let seed = Weather.seed()
        var plan = Self.plan
        plan.claimsAtOnce = true
        var model = ClusterModel(plan, seed: seed)
        model.run(events: 400_000) { $0.twoOwners > 0 }
        print("places without rule 7, seed \(seed): \(model.figures)")
        #expect(model.figures.twoOwners > 0, "seed \(seed)")
    }

    @Test("without the 3 s after the fence of a life that still renews the model finds a place with two owners")
    func findsEarlyClaims() {
        let first = Weather.seed()
        var plan = Self.plan
        plan.rules.voidAfterUnregistered = 0
        // Nodes that cannot reach Redis for long, and sometimes the ledger for a moment.
        plan.calm = 700_000
        plan.longestCut = 14_000_000
        plan.longestLedgerCut = 2_500_000
        plan.troubles = [(.redisCut, 2), (.redisForgets, 1), (.cut, 40)]
        // The coincidence is rare: one seed in six has none in 400,000 events.
        var found = false
        for seed in first..<first + 8 where !found {
            var model = ClusterModel(plan, seed: seed)
            model.run(events: 400_000) { $0.twoOwners > 0 }
            print("places without the 3 s, seed \(seed): \(model.figures)")
            found = model.figures.twoOwners > 0
        }
        #expect(found, "seeds from \(first)")
    }

    @Test("two minutes after the weather is calm every place is claimed by one node that acts")
    func recovers() {
        // The first three begin epochs in the wrong order: a node that still sees a former Redis begins its epoch after another
        // node has begun that of the Redis which replaced it.
        for seed in [187_954, 485_362, 362_709, Weather.seed()] { recovers(seed: seed) }
    }

    private func recovers(seed: UInt64) {
        print("places after calm, seed \(seed)")
        var model = ClusterModel(Self.plan, seed: seed)
        for _ in 0..<4 {
            model.isCalm = false
            model.queue.add(.trouble, at: model.now)
            model.run(events: 15_000)
            model.calmDown()
            // Usually half a minute is enough. Longer, if a life has to be fenced because it has not registered.
            for _ in 0..<4 where !model.isWhole { model.run(for: 30_000_000) }
            #expect(model.isWhole, "seed \(seed), \(model.now)")
        }
        #expect(model.figures.twoOwners == 0, "seed \(seed)")
    }
}

extension ClusterModel {
    /// Whether every node acts and every place is claimed by one of them.
    fileprivate var isWhole: Bool {
        nodes.indices.allSatisfy(acts)
            && places.allSatisfy { key in nodes.count { $0.machine?.registry.held[key] != nil } == 1 }
    }
}
