import Testing

@testable import RTC

/// When probes are sent and how far they go, with results that a test makes up.
@Suite("Probing a path")
struct ProbingTests {
    /// Probes of a path, and what the path seems to carry while one is sent.
    private struct Path {
        var probing = Probing()
        var now = MediaTime(nanoseconds: 0)
        var estimate = Bitrate.kilobits(400)
        private var number: Int64 = 0

        /// Waits until a probe starts, sends it, and reports that all of it arrived as fast as it was sent.
        /// - Returns: the probe's target, and its result if it was above the estimate.
        mutating func probe() -> (target: Bitrate, result: Bitrate?) {
            while probing.probe == nil {
                now = now + .milliseconds(50)
                probing.begin(wanted: .kilobits(5000), estimate: estimate, next: number, now: now)
            }
            let target = probing.probe?.target ?? .zero
            while probing.probe?.isSending ?? false {
                let packet = SentPackets.Packet(
                    sentAt: now, bytes: target.bytes(in: .milliseconds(5)), wasLost: false, hasArrived: false)
                probing.add(number, packet, arrival: now - MediaTime(nanoseconds: 0))
                (number, now) = (number + 1, now + .milliseconds(5))
                probing.endIfDue(before: number, now: now)
            }
            return (target, probing.takeResult(reported: number, estimate: estimate, now: now))
        }

        /// Reports queues until the result is verified or refuted.
        /// - Returns: the estimate before the probe if it was refuted.
        mutating func verify(queues milliseconds: [Int64]) -> Bitrate? {
            for queue in milliseconds where probing.isUnverified {
                now = now + .milliseconds(100)
                if let former = probing.verify(queue: .milliseconds(queue), now: now) { return former }
            }
            return nil
        }
    }

    private let none = [Int64](repeating: 0, count: 8)

    @Test("goes further after each success")
    func further() throws {
        var path = Path()
        let (target, found) = path.probe()
        #expect(target == .kilobits(600))
        path.estimate = try #require(found)
        #expect(path.verify(queues: none) == nil)
        #expect(path.probe().target == path.estimate * 2.0)
    }

    @Test("goes only a little further after a queue has refuted a result, until one of that size is verified")
    func careful() throws {
        var path = Path()
        let refuted = try #require(path.probe().result)
        #expect(path.verify(queues: [30, 30, 30]) == .kilobits(400))
        var probes = 0
        while path.estimate < refuted {
            let (target, result) = path.probe()
            #expect(target == path.estimate * 1.15)
            path.estimate = try #require(result)
            #expect(path.verify(queues: none) == nil)
            probes += 1
        }
        #expect(probes == 3)
        #expect(path.probe().target == path.estimate * 2.0)
    }

    @Test("believes two reports of a queue once a result was refuted, and three before")
    func reports() throws {
        var path = Path()
        _ = path.probe()
        #expect(path.verify(queues: [30, 30, 0, 30, 30, 0, 0, 0]) == nil)
        _ = path.probe()
        #expect(path.verify(queues: [30, 30, 30]) != nil)
        _ = path.probe()
        #expect(path.verify(queues: [30, 0, 30, 30]) != nil)
    }

    @Test("forgets what was refuted when the path may have changed")
    func forgets() {
        var path = Path()
        _ = path.probe()
        #expect(path.verify(queues: [100]) != nil)
        path.probing.retry(now: path.now)
        #expect(path.probe().target == .kilobits(600))
    }
}
