import RTC

/// Decides when to request a keyframe from a publisher. A keyframe is about ten times as large as an ordinary frame, so the
/// requests of many subscribers become one. A request without an answer is sent again.
struct KeyframeRequests: Sendable {
    /// The answer takes a round trip and a frame. A second request sooner than that would produce a second keyframe.
    static let shortestInterval = MediaInterval.milliseconds(300)
    /// At most one keyframe in this interval for subscribers that report losses, however often they do. New subscribers do
    /// not wait for it.
    static let refreshInterval = MediaInterval.milliseconds(1000)

    private(set) var isWanted = false
    private var requestedAt: MediaTime?
    private var answeredAt: MediaTime?

    /// Requests a keyframe for a subscriber that cannot start without one.
    mutating func want() { isWanted = true }

    /// Handles a subscriber's report that it cannot decode (PLI or FIR, RFC 4585 §6.3.1, RFC 5104 §4.3.1).
    mutating func requestRefresh(now: MediaTime) {
        if let answeredAt, now - answeredAt < Self.refreshInterval { return }
        isWanted = true
    }

    mutating func arrived(now: MediaTime) {
        isWanted = false
        answeredAt = now
    }

    /// Returns true if a request should be sent now; at most once in each `shortestInterval`.
    mutating func isDue(now: MediaTime) -> Bool {
        guard isWanted else { return false }
        if let requestedAt, now - requestedAt < Self.shortestInterval { return false }
        requestedAt = now
        return true
    }
}

/// The bytes that may be retransmitted to a subscriber: as many as it was sent originally, plus a burst. A subscriber that
/// requests everything many times gets no more, so spoofed requests cannot more than double the traffic.
struct RetransmissionBudget: Sendable {
    /// About 100 packets, in case they are lost together.
    static let burst = 150_000

    private var bytes = burst

    mutating func earn(_ count: Int) { bytes = min(Self.burst, bytes + count) }

    mutating func spend(_ count: Int) -> Bool {
        guard bytes >= count else { return false }
        bytes -= count
        return true
    }
}
