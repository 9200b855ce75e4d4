/// Detects whether the server is still there (`protocol/README.md` §1): pings after a silence, and gives up after another.
///
/// Only received messages count. A timer that fires a minute late because the machine slept first causes a ping.
struct Liveness: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        case ping, dead
    }

    private let silence: Duration
    private var heardAt: Timestamp
    private var pingedAt: Timestamp?

    init(now: Timestamp, silence: Duration) { (heardAt, self.silence) = (now, silence) }

    mutating func heard(now: Timestamp) { (heardAt, pingedAt) = (now, nil) }

    /// Records that a ping is sent at once, without waiting for a silence.
    ///
    /// - Returns: false if the last ping has no answer yet. Another one would be of no use.
    mutating func ping(now: Timestamp) -> Bool {
        guard pingedAt == nil else { return false }
        pingedAt = now
        return true
    }

    mutating func check(now: Timestamp) -> Verdict? {
        guard deadline <= now else { return nil }
        return ping(now: now) ? .ping : .dead
    }

    /// When to call `check` next.
    var deadline: Timestamp { (pingedAt ?? heardAt) + silence }
}
