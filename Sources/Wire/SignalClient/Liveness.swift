/// Detects whether the server still responds (`protocol/README.md` §1). The client sends a ping after a period of
/// silence, and abandons the socket after the same period without an answer.
///
/// Only received messages show that the server responds. A late check shows that this device was asleep or too busy to
/// read messages that had arrived. The client then sends another ping and does not abandon the socket yet.
struct Liveness: Equatable, Sendable {
    /// What to do after a period of silence.
    enum Verdict: Equatable, Sendable {
        case ping, dead
    }

    /// If a check is late by more than this, it sends another ping instead of abandoning the socket. On a device that
    /// is awake, timers are less late.
    private static let lateness = Duration.seconds(1)
    /// Maximum number of consecutive late checks that do not abandon the socket. Browsers repeatedly delay the timers
    /// of hidden pages by a minute.
    private static let maxLateChecks = 3

    private let silence: Duration
    private var heardAt: Timestamp
    private var pingedAt: Timestamp?
    private var lateChecks = 0

    init(now: Timestamp, silence: Duration) { (heardAt, self.silence) = (now, silence) }

    mutating func heard(now: Timestamp) { (heardAt, pingedAt, lateChecks) = (now, nil, 0) }

    /// Records that a ping is sent now, without waiting for a period of silence.
    ///
    /// - Returns: false if the previous ping has not been answered yet, so that another ping would be useless.
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
