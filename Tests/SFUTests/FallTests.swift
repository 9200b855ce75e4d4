import Foundation
import RTC
import TestSupport
import Testing

@testable import SFU

/// What happens after a subscriber's link has become slow, in simulated time: 60 s at 500 kbit/s. `CONFAB_FALL_SEEDS` sets how
/// many runs there are of each case. With four or more, both lengths of the queue are tried. A run takes seconds of processor
/// time, so few are made by default, and one at a time.
@Suite("A link that becomes slow", .serialized)
struct FallTests {
    private static let runs = ProcessInfo.processInfo.environment["CONFAB_FALL_SEEDS"].flatMap { UInt64($0) } ?? 1
    private static let seeds = 1...max(1, runs)
    /// The share of audio that may be concealed: in a single run somewhat more than in the mean of several.
    private static let concealed = runs >= 4 ? 0.005 : 0.006
    /// The longest time that a packet waits in the link's queue, in milliseconds.
    private static let queues: [Int64] = runs >= 4 ? [300, 1000] : [1000]

    @Test(
        "conceals little audio, drains its queue, and carries the smaller layer soon and the best one again after relief",
        arguments: [1, 4], queues)
    func fall(publishers: Int, queue: Int64) throws {
        var falls: [SimulatedFall] = []
        for seed in Self.seeds {
            let fall = try SimulatedFall(seed: seed, publishers: publishers, queue: queue)
            print("\(publishers) publishers, a queue of \(queue) ms, seed \(seed): \(fall)")
            #expect(fall.queueAfterTwoSeconds <= 200)
            #expect(fall.smallerLayer ?? .max <= 2000)
            falls.append(fall)
        }
        let concealed = falls.reduce(0) { $0 + $1.concealed } / Double(falls.count)
        let best = falls.reduce(0) { $0 + ($1.bestLayers ?? 60_000) } / Int64(falls.count)
        #expect(concealed <= Self.concealed)
        // Probes are careful after a result was refuted, so a single run may take longer.
        #expect(best <= 8000)
    }

    /// As the shaper of `Benchmarks/networks`: 10 kB pass at once. The queue then begins later, and grows as fast.
    @Test("does so behind a link that lets bursts pass", arguments: queues)
    func bursts(queue: Int64) throws {
        var concealed = 0.0
        for seed in Self.seeds {
            let fall = try SimulatedFall(seed: seed, publishers: 4, queue: queue, burst: 10_000)
            print("10 kB pass at once, a queue of \(queue) ms, seed \(seed): \(fall)")
            #expect(fall.queueAfterTwoSeconds <= 200)
            #expect(fall.smallerLayer ?? .max <= 2000)
            #expect(fall.bestLayers ?? .max <= 8000)
            concealed += fall.concealed / Double(Self.seeds.count)
        }
        #expect(concealed <= Self.concealed)
    }
}
