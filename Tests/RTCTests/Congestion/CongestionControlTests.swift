import TestSupport
import Testing

@testable import RTC

/// Congestion control over a simulated link, in simulated time. `make plots` draws each run.
@Suite("Congestion control")
struct CongestionControlTests {
    typealias Conditions = SimulatedPath.Conditions

    private func run(
        _ name: String, _ conditions: Conditions, seconds: Int, source: Double = 3000, seed: UInt64 = 1,
        cubic: Bool = false
    ) throws -> SimulatedPath {
        let path = SimulatedPath(conditions, source: source, seed: seed, cubic: cubic)
        path.run(seconds: seconds)
        if seed == 1 { try CongestionPlot(name: name, samples: path.samples).write() }
        return path
    }

    /// Checks that the mean of the estimate is within 20 % of the link.
    private func follows(_ path: SimulatedPath, from: Double, to: Double, seed: UInt64) {
        let (estimate, link) = (path.mean(\.estimate, from: from, to: to), path.mean(\.link, from: from, to: to))
        #expect(abs(estimate - link) <= link * 0.2, "seed \(seed), \(from) to \(to) s: \(estimate) of \(link) kbit/s")
    }

    @Test("a line that carries everything is never limited", arguments: 1...3 as ClosedRange<UInt64>)
    func good(seed: UInt64) throws {
        let path = try run("good", Conditions(5000), seconds: 30, seed: seed)
        #expect(path.control.estimate == nil && path.lostPackets == 0, "seed \(seed)")
    }

    @Test("the estimate follows the link down and up", arguments: 1...3 as ClosedRange<UInt64>)
    func steps(seed: UInt64) throws {
        let steps = [(0, 2500.0), (20_000, 800), (40_000, 1600), (60_000, 500), (80_000, 2500)]
        let path = try run("steps", Conditions(steps: steps.map { (from: $0.0, rate: $0.1) }), seconds: 100, seed: seed)
        for (from, to) in [(24.0, 40.0), (50, 60), (64, 80), (92, 100)] {
            follows(path, from: from, to: to, seed: seed)
        }
    }

    @Test("a queue of one second stays shorter than 200 ms", arguments: 1...3 as ClosedRange<UInt64>)
    func bufferbloat(seed: UInt64) throws {
        var conditions = Conditions(steps: [(0, 3500), (10_000, 500), (40_000, 3500)])
        conditions.queue = 1000
        let path = try run("bufferbloat", conditions, seconds: 60, seed: seed)
        let delay = path.most(\.delay, from: 15, to: 40)
        #expect(delay < 200, "seed \(seed): \(delay) ms")
        follows(path, from: 15, to: 40, seed: seed)
        #expect(path.mean(\.arrived, from: 55, to: 60) > 2500, "seed \(seed)")
    }

    @Test(
        "shares a link with a TCP-like flow", arguments: [false, true], 1...3 as ClosedRange<UInt64>)
    func shared(cubic: Bool, seed: UInt64) throws {
        for queue in [100.0, 200] {
            var conditions = Conditions(2000)
            (conditions.tcpFrom, conditions.queue) = (10_000, queue)
            let path = try run(
                "tcp-\(cubic ? "cubic" : "reno")-\(Int(queue))-ms", conditions, seconds: 120, seed: seed, cubic: cubic)
            let share = path.mean(\.arrived, from: 30, to: 120) / 2000
            #expect((0.3...0.7).contains(share), "cubic \(cubic), queue \(queue) ms, seed \(seed): \(share)")
        }
    }

    @Test("losses and jitter of a radio link are not taken for congestion", arguments: 1...3 as ClosedRange<UInt64>)
    func radio(seed: UInt64) throws {
        var conditions = Conditions(2000)
        (conditions.loss, conditions.jitter) = (0.03, 80)
        let path = try run("radio", conditions, seconds: 60, seed: seed)
        follows(path, from: 20, to: 60, seed: seed)
    }

    @Test("a queue too short to show a delay is noticed by its losses", arguments: 1...3 as ClosedRange<UInt64>)
    func short(seed: UInt64) throws {
        var conditions = Conditions(1500)
        conditions.queue = 60
        let path = try run("short-queue", conditions, seconds: 60, seed: seed)
        follows(path, from: 15, to: 60, seed: seed)
        #expect(Double(path.lostPackets) < 0.15 * Double(path.sentPackets), "seed \(seed): \(path.lostPackets)")
    }

    @Test("feedback may be lost, late and out of order", arguments: 1...3 as ClosedRange<UInt64>)
    func feedback(seed: UInt64) throws {
        var conditions = Conditions(steps: [(0, 2000), (20_000, 700), (40_000, 2000)])
        (conditions.lostFeedback, conditions.lateFeedback) = (0.2, 0.2)
        let path = try run("feedback", conditions, seconds: 70, seed: seed)
        for (from, to) in [(26.0, 40.0), (60, 70)] { follows(path, from: from, to: to, seed: seed) }
    }

    @Test("without any feedback the estimate falls, and it rises again afterwards")
    func silence() throws {
        var conditions = Conditions(2000)
        conditions.lostFeedback = 1
        let path = try run("silence", conditions, seconds: 20)
        #expect(path.control.estimate == nil, "a receiver that never gave feedback is not judged")
    }
}
