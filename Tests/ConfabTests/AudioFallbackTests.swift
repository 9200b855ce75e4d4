import Testing
import Wire

@testable import Confab

/// The same table as in `web/test/unit/audio-fallback.test.mjs`.
@Suite("The audio fallback of a publisher") struct AudioFallbackTests {
    private func at(_ seconds: Double) -> Timestamp { Timestamp(milliseconds: Int64(seconds * 1000)) }

    /// Runs the machine as a publisher does: when the judgment changes, and when something is due.
    ///
    /// - Parameter judgments: from which second on the network is too slow, or is not.
    /// - Returns: what happened, with the times in seconds.
    private func run(_ judgments: [(Double, Bool)], until end: Double) -> [String] {
        var rules = AudioFallback()
        var happened: [String] = []
        var upcoming = judgments[...]
        while true {
            let next = upcoming.first.map { at($0.0) }
            guard let now = [next, rules.nextTimeout].compactMap(\.self).min(), now <= at(end) else { return happened }
            let effects: [AudioFallback.Effect]
            if now == next, let (_, isTooSlow) = upcoming.popFirst() {
                effects = rules.handle(.judged(isTooSlow: isTooSlow), now: now)
            } else {
                effects = rules.handleTimeout(now: now)
            }
            happened += effects.map { "\(Double(now.milliseconds) / 1000) \($0)" }
        }
    }

    @Test("warns at once, stops the video after 5 s, and sends it again after 5 s on a better network")
    func wholeCircle() {
        #expect(run([(10, true), (30, false)], until: 1000) == ["10.0 warned", "15.0 stopped", "35.0 resumed"])
    }

    @Test("lifts the warning if the network recovers first")
    func recovery() {
        #expect(
            run([(10, true), (14, false), (20, true), (24.9, false)], until: 1000) == [
                "10.0 warned", "14.0 warningLifted", "20.0 warned", "24.9 warningLifted",
            ])
    }

    @Test("does not send the video again while the network is too slow even for the audio")
    func audioSuffers() {
        let judgments: [(Double, Bool)] = [(0, true), (20, false), (24, true), (60, false), (64, true)]
        #expect(run(judgments, until: 10_000) == ["0.0 warned", "5.0 stopped"])
    }

    @Test("tries again after pauses that double while the video fails soon, up to a minute")
    func pauses() throws {
        // Too slow from a second after each return, and good enough from a second after each stop.
        var (rules, now, pauses) = (AudioFallback(), 0.0, [Double]())
        for _ in 0..<6 {
            #expect(rules.handle(.judged(isTooSlow: true), now: at(now)) == [.warned])
            now += 5
            #expect(rules.handleTimeout(now: at(now)) == [.stopped])
            now += 1
            #expect(rules.handle(.judged(isTooSlow: false), now: at(now)) == [])
            let due = try #require(rules.nextTimeout)
            pauses.append(Double((due - at(now)).wholeMilliseconds) / 1000)
            #expect(rules.handleTimeout(now: due - .milliseconds(1)) == [])
            #expect(rules.handleTimeout(now: due) == [.resumed])
            now = Double(due.milliseconds) / 1000 + 1
        }
        #expect(pauses == [5, 10, 20, 40, 60, 60])
        now += 30
        #expect(rules.handle(.judged(isTooSlow: true), now: at(now)) == [.warned])
        #expect(rules.handleTimeout(now: at(now + 5)) == [.stopped])
        #expect(rules.pause == .seconds(5), "a video that was sent for long starts over")
    }

    @Test("has nothing due while the video is sent on a good network")
    func quiet() {
        var rules = AudioFallback()
        #expect(rules.nextTimeout == nil)
        #expect(rules.handle(.judged(isTooSlow: false), now: at(1e6)) == [])
        #expect(rules == AudioFallback())
    }

    @Test("starts afresh when the application turns the video off")
    func turnedOff() {
        var rules = AudioFallback()
        #expect(rules.handle(.videoTurned(isOn: false), now: at(0)) == [])
        _ = rules.handle(.judged(isTooSlow: true), now: at(0))
        #expect(rules.handle(.videoTurned(isOn: false), now: at(1)) == [.warningLifted])
        #expect(rules == AudioFallback())
        _ = rules.handle(.judged(isTooSlow: true), now: at(2))
        _ = rules.handleTimeout(now: at(7))
        // A stopped video that is turned off does not return.
        #expect(rules.handle(.videoTurned(isOn: false), now: at(8)) == [.forgotten])
        #expect(rules == AudioFallback())
    }

    @Test("judges again when the application turns the video on, also if it is on already")
    func turnedOn() {
        var rules = AudioFallback()
        #expect(rules.handle(.videoTurned(isOn: true), now: at(0)) == [])
        #expect(rules == AudioFallback())
        _ = rules.handle(.judged(isTooSlow: true), now: at(0))
        #expect(rules.handle(.videoTurned(isOn: true), now: at(1)) == [.warningLifted, .warned])
        #expect(rules.handleTimeout(now: at(6)) == [.stopped])
        // What was judged meanwhile was the audio.
        #expect(rules.handle(.videoTurned(isOn: true), now: at(8)) == [.resumed])
        #expect(rules == AudioFallback())
    }
}
