/// Detects whether a media loop answers requests in time, for `GET /ready`. Without packets the loop waits
/// indefinitely, so its silence does not mean that it has stopped. It therefore receives heartbeat requests, and must
/// answer each within ``limit``.
struct MediaHeartbeat: Equatable, Sendable {
    /// The time limit for an answer. One pass of the loop takes milliseconds. If it takes this long, the loop has
    /// stopped, even on an overloaded machine.
    static let limit: Duration = .seconds(5)

    /// When the unanswered request was sent; nil if there is none.
    private var askedAt: SuspendingClock.Instant?

    /// Records a request. If one is still unanswered, records nothing and returns false: requests must not accumulate
    /// in a loop that has stopped.
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
