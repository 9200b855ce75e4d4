import Signaling
import TestSupport
import Testing
import Wire

/// Random events on the hub. After each event, an independent model checks every rule of people and roulette.
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

    /// There are so few people that the same two meet repeatedly. So former partners, blocks and penalties are common.
    @Test func everyRuleHoldsAmongVeryFewPeople() {
        run(ModelWorld(seed: ModelRun.seed), events: ModelRun.events * 2 / 10, most: 5)
    }

    /// The matcher checks only two candidates per attempt. The pairings must be the same, only a little later. The
    /// queue has few places.
    @Test func everyRuleHoldsWithFewCandidatesPerAttempt() {
        let world = ModelWorld(seed: ModelRun.seed, slack: .seconds(30)) {
            ($0.candidatesPerAttempt, $0.entriesPerAddress) = (2, 2)
        }
        run(world, events: ModelRun.events / 10, most: 24)
    }
}
