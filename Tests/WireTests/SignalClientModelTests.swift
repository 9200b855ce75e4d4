import Foundation
import Testing
import Wire

/// Tests a `SignalClient` on a transport that can be cut at any moment.
///
/// `CONFAB_LINE_SEED` reproduces a run, and `CONFAB_LINE_SEEDS` sets the number of seeds per test.
@Suite struct SignalClientModelTests {
    private static func setting(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    private func seeds(_ usual: UInt64) -> [UInt64] {
        let first = Self.setting("CONFAB_LINE_SEED") ?? .random(in: 0 ... .max)
        let count = Self.setting("CONFAB_LINE_SEEDS") ?? usual
        print("client line: \(count) seeds from \(first)")
        return (0..<count).map { first &+ $0 }
    }

    private func expectOneOutcomeEach(_ model: ModelLine, seed: UInt64) {
        #expect(model.faults == [], "seed \(seed)")
        #expect(model.line.unansweredCount == 0, "seed \(seed)")
        #expect(model.outcomes.count == Int(model.asked), "seed \(seed)")
    }

    @Test func everyRequestHasOneOutcomeAndEveryEventArrivesOnceInOrder() {
        var (resumes, restarts, answers) = (0, 0, 0)
        for seed in seeds(30) {
            let model = ModelLine(seed: seed)
            model.run(for: .seconds(200))
            (model.breaks, model.duplicates) = (0, 0)
            model.run(for: .seconds(60))
            model.isTalkative = false
            model.run(for: .seconds(5))
            expectOneOutcomeEach(model, seed: seed)
            #expect(model.line.isConnected, "seed \(seed)")
            #expect(model.isUpToDate, "seed \(seed)")
            resumes += model.resumes
            restarts += model.restarts
            answers += model.outcomes.values.filter { $0 == "answered" }.count
        }
        print("client line: \(resumes) resumes, \(restarts) restarts, \(answers) answers")
        #expect(resumes > 0)
        #expect(restarts > 0)
    }

    @Test func leavingAtAnyMomentGivesEveryRequestOneOutcome() {
        for seed in seeds(60) {
            let model = ModelLine(seed: seed)
            model.run(for: .milliseconds(Int64(seed % 40_000)))
            model.leave()
            model.run(for: .seconds(10))
            expectOneOutcomeEach(model, seed: seed)
            #expect(model.line.ending != nil, "seed \(seed)")
        }
    }
}
