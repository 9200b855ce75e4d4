import Signaling
import TestSupport
import Testing
import Wire

/// Random events against the hub, with every rule of people and roulette asserted after each by an independent model.
@Suite struct ModelTests {
    private func run(_ world: ModelWorld, events: Int, most: Int) {
        print("model: seed \(world.seed), \(events) events, \(most) people")
        var done = 0
        while done < events, world.step(most: most) { done += 1 }
        if world.fault == nil { world.empty() }
        print("model: \(ModelRun.text(world.figures))")
        if let fault = world.fault {
            Issue.record("seed \(world.seed), event \(done): \(fault)\n\(world.log.joined(separator: "\n"))")
        }
    }

    @Test func everyRuleHoldsAfterEveryEvent() {
        run(ModelWorld(seed: ModelRun.seed), events: ModelRun.events * 7 / 10, most: 24)
    }

    /// So few people that the same ones meet again and again: former partners, blocks and penalties rule the day.
    @Test func everyRuleHoldsAmongVeryFewPeople() {
        run(ModelWorld(seed: ModelRun.seed), events: ModelRun.events * 2 / 10, most: 5)
    }

    /// Attempts that probe only two candidates must come to the same, a little later; a place in the queue is scarce.
    @Test func everyRuleHoldsWhenAttemptsAreCutShort() {
        let world = ModelWorld(seed: ModelRun.seed, slack: .seconds(30)) {
            ($0.candidatesPerAttempt, $0.entriesPerAddress) = (2, 2)
        }
        run(world, events: ModelRun.events / 10, most: 24)
    }
}
