import RTC

/// Decides when to request a keyframe from a publisher. A keyframe is about ten times as large as an ordinary frame, so the
/// requests of many subscribers are combined into one. A request is sent again if no keyframe arrives.
struct KeyframeRequests: Sendable {
    /// The minimum time between two requests. A keyframe takes a round trip and a frame to arrive, so an earlier second request
    /// would produce a second keyframe.
    static let shortestInterval = MediaInterval.milliseconds(300)
    /// The minimum time between two keyframes for subscribers that report losses, however often they report them. New
    /// subscribers do not have to wait for this time to pass.
    static let refreshInterval = MediaInterval.milliseconds(1000)

    /// Whether a subscriber needs a keyframe to start.
    private(set) var isWanted = false
    /// Whether a subscriber has reported a loss that only a keyframe repairs.
    private var isRefreshWanted = false
    /// Whether a keyframe has arrived that has not been forwarded yet, so that waiting subscribers will start with it.
    private var isArriving = false
    private var requestedAt: MediaTime?
    private var answeredAt: MediaTime?

    /// Requests a keyframe for a subscriber that cannot start without one, unless a keyframe is about to be forwarded.
    mutating func want() { if !isArriving { isWanted = true } }

    /// Handles a subscriber's report that it cannot decode (PLI or FIR, RFC 4585 §6.3.1, RFC 5104 §4.3.1). Ignores a
    /// report that arrives soon after a keyframe, because the subscriber sent it before that keyframe reached it. A
    /// later report leads to a request once `refreshInterval` has passed since the keyframe.
    mutating func requestRefresh(now: MediaTime) {
        if let answeredAt, now - answeredAt < Self.shortestInterval { return }
        isRefreshWanted = true
    }

    mutating func arrived(now: MediaTime) {
        (isWanted, isRefreshWanted, isArriving) = (false, false, true)
        answeredAt = now
    }

    /// Cancels all requests, because no subscriber needs a keyframe now.
    mutating func cancel() { (isWanted, isRefreshWanted) = (false, false) }

    /// Must be called after the packets that have arrived were forwarded or dropped.
    mutating func passed() { isArriving = false }

    /// Returns true if a request should be sent now, which is at most once per `shortestInterval`.
    mutating func isDue(now: MediaTime) -> Bool {
        let isRefreshDue = isRefreshWanted && answeredAt.map { now - $0 >= Self.refreshInterval } ?? true
        guard isWanted || isRefreshDue else { return false }
        if let requestedAt, now - requestedAt < Self.shortestInterval { return false }
        requestedAt = now
        return true
    }
}

/// The number of bytes that may be retransmitted to a subscriber: as many as were originally sent to it, plus a burst. A
/// subscriber that requests all packets many times gets no more than that, so spoofed requests can at most double the traffic.
struct RetransmissionBudget: Sendable {
    /// The burst in bytes. It covers about 100 packets that are lost together.
    static let burst = 150_000

    private var bytes = burst

    mutating func earn(_ count: Int) { bytes = min(Self.burst, bytes + count) }

    mutating func spend(_ count: Int) -> Bool {
        guard bytes >= count else { return false }
        bytes -= count
        return true
    }
}
