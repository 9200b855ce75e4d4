import RTC

/// Decides how long a busy media loop waits before it reads again. Each wake-up has a fixed cost, and packets that are
/// read together leave in fewer messages. A loop with little work reads immediately.
struct WakeSlots: Equatable, Sendable {
    /// The minimum time between two reads of a busy loop. It delays a packet by about this time at most.
    static let slot = MediaInterval.milliseconds(2)
    /// The period over which wake-ups are counted.
    static let period = MediaInterval.milliseconds(100)
    /// The number of wake-ups in a period that makes a loop busy: 250 a second, about as many as three or four publishers cause.
    static let busy = 25
    /// The minimum number of wake-ups in a period for a busy loop to stay busy. It is lower than `busy`, because a loop that reads in
    /// slots wakes up less often: packets that caused 250 wake-ups a second then cause about 160.
    static let stillBusy = 10

    private var isBusy = false
    private var wakeUps = 0
    private var periodBegan = MediaTime(nanoseconds: .min)
    private var wokeAt = MediaTime(nanoseconds: .min)

    /// Records that packets woke the loop.
    mutating func woke(at now: MediaTime) {
        if periodBegan.nanoseconds == .min { periodBegan = now }
        if now - periodBegan >= Self.period {
            // A loop that was idle for longer than a period was not busy in it.
            isBusy = wakeUps >= (isBusy ? Self.stillBusy : Self.busy) && now - periodBegan < Self.period * 2
            (periodBegan, wakeUps) = (now, 0)
        }
        wakeUps += 1
        wokeAt = now
    }

    /// Returns how long to wait before the next read; zero unless the loop is busy.
    func pause(at now: MediaTime) -> MediaInterval {
        guard isBusy else { return .zero }
        return max(.zero, wokeAt + Self.slot - now)
    }
}
