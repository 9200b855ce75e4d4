/// Shows whether the media loop still runs. It waits for packets without end if there are none, so silence proves nothing: it is
/// asked, and must answer within ``limit``.
struct MediaPulse: Equatable, Sendable {
    /// One pass of the loop takes milliseconds. This much is a stop, even on a machine that is far too busy.
    static let limit: Duration = .seconds(5)

    /// When the open question was asked.
    private var askedAt: SuspendingClock.Instant?

    /// Opens a question. Returns false if there is one already: a loop that has stopped must not collect them.
    mutating func ask(at now: SuspendingClock.Instant) -> Bool {
        guard askedAt == nil else { return false }
        askedAt = now
        return true
    }

    mutating func answered() { askedAt = nil }

    func isResponsive(at now: SuspendingClock.Instant) -> Bool {
        askedAt.map { now - $0 < Self.limit } ?? true
    }
}
