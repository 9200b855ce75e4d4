/// Compares this machine's wall clock with the ledger's, which all nodes share.
///
/// Leases do not depend on wall clocks, but what nodes tell each other and store does: when a token expires, how long a call has rung,
/// when a room ends.
public struct ClockCheck: Sendable {
    /// The result of a comparison.
    public enum Change: Hashable, Sendable {
        /// The clocks differ by more than ``tolerance``. Positive if this machine's clock is ahead.
        case differs(by: Duration)
        case agrees
    }

    /// By how much the clocks may differ without a warning.
    public static let tolerance = Duration.milliseconds(250)
    /// By how much they may differ when a node joins the cluster.
    public static let maxAtStart = Duration.seconds(2)

    private var isOff = false

    /// Creates a check that has compared nothing yet.
    public init() {}

    /// Compares two readings. The ledger read its clock at some moment between the request and the answer.
    ///
    /// - Parameters:
    ///   - ledger: what the ledger read: the time since 1970.
    ///   - wall: what this machine's clock read when the answer arrived: the time since 1970.
    ///   - waited: how long the answer took.
    /// - Returns: the smallest difference that explains both; positive if this machine's clock is ahead.
    public static func difference(ledger: Duration, wall: Duration, waited: Duration) -> Duration {
        let (least, most) = (wall - waited - ledger, wall - ledger)
        return least > .zero ? least : most < .zero ? most : .zero
    }

    /// Notes a difference. Returns what has changed; nil if nothing.
    public mutating func note(_ difference: Duration) -> Change? {
        let isOff = difference > Self.tolerance || difference < .zero - Self.tolerance
        defer { self.isOff = isOff }
        guard isOff != self.isOff else { return nil }
        return isOff ? .differs(by: difference) : .agrees
    }
}
