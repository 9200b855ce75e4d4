import Signaling
import Testing

/// Random events on the hub. After each event, an independent model checks every rule of people and roulette.
@Suite struct ModelTests {
    private func run(_ world: ModelWorld, events: Int) {
        world.run("model of \(world.most) people", events: events, step: world.step, end: world.goHome)
    }

    @Test func everyRuleHoldsAfterEveryEvent() { run(ModelWorld(most: 24), events: ModelRun.events * 7 / 10) }

    /// There are so few people that the same two meet repeatedly. So former partners, blocks and penalties are common.
    @Test func everyRuleHoldsAmongVeryFewPeople() { run(ModelWorld(most: 5), events: ModelRun.events * 2 / 10) }

    /// The matcher checks only two candidates per attempt. The pairings must be the same, only a little later. The
    /// queue has few places.
    @Test func everyRuleHoldsWithFewCandidatesPerAttempt() {
        let world = ModelWorld(most: 24, slack: .seconds(30)) {
            ($0.candidatesPerAttempt, $0.entriesPerAddress) = (2, 2)
        }
        run(world, events: ModelRun.events / 10)
    }
}
