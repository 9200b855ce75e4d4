/// Limits what the server adds to a subscriber's media: retransmissions and padding.
///
/// Media itself is never delayed. Its publishers have paced it, and a queue for each subscriber would cost memory and delay. So
/// media only uses the budget up, below zero if need be, and what the server adds waits for the rest.
struct Pacer: Sendable {
    /// How much faster than the estimate a burst may be (libwebrtc's pacing factor).
    static let factor = 2.5
    /// The largest burst, in time at the paced bitrate.
    private static let burst = MediaInterval.milliseconds(40)

    /// The largest burst above the budget, in time at the budget's bitrate.
    private static let excess = MediaInterval.milliseconds(150)
    /// The longest time for which nothing is added after a burst of media, such as a keyframe: 100 ms after this.
    private static let longestDebt = MediaInterval.milliseconds(250)

    /// Bytes that were sent and not yet paid for by time, at the paced bitrate and at the budget's. Bounded, because nothing is
    /// added for long times.
    private var (debt, budgetDebt) = (0, 0)
    private static let maxDebt = 50_000
    private var updatedAt: MediaTime?

    /// Counts bytes of media.
    mutating func sent(_ bytes: Int) {
        debt = min(debt + bytes, Self.maxDebt)
        budgetDebt = min(budgetDebt + bytes, Self.maxDebt)
    }

    /// Returns how many bytes may be added now.
    /// - Parameter budget: the bitrate for all that is sent, averaged over a longer time than a burst.
    mutating func room(at estimate: Bitrate, in budget: Bitrate, now: MediaTime) -> Int {
        let paced = estimate * Self.factor
        if let updatedAt {
            debt = max(0, debt - paced.bytes(in: now - updatedAt))
            budgetDebt = max(0, budgetDebt - budget.bytes(in: now - updatedAt))
        }
        budgetDebt = min(budgetDebt, budget.bytes(in: Self.longestDebt))
        updatedAt = now
        return max(0, min(paced.bytes(in: Self.burst) - debt, budget.bytes(in: Self.excess) - budgetDebt))
    }
}
