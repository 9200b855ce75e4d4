/// Whether the other end is still there (protocol §1): ping after a silence, give up after another.
///
/// Only what arrived counts. A timer that fires a minute late, because the machine slept, causes a ping first.
struct Liveness: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        case ping, dead
    }

    private let silence: Duration
    private var heardAt: Timestamp
    private var pingedAt: Timestamp?

    init(now: Timestamp, silence: Duration) { (heardAt, self.silence) = (now, silence) }

    mutating func heard(now: Timestamp) { (heardAt, pingedAt) = (now, nil) }

    /// Notes that a ping is sent at once, whatever was heard.
    /// - Returns: false if the last ping has no answer yet; another would tell no more.
    mutating func ping(now: Timestamp) -> Bool {
        guard pingedAt == nil else { return false }
        pingedAt = now
        return true
    }

    mutating func check(now: Timestamp) -> Verdict? {
        guard deadline <= now else { return nil }
        return ping(now: now) ? .ping : .dead
    }

    /// When to check next.
    var deadline: Timestamp { (pingedAt ?? heardAt) + silence }
}
