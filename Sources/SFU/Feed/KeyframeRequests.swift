import RTC

/// Decides when to request a keyframe from a publisher. A keyframe is about ten times as large as an ordinary frame, so the
/// requests of many subscribers are combined into one. A request is sent again if no keyframe arrives.
struct KeyframeRequests: Sendable {
    /// The minimum time between two requests. A keyframe takes a round trip plus the time of a frame to arrive. A
    /// second request before then would only produce a second keyframe.
    static let shortestInterval = MediaInterval.milliseconds(300)
    /// The minimum time between two keyframes for subscribers that report losses, however often they report them. New
    /// subscribers do not have to wait for this time to pass.
    static let refreshInterval = MediaInterval.milliseconds(1000)

    /// What a keyframe is needed for.
    enum Need: Sendable {
        /// A subscriber cannot start without one.
        case start
        /// A subscriber reported losses.
        case refresh
    }

    /// Whether a subscriber needs a keyframe to start.
    private(set) var isWanted = false
    /// Whether a subscriber has reported a loss that only a keyframe repairs.
    private var isRefreshWanted = false
    /// Whether a keyframe has arrived that has not been forwarded yet, so that waiting subscribers will start with it.
    private var isArriving = false
    private var requestedAt: MediaTime?
    private var answeredAt: MediaTime?

    // MARK: Reasons

    /// A subscriber starts with this encoding or switches to it.
    mutating func subscriberSwitches() { want() }

    /// A packet arrived that a subscriber could have used, but the subscriber still waits for a keyframe.
    mutating func subscriberWaits() { want() }

    /// The publisher's path changed, and too many packets were lost on the previous path to be retransmitted.
    mutating func publisherMoved() { want() }

    /// The publisher did not retransmit a lost packet in time, or the gap was too large to request (`NACKGenerator`).
    mutating func lossGivenUp() { want() }

    /// A subscriber reports that it cannot decode (PLI or FIR, RFC 4585 §6.3.1, RFC 5104 §4.3.1).
    mutating func subscriberCannotDecode(now: MediaTime) { requestRefresh(now: now) }

    /// A subscriber requests a packet that is too old to be retransmitted.
    mutating func packetTooOld(now: MediaTime) { requestRefresh(now: now) }

    /// A subscriber lost so many packets that a keyframe costs less than the retransmissions.
    mutating func tooManyRetransmissions(now: MediaTime) { requestRefresh(now: now) }

    /// A subscriber on another event loop needs a keyframe. Even if a keyframe has just arrived here, it may have arrived
    /// before that loop began to watch the feed.
    mutating func subscriberElsewhere(_ need: Need, now: MediaTime) {
        switch need {
        case .start: isWanted = true
        case .refresh: requestRefresh(now: now)
        }
    }

    /// Requests a keyframe for a subscriber that cannot start without one, unless a keyframe is about to be forwarded.
    private mutating func want() { if !isArriving { isWanted = true } }

    /// Requests a keyframe because of losses. Ignores a report that arrives soon after a keyframe, because the subscriber
    /// sent it before that keyframe reached it. A later report leads to a request once `refreshInterval` has passed since
    /// the keyframe.
    private mutating func requestRefresh(now: MediaTime) {
        if let answeredAt, now - answeredAt < Self.shortestInterval { return }
        isRefreshWanted = true
    }

    // MARK: Requests

    mutating func arrived(now: MediaTime) {
        (isWanted, isRefreshWanted, isArriving) = (false, false, true)
        answeredAt = now
    }

    /// Records that no keyframe is about to be forwarded. Must be called after the packets that have arrived were
    /// forwarded or dropped.
    mutating func passed() { isArriving = false }

    /// If a request is due, records it as sent and returns what it is for; otherwise returns nil. Returns a need at most once per
    /// `shortestInterval`.
    ///
    /// - Parameter isWatched: whether anybody receives the video. If the subscribers that waited for the keyframe have left or
    ///   can no longer receive it, their requests are canceled.
    mutating func takeDue(isWatched: Bool, now: MediaTime) -> Need? {
        guard isWatched else {
            (isWanted, isRefreshWanted) = (false, false)
            return nil
        }
        let isRefreshDue = isRefreshWanted && answeredAt.map { now - $0 >= Self.refreshInterval } ?? true
        guard isWanted || isRefreshDue else { return nil }
        if let requestedAt, now - requestedAt < Self.shortestInterval { return nil }
        requestedAt = now
        return isWanted ? .start : .refresh
    }
}
