import Foundation
import Signaling
import TestSupport
import Testing
import Wire

/// Random events against the hub, with every rule of people and roulette asserted after each by an independent model.
///
/// `CONFAB_MODEL_EVENTS` sets how many events; `CONFAB_MODEL_SEED` repeats a run.
@Suite struct ModelTests {
    private static var events: Int {
        ProcessInfo.processInfo.environment["CONFAB_MODEL_EVENTS"].flatMap { Int($0) } ?? 50_000
    }

    private static var seed: UInt64 {
        ProcessInfo.processInfo.environment["CONFAB_MODEL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    }

    private func run(_ world: ModelWorld, events: Int, most: Int) {
        print("model: seed \(world.seed), \(events) events, \(most) people")
        var done = 0
        while done < events, world.step(most: most) { done += 1 }
        if world.fault == nil { world.empty() }
        print(
            "model: \(world.figures.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", "))"
        )
        if let fault = world.fault {
            Issue.record("seed \(world.seed), event \(done): \(fault)\n\(world.log.joined(separator: "\n"))")
        }
    }

    @Test func everyRuleHoldsAfterEveryEvent() {
        run(ModelWorld(seed: Self.seed), events: Self.events * 7 / 10, most: 24)
    }

    /// So few people that the same ones meet again and again: former partners, blocks and penalties rule the day.
    @Test func everyRuleHoldsAmongVeryFewPeople() {
        run(ModelWorld(seed: Self.seed), events: Self.events * 2 / 10, most: 5)
    }

    /// Attempts that probe only two candidates must come to the same, a little later; a place in the queue is scarce.
    @Test func everyRuleHoldsWhenAttemptsAreCutShort() {
        let world = ModelWorld(seed: Self.seed, slack: .seconds(30)) {
            ($0.candidatesPerAttempt, $0.entriesPerAddress) = (2, 2)
        }
        run(world, events: Self.events / 10, most: 24)
    }
}
