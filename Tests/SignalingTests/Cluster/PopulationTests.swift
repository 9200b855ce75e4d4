import Testing

/// A population on many nodes. `scripts/soak population` runs the same with many more people.
@Suite struct PopulationTests {
    @Test func `a population on many nodes keeps the rules of a cluster`() {
        let run = PopulationRun(
            people: 1200, nodes: 3, minutes: 1, filling: .seconds(20), seed: ModelRun.seed, project: Stage.project,
            isAlone: false)
        for fault in run.findFaults() { Issue.record("population, seed \(run.seed): \(fault)") }
    }
}
