/// Detects whether the server is still there (`protocol/README.md` §1). Sends a ping after a time of silence, and gives up the
/// socket after the same time without an answer.
///
/// Only received messages show that the server is there. If a timer fires a minute late because the computer was asleep, the
/// client sends a ping first and does not give up yet.
struct Liveness: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        case ping, dead
    }

    private let silence: Duration
    private var heardAt: Timestamp
    private var pingedAt: Timestamp?

    init(now: Timestamp, silence: Duration) { (heardAt, self.silence) = (now, silence) }

    mutating func heard(now: Timestamp) { (heardAt, pingedAt) = (now, nil) }

    /// Records that a ping is sent now, without waiting for a silence.
    ///
    /// - Returns: false if the previous ping has no answer yet, so another ping would be useless.
    mutating func ping(now: Timestamp) -> Bool {
        guard pingedAt == nil else { return false }
        pingedAt = now
        return true
    }

    mutating func check(now: Timestamp) -> Verdict? {
        guard deadline <= now else { return nil }
        return ping(now: now) ? .ping : .dead
    }

    /// The time at which to call `check` next.
    var deadline: Timestamp { (pingedAt ?? heardAt) + silence }
}
