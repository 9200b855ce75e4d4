import RTC
import TestSupport
import Testing

@testable import MediaFiles

@Suite("The timeline of a stream")
struct StreamTimelineTests {
    /// A publisher whose clock and sound card are wrong, behind a network with jitter. Times are in seconds on our clock.
    private struct Publisher {
        var clock = 1 + 200e-6
        var card = 1 - 150e-6
        var timeline = StreamTimeline()
        var random: SeededGenerator

        private func time(_ seconds: Double) -> MediaTime { MediaTime(nanoseconds: Int64(seconds * 1e9)) }

        /// A packet takes 20 to 50 ms.
        private mutating func arrival(_ sent: Double) -> MediaTime {
            time(sent + 0.02 + Double.random(in: 0...0.03, using: &random))
        }

        /// Both timestamps wrap in the first minutes.
        private func timestamp(isVideo: Bool, _ sent: Double) -> UInt32 {
            let ticks = isVideo ? sent * 90_000 * clock : sent * 48_000 * card
            return UInt32(truncatingIfNeeded: 0xffff_0000 + Int64(ticks))
        }

        mutating func report(isVideo: Bool, _ sent: Double) {
            let ntp = NTPTime(0xe000_0000_0000_0000) + MediaInterval(nanoseconds: Int64(sent * clock * 1e9))
            timeline.report(
                isVideo: isVideo, ntp: ntp, timestamp: timestamp(isVideo: isVideo, sent), arrival: arrival(sent))
        }

        /// Returns by how many milliseconds a frame is placed later than it was captured.
        mutating func place(isVideo: Bool, _ sent: Double, mayJump: Bool) -> Double {
            let placed = timeline.place(
                isVideo: isVideo, timestamp: timestamp(isVideo: isVideo, sent), arrival: arrival(sent), mayJump: mayJump
            )
            return Double(placed.nanoseconds) / 1e6 - sent * 1e3
        }
    }

    @Test(
        "audio and video stay within 40 ms for an hour of drift, jitter, and 2 % loss, and within 20 ms after ten seconds",
        arguments: [0, 0.5, 2])
    func drift(_ audioStart: Double) {
        let seed = UInt64.random(in: 0...999_999)
        print("drift: seed \(seed)")
        var publisher = Publisher(random: SeededGenerator(seed: seed))
        var (audio, video): (Double?, Double?) = (nil, nil)
        var (worst, worstLater) = (0.0, 0.0)
        for step in 0..<180_000 {
            let now = Double(step) * 0.02
            if step % 50 == 25 { publisher.report(isVideo: true, now) }
            if step % 250 == 200, now > audioStart { publisher.report(isVideo: false, now) }
            let isLost = Int.random(in: 0..<50, using: &publisher.random) == 0
            if !isLost, now >= audioStart { audio = publisher.place(isVideo: false, now, mayJump: false) }
            if !isLost, step % 2 == 0 { video = publisher.place(isVideo: true, now, mayJump: step % 500 == 0) }
            guard let audio, let video else { continue }
            worst = max(worst, abs(audio - video))
            if now > audioStart + 10 { worstLater = max(worstLater, abs(audio - video)) }
        }
        print("drift: \(worst) ms at most, \(worstLater) ms after ten seconds")
        #expect(worst <= 40 && worstLater <= 20, "\(worst) ms, later \(worstLater) ms, seed \(seed)")
    }

    @Test("timestamps that jump are placed by arrival, and never leave a gap of hours")
    func jump() {
        var timeline = StreamTimeline()
        let start = MediaTime(nanoseconds: 0)
        _ = timeline.place(isVideo: false, timestamp: 0, arrival: start, mayJump: false)
        let later = start + .milliseconds(20)
        #expect(timeline.place(isVideo: false, timestamp: 0x4000_0000, arrival: later, mayJump: false) == later)
    }

    @Test("a report that contradicts the arrival of packets by more than ten seconds is ignored")
    func wrongReport() {
        var timeline = StreamTimeline()
        let now = MediaTime(nanoseconds: 5_000_000_000)
        timeline.report(isVideo: true, ntp: NTPTime(1 << 60), timestamp: 90_000 * 3_600, arrival: now)
        #expect(timeline.place(isVideo: true, timestamp: 0, arrival: now, mayJump: true) == now)
    }

    @Test("audio that is off by more than 100 ms is corrected at the next silence, and otherwise at 0.5 percent")
    func silence() {
        var timeline = StreamTimeline()
        let start = MediaTime(nanoseconds: 0)
        _ = timeline.place(isVideo: false, timestamp: 0, arrival: start, mayJump: false)
        // The report says that the track is 200 ms later than the arrival of its first packet suggested.
        timeline.report(isVideo: false, ntp: NTPTime(1 << 60), timestamp: 0 &- 9_600, arrival: start)
        let second = timeline.place(isVideo: false, timestamp: 960, arrival: start + .milliseconds(20), mayJump: false)
        #expect(second == start + .microseconds(20_100))
        let third = timeline.place(isVideo: false, timestamp: 1_920, arrival: start + .milliseconds(40), mayJump: true)
        #expect(third == start + .milliseconds(40 + 200))
    }
}
