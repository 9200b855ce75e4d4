import Testing

@testable import RTC

/// Whose queue it is, on a link that is modeled as a fluid: what is sent above its bitrate lengthens the queue.
@Suite("A competitor for the path")
struct CrossTrafficDetectorTests {
    /// A flow under `CrossTrafficDetector`, next to another one.
    private struct Flow {
        var competition = CrossTrafficDetector()
        /// In kilobits per second: what the link carries, and what this flow sends in all and at least.
        var (link, usual, least) = (500.0, 500.0, 150.0)
        /// The queue that another flow keeps full, in seconds; nil if there is none.
        var held: Double?
        private(set) var queue = 0.3
        private(set) var step: Int64 = 0
        /// The bitrates that trials have shown, in kilobits per second.
        private(set) var found: [Int64] = []

        private func interval(_ seconds: Double) -> MediaInterval { MediaInterval(nanoseconds: Int64(seconds * 1e9)) }

        mutating func run(seconds: Int) {
            for _ in 0..<seconds * 20 {
                step += 1
                let now = MediaTime(nanoseconds: step * 50_000_000)
                let sent = competition.trial != nil ? max(least, usual / 2) : usual
                competition.sent(Int(sent * 50 / 8))
                let arriving = held != nil ? sent * 0.9 : queue > 0 ? link : sent
                queue = held ?? min(0.45, max(0, queue + (sent - link) / link * 0.05))
                competition.update(
                    queue: interval(queue), isDraining: false, arriving: .kilobits(Int64(arriving)), now: now)
                let result = competition.endTrial(queue: interval(queue), roundTrip: .milliseconds(50), now: now)
                if let result { found.append(result.bitsPerSecond / 1000) }
            }
        }
    }

    @Test("a queue that is gone when less is sent was the flow's own")
    func own() {
        var flow = Flow()
        flow.run(seconds: 6)
        #expect(!flow.competition.isPresent && flow.queue < 0.015)
        #expect(flow.found == [500])
    }

    @Test("a queue that stays although less is sent is another flow's, as long as that sends")
    func other() {
        var flow = Flow()
        flow.held = 0.2
        flow.run(seconds: 6)
        #expect(flow.competition.isPresent && flow.found == [])
        flow.run(seconds: 60)
        #expect(flow.competition.isPresent && flow.found == [], "further trials show the same")
        // What is left is this flow's own, because it still sends all that the link carries.
        flow.held = nil
        flow.run(seconds: 41)
        #expect(!flow.competition.isPresent && flow.queue < 0.015)
    }

    @Test("a queue behind which hardly less can be sent never counts as another flow's for long")
    func audioOnly() {
        var flow = Flow()
        flow.least = 500
        var present = 0
        for _ in 0..<60 {
            flow.run(seconds: 1)
            if flow.competition.isPresent { present += 1 }
        }
        #expect(present < 45)
    }
}
