import Testing
import Wire

@testable import Confab

/// The rules of the fallback that only Swift has; `protocol/scripts/fallback.json` has the others.
@Suite("The audio fallback of a publisher") struct AudioFallbackTests {
    private func at(_ seconds: Double) -> Timestamp { Timestamp(milliseconds: Int64(seconds * 1000)) }

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
