/// Detects whether the server is still there (`protocol/README.md` §1). Sends a ping after a time of silence, and gives up the
/// socket after the same time without an answer.
///
/// Only received messages show that the server is there. A check that comes late shows that this device was asleep or too busy to
/// read what has arrived. The client then sends another ping and does not give up yet.
struct Liveness: Equatable, Sendable {
    enum Verdict: Equatable, Sendable {
        case ping, dead
    }

    /// A check that is later than this does not count. Timers of a device that is awake are less late.
    private static let lateness = Duration.seconds(1)
    /// Maximum checks in a row that do not count. Browsers delay the timers of hidden pages by a minute again and again.
    private static let maxLateChecks = 3

    private let silence: Duration
    private var heardAt: Timestamp
    private var pingedAt: Timestamp?
    private var lateChecks = 0

    init(now: Timestamp, silence: Duration) { (heardAt, self.silence) = (now, silence) }

    mutating func heard(now: Timestamp) { (heardAt, pingedAt, lateChecks) = (now, nil, 0) }

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
        if ping(now: now) { return .ping }
        guard now - deadline > Self.lateness, lateChecks < Self.maxLateChecks else { return .dead }
        lateChecks += 1
        pingedAt = now
        return .ping
    }

    /// The time at which to call `check` next.
    var deadline: Timestamp { (pingedAt ?? heardAt) + silence }
}
