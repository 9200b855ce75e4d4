import RTC
import Testing

@testable import Server

@Suite("The slots in which a media loop reads")
struct WakeSlotsTests {
    private var now = MediaTime(nanoseconds: 1_000_000_000)
    private var slots = WakeSlots()

    /// Wakes the loop at this interval for some time.
    private mutating func wake(every interval: MediaInterval, for time: MediaInterval) {
        let end = now + time
        while now < end {
            slots.woke(at: now)
            now = now + interval
        }
    }

    @Test("a loop that is not busy reads immediately")
    mutating func quiet() {
        wake(every: .milliseconds(5), for: .seconds(1))
        #expect(slots.pause(at: now) == .zero)
    }

    @Test("a busy loop reads at most once in a slot")
    mutating func busy() {
        wake(every: .microseconds(100), for: .milliseconds(300))
        slots.woke(at: now)
        #expect(slots.pause(at: now) == WakeSlots.slot)
        #expect(slots.pause(at: now + .microseconds(400)) == .microseconds(1600))
        #expect(slots.pause(at: now + .milliseconds(3)) == .zero, "work that takes longer than a slot is not delayed")
    }

    @Test("a loop that reads in slots stays busy as long as packets wake it often")
    mutating func stays() {
        wake(every: .microseconds(100), for: .milliseconds(300))
        // More often than `stillBusy`, and less often than `busy`.
        wake(every: .milliseconds(6), for: .seconds(1))
        #expect(slots.pause(at: now) == .zero)
        slots.woke(at: now)
        #expect(slots.pause(at: now) == WakeSlots.slot)
        wake(every: .milliseconds(15), for: .seconds(1))
        slots.woke(at: now)
        #expect(slots.pause(at: now) == .zero)
    }

    @Test("the first packet after a silence is read immediately")
    mutating func silence() {
        wake(every: .microseconds(100), for: .milliseconds(300))
        now = now + .seconds(10)
        slots.woke(at: now)
        #expect(slots.pause(at: now) == .zero)
    }
}
