/// Drops frames of a camera that delivers far too many. Some devices do so after the app returns from the background,
/// and the encoder then falls behind.
///
/// If more than two consecutive frames arrive faster than 200 per second, only one in four is accepted, until a frame
/// arrives more slowly.
public struct FrameLimiter: Sendable {
    private static let maxRate: Int64 = 200
    private static let tolerated = 2
    private static let accepted = 4

    private var previous: Int64?
    /// The number of consecutive frames that were too fast.
    private var fast = 0
    private var sinceAccepted = 0

    public init() {}

    /// Returns whether to use a frame with this timestamp, in nanoseconds. A timestamp that does not increase counts as
    /// too fast.
    public mutating func accepts(_ timestamp: Int64) -> Bool {
        defer { previous = timestamp }
        guard let previous else { return true }
        let (interval, overflow) = timestamp.subtractingReportingOverflow(previous)
        guard !overflow, interval < 1_000_000_000 / Self.maxRate else {
            (fast, sinceAccepted) = (0, 0)
            return true
        }
        fast = min(fast + 1, Self.tolerated + 1)
        guard fast > Self.tolerated else { return true }
        sinceAccepted += 1
        guard sinceAccepted == Self.accepted else { return false }
        sinceAccepted = 0
        return true
    }
}
