/// Limits what the server adds to a subscriber's media: retransmissions and padding.
///
/// Media itself is never delayed. Its publishers have paced it, and a queue for each subscriber would cost memory and delay. So
/// media only uses the budget up, below zero if need be, and what the server adds waits for the rest.
struct Pacer: Sendable {
    /// How much faster than the estimate a burst may be (libwebrtc's pacing factor).
    static let factor = 2.5
    /// The largest burst, in time at the paced bitrate.
    private static let burst = MediaInterval.milliseconds(40)

    /// Bytes that were sent and not yet paid for by time. Bounded, because nothing is added for long times.
    private var debt = 0
    private static let maxDebt = 50_000
    private var updatedAt: MediaTime?

    /// Counts bytes of media.
    mutating func sent(_ bytes: Int) { debt = min(debt + bytes, Self.maxDebt) }

    /// Returns how many bytes may be added now.
    mutating func room(at estimate: Bitrate, now: MediaTime) -> Int {
        let paced = estimate * Self.factor
        if let updatedAt { debt = max(0, debt - paced.bytes(in: now - updatedAt)) }
        updatedAt = now
        return max(0, paced.bytes(in: Self.burst) - debt)
    }
}
