import Signaling
import Testing
import Wire

/// Random events among people who call each other. All rules are checked after each event.
@Suite struct CallModelTests {
    private func run(_ world: CallWorld, events: Int) {
        world.run("calls of \(world.identities.count) people", events: events, step: world.step) {
            world.empty()
            world.settle()
        }
    }

    /// Raises the limits, because random people call far more often than real ones. Other tests cover the limits.
    private func unlimited(_ rules: inout Rules) {
        rules.callsPlaced = .init(perSecond: 10, burst: 1000)
        rules.ringsReceived = .init(perSecond: 10, burst: 1000)
        rules.unsuccessfulCallLimit = 1000
    }

    @Test func everyRuleOfCallsHoldsAfterEveryEvent() {
        run(CallWorld(people: 50, unlimited), events: ModelRun.events * 7 / 10)
    }

    /// There are so few people that calls often cross, wait, or find the callee busy.
    @Test func everyRuleOfCallsHoldsAmongVeryFewPeople() {
        run(CallWorld(people: 6, unlimited), events: ModelRun.events * 2 / 10)
    }

    @Test func everyRuleOfCallsHoldsWithTheLimitsOfRealPeople() {
        run(CallWorld(people: 20), events: ModelRun.events / 10)
    }
}
