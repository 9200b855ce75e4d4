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

    /// One second after a link has become five times slower, its queue is drained.
    @Test(
        "video that waited long may use the whole estimate while a queue is drained",
        arguments: 1...3 as ClosedRange<UInt64>)
    func late(seed: UInt64) throws {
        var conditions = Conditions(steps: [(0, 2500), (10_000, 500)])
        conditions.queue = 1000
        let path = SimulatedPath(conditions, seed: seed)
        path.run(seconds: 11)
        let (now, estimate) = (path.clock(11_000), try #require(path.control.estimate))
        #expect(path.control.isDraining(now: now))
        func bytes(isLate: Bool) -> Int {
            var (control, bytes) = (path.control, 0)
            for milliseconds in stride(from: 0.0, to: 200, by: 10) {
                let at = path.clock(11_000 + milliseconds)
                while control.maySendVideo(media: .zero, isLate: isLate, now: at) {
                    _ = control.sent(bytes: 1000, at: at)
                    bytes += 1000
                }
            }
            return bytes
        }
        let (usual, late) = (bytes(isLate: false), bytes(isLate: true))
        #expect(late > usual && late <= estimate.bytes(in: .milliseconds(300)), "seed \(seed): \(usual), \(late)")
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

    @Test("what was carried lately is remembered for some seconds, and forgotten when less arrives behind a queue")
    func carried() {
        var carried = SustainedBitrate()
        func second(_ count: Int64) -> MediaTime { MediaTime(nanoseconds: count * 1_000_000_000) }
        #expect(carried.bitrate == nil)
        carried.add(.kilobits(400), now: second(0))
        carried.add(.kilobits(250), now: second(4))
        #expect(carried.bitrate == .kilobits(400))
        carried.add(.kilobits(260), now: second(6))
        #expect(carried.bitrate == .kilobits(400))
        carried.add(.kilobits(240), now: second(12))
        #expect(carried.bitrate == .kilobits(260))
        carried.restart(at: .kilobits(100), now: second(13))
        #expect(carried.bitrate == .kilobits(100))
    }

    @Test("what a full queue drops is not the path's own loss")
    func lossesOfAQueue() {
        var loss = LossBasedEstimator()
        for step in 0..<40 {
            let isFull = (10..<15).contains(step)
            loss.add(
                arrived: isFull ? 20 : 30, lost: isFull ? 10 : 0, hasQueue: (10..<18).contains(step),
                acknowledged: .kilobits(500), estimate: .kilobits(500),
                now: MediaTime(nanoseconds: Int64(step) * 200_000_000))
            #expect(loss.withoutQueue == 0)
        }
        for step in 40..<80 {
            loss.add(
                arrived: 29, lost: 1, hasQueue: false, acknowledged: .kilobits(500), estimate: .kilobits(500),
                now: MediaTime(nanoseconds: Int64(step) * 200_000_000))
        }
        #expect(loss.withoutQueue > 0.02)
    }

    @Test("a receiver that never gives feedback is not judged")
    func deaf() throws {
        var conditions = Conditions(2000)
        conditions.lostFeedback = 1
        #expect(try run("no-feedback", conditions, seconds: 20).control.estimate == nil)
    }

    @Test(
        "a time without feedback lowers the estimate, and is soon made up for", arguments: 1...3 as ClosedRange<UInt64>)
    func silence(seed: UInt64) throws {
        // Nothing passes for 4 s, as in a tunnel, and nothing waits in a queue for so long.
        var conditions = Conditions(steps: [(0, 5000), (10_000, 1), (14_000, 5000)])
        conditions.queue = 100
        let path = try run("tunnel", conditions, seconds: 30, seed: seed)
        #expect(path.mean(\.estimate, from: 13.5, to: 14) < 1500, "seed \(seed)")
        #expect(path.mean(\.arrived, from: 17, to: 20) > 2000, "seed \(seed)")
    }

    @Test("a receiver that is busy for a moment is not taken for a slow link", arguments: [80, 150, 200, 400])
    func stall(milliseconds: Int) throws {
        var conditions = Conditions(20_000)
        conditions.isStalled = { (5000..<5000 + milliseconds).contains($0 % 10_000) }
        let path = try run("stall-\(milliseconds)-ms", conditions, seconds: 40)
        #expect(path.least(\.estimate, from: 2, to: 40) > 2100, "of 3000 kbit/s")
    }

    @Test("a receiver that is busy again and again is not taken for a slow link", arguments: [15, 25, 35, 45])
    func busy(milliseconds: Int) throws {
        var conditions = Conditions(20_000)
        conditions.isStalled = { $0 > 3000 && $0 % 120 < milliseconds }
        let path = try run("busy-\(milliseconds)-ms", conditions, seconds: 40)
        #expect(path.least(\.estimate, from: 2, to: 40) > 2100, "of 3000 kbit/s")
    }

    @Test("a longer way is not taken for a queue for more than some seconds", arguments: 1...3 as ClosedRange<UInt64>)
    func longerWay(seed: UInt64) throws {
        var conditions = Conditions(5000)
        conditions.shift = (10_000, 125)
        let path = try run("longer-way", conditions, seconds: 40, seed: seed)
        #expect(path.mean(\.arrived, from: 15, to: 20) > 1000, "seed \(seed)")
        #expect(path.mean(\.arrived, from: 25, to: 40) > 2000, "seed \(seed)")
    }

    @Test(
        "a TCP-like flow that begins leaves something to the other after 6 s", arguments: 1...3 as ClosedRange<UInt64>)
    func tcpBegins(seed: UInt64) throws {
        var conditions = Conditions(2000)
        (conditions.tcpFrom, conditions.queue) = (10_000, 200)
        let path = try run("tcp-begins", conditions, seconds: 40, seed: seed)
        for from in stride(from: 16.0, to: 37, by: 1) {
            let share = path.mean(\.arrived, from: from, to: from + 3) / 2000
            #expect(share > 0.1, "seed \(seed), from \(from) s")
        }
    }

    @Test("a queue that a TCP-like flow leaves behind is drained", arguments: 1...6 as ClosedRange<UInt64>)
    func tcpEnds(seed: UInt64) throws {
        var conditions = Conditions(700)
        (conditions.tcpFrom, conditions.tcpUntil, conditions.queue) = (10_000, 40_000, 300)
        let path = try run("tcp-ends", conditions, seconds: 80, seed: seed)
        let delay = path.mean(\.delay, from: 50, to: 80)
        #expect(delay < 60, "seed \(seed): \(delay) ms")
        #expect(path.mean(\.arrived, from: 60, to: 80) > 450, "seed \(seed)")
    }

    @Test("an estimate at its lowest rises again, even with nothing but padding to send")
    func lowest() throws {
        var conditions = Conditions(steps: [(0, 5000), (5000, 40), (15_000, 5000)])
        (conditions.hasAudio, conditions.paddingBytes) = (false, 290)
        let path = try run("lowest", conditions, seconds: 40)
        #expect(path.mean(\.estimate, from: 14, to: 15) < 100)
        #expect(path.mean(\.estimate, from: 34, to: 35) > 500)
    }

    @Test("a line that is slow from the beginning is noticed at once")
    func slowFromTheBeginning() throws {
        var conditions = Conditions(500)
        conditions.queue = 1000
        let path = try run("slow-from-the-beginning", conditions, seconds: 20)
        #expect(path.mean(\.estimate, from: 0.4, to: 0.8) < 700)
    }

    @Test("a link that lets bursts pass shows only short queues after probes", arguments: 1...3 as ClosedRange<UInt64>)
    func bursts(seed: UInt64) throws {
        var conditions = Conditions(steps: [(0, 3000), (5000, 500)])
        (conditions.queue, conditions.burst) = (1000, 10_000)
        let path = try run("bursts", conditions, seconds: 60, seed: seed)
        let delays = path.samples.filter { $0.at > 15 }.map(\.delay).sorted()
        #expect(delays[delays.count * 95 / 100] < 180, "seed \(seed)")
        #expect((delays.last ?? 0) < 250, "seed \(seed)")
        #expect(path.mean(\.arrived, from: 15, to: 60) > 300, "seed \(seed)")
    }

    @Test(
        "a path that becomes much slower is noticed by the first report that shows it",
        arguments: 1...3 as ClosedRange<UInt64>)
    func slowed(seed: UInt64) throws {
        var conditions = Conditions(steps: [(0, 5000), (5000, 500)])
        conditions.queue = 1000
        let path = try run("slowed", conditions, seconds: 10, source: 2000, seed: seed)
        let longest = path.samples.filter { $0.at > 5 }.map(\.delay).max() ?? 0
        #expect(longest < 800, "seed \(seed)")
    }

    @Test("a limit that was not needed for long is forgotten")
    func forgotten() throws {
        let path = try run("forgotten", Conditions(steps: [(0, 5000), (5000, 1500), (8000, 5000)]), seconds: 60)
        #expect(path.least(\.estimate, from: 5, to: 10) < 2000)
        #expect(path.control.estimate == nil)
    }

    @Test("no report makes the estimate leave its bounds, and honest ones are believed again afterwards")
    func hostile() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        var control = CongestionControl()
        for round in 0..<50_000 {
            let now = MediaTime(nanoseconds: 1_000_000_000 + Int64(round) * 5_000_000)
            let number = control.sent(bytes: Int.random(in: 0...3000, using: &random), at: now)
            parsing(Self.report(upTo: number, &random)) { memory in
                guard var compound = RTCPCompound(memory), case .transportFeedback(let report) = compound.next() else {
                    return
                }
                control.receive(report, now: now)
            }
            if round % 7 == 0 { control.handleTimeout(now: now) }
            if round % 900 == 0 { control.pathChanged() }
            let padding = control.padding(wanted: .kilobits(2000), media: .kilobits(500), now: now)
            #expect((0..<1_000_000).contains(padding))
            if let estimate = control.estimate {
                #expect(estimate >= CongestionControl.smallest && estimate <= CongestionControl.unlimited)
            }
            #expect(control.queueDelay >= .zero && (0...1).contains(control.lossRatio))
        }
    }

    /// A report with random statuses and times about packets near this number.
    private static func report(upTo number: UInt16, _ random: inout SeededGenerator) -> [UInt8] {
        func two(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 255)] }
        let base = number &- UInt16.random(in: 0...40, using: &random)
        let reference: [UInt8] = (0..<3).map { _ in [0, 0, 1, 127, 255].randomElement(using: &random) ?? 0 }
        var body = two(base) + two([1, 40, 2000, 65_535].randomElement(using: &random) ?? 1) + reference + [0]
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            body += two(
                [0x2028, 0x4028, 0x1fff, .random(in: 0...65_535, using: &random)].randomElement(using: &random) ?? 0)
        }
        for _ in 0..<Int.random(in: 0...200, using: &random) { body.append(.random(in: 0...255, using: &random)) }
        while body.count % 4 != 0 { body.append(0) }
        return [0x8f, 205] + two(UInt16(body.count / 4 + 2)) + [0, 0, 0, 1, 0, 0, 0, 2] + body
    }

    @Test("packets of the former path say nothing about the new one")
    func pathChanged() {
        var control = CongestionControl()
        var receiver = TransportFeedback()
        func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }
        func send(_ count: Int, from start: Int64, delay: Int64) {
            for index in 0..<Int64(count) {
                let at = start + index * 10
                receiver.receive(control.sent(bytes: 500, at: time(at)), at: time(at + delay))
            }
        }
        func report(at milliseconds: Int64) {
            parsing(written { _ = receiver.writeFeedback(sender: 1, media: 2, to: &$0) }) { memory in
                guard var compound = RTCPCompound(memory), case .transportFeedback(let report) = compound.next() else {
                    return
                }
                control.receive(report, now: time(milliseconds))
            }
        }
        send(20, from: 0, delay: 5)
        control.pathChanged()
        report(at: 210)
        send(20, from: 300, delay: 130)
        report(at: 700)
        #expect(control.queueDelay == .zero)
        #expect(control.estimate == nil)
    }
}
