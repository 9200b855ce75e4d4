import Testing

/// Properties of the coordinator over random events: every action is fulfilled or failed once, every push is reported once
/// before its completion, audio is never enabled without a session, there are never two active calls, and every reported call
/// ends.
///
/// `CONFAB_CALL_SEED` reproduces a run, and `CONFAB_CALL_SEQUENCES` sets the number of sequences: 100000
/// take about 40 s.
@Suite struct CallPropertyTests {
    @Test func theFivePropertiesHoldForRandomEvents() {
        let first = Project.setting("CONFAB_CALL_SEED") ?? .random(in: 0 ... .max)
        let count = Project.setting("CONFAB_CALL_SEQUENCES") ?? 20_000
        print("calls of the app: \(count) sequences from seed \(first)")
        var (active, faults) = (0, 0)
        for seed in (0..<count).map({ first &+ $0 }) {
            var world = CallWorld(seed: seed)
            world.run(events: 10 + Int(seed % 50))
            active += world.activeCalls
            guard let fault = world.fault else { continue }
            faults += 1
            Issue.record("seed \(seed): \(fault)\n\(world.log)")
            if faults == 5 { return }
        }
        print("calls of the app: in an active call after \(active) events")
        #expect(active > 0)
    }
}
