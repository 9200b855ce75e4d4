import Wire

/// The largest number of members that a session or room recently had. A number is remembered for one to three periods,
/// because only the maximum of each period is kept.
struct RecentSize: Equatable, Sendable {
    /// The maximum in the current period, and in the previous one.
    private var current = 0
    private var former = 0
    private var began: Timestamp?

    var greatest: Int { max(current, former) }

    /// Records that there have been `count` members since the previous call of this function. Call it before the
    /// number changes.
    mutating func note(_ count: Int, for period: Duration, now: Timestamp) {
        if let began, now < began + period { return current = max(current, count) }
        let isRecent = began.map { now < $0 + period + period } ?? false
        former = isRecent ? max(current, count) : count
        current = count
        began = now
    }
}
