import RTC

/// When a publisher is asked for a keyframe. Each costs ten times an ordinary frame, so requests of many subscribers
/// become one, and one that was not answered is repeated.
struct KeyframeRequests: Sendable {
    /// A request takes a round trip and a frame to be answered; asking again sooner gets a second keyframe.
    static let shortestInterval = MediaInterval.milliseconds(300)
    /// For those who lost something, and may say so as often as they like; one who joins does not wait for that.
    static let complaintInterval = MediaInterval.milliseconds(1000)

    private(set) var isWanted = false
    private var requestedAt: MediaTime?
    private var answeredAt: MediaTime?

    /// Somebody cannot begin without one.
    mutating func want() { isWanted = true }

    /// A subscriber says that it cannot decode (RFC 4585 §6.3.1, RFC 5104 §4.3.1).
    mutating func complain(now: MediaTime) {
        if let answeredAt, now - answeredAt < Self.complaintInterval { return }
        isWanted = true
    }

    mutating func arrived(now: MediaTime) {
        isWanted = false
        answeredAt = now
    }

    /// Whether to ask now; at most once in the interval.
    mutating func isDue(now: MediaTime) -> Bool {
        guard isWanted else { return false }
        if let requestedAt, now - requestedAt < Self.shortestInterval { return false }
        requestedAt = now
        return true
    }
}

/// How much a subscriber may have sent again: as much as was sent to it anew, and a burst. Whoever asks for everything
/// many times over gets no more than that, whatever it spoofs (no amplification beyond one).
struct RetransmissionBudget: Sendable {
    /// A lost burst of 100 packets at once.
    static let burst = 150_000

    private var bytes = burst

    mutating func earned(_ count: Int) { bytes = min(Self.burst, bytes + count) }

    mutating func spend(_ count: Int) -> Bool {
        guard bytes >= count else { return false }
        bytes -= count
        return true
    }
}
