import Wire

/// A person's recent locations, used to reject implausible moves.
///
/// Distance must be earned by time. Unused earned distance counts up to `allowance`, so many small jumps are not faster than
/// one large jump. Moves to neighboring cells are free, because a device at the edge of two cells may alternate between them, 2
/// km apart.
struct Trail: Equatable, Sendable {
    /// Distance in meters that a location may be off without elapsed time, for example a coarse fix followed by an exact one.
    static let allowance = 5000.0
    /// Distance in meters that covers the neighboring cells, including diagonal ones.
    static let steps = 3000.0

    private var at: Timestamp
    private var center: GlobePoint
    /// Unused earned distance, in meters.
    private var unused: Double

    init(_ cell: Cell, now: Timestamp) { (at, center, unused) = (now, cell.center, Self.allowance) }

    /// Moves to `cell`, or returns how long to wait until the move is physically plausible.
    mutating func follow(to cell: Cell, now: Timestamp, fastest kilometersPerHour: Int) -> Duration? {
        let speed = Double(max(1, kilometersPerHour)) / 3.6
        let distance = center.distance(to: cell.center)
        let earned = unused + Double(max(0, (now - at).wholeMilliseconds)) / 1000 * speed
        if distance <= Self.steps {
            // Keep the old center, or a series of small steps would bypass the check.
            (at, unused) = (max(at, now), min(Self.allowance, earned))
            return nil
        }
        guard distance <= earned else { return .milliseconds(Int64(((distance - earned) / speed * 1000).rounded(.up))) }
        (at, center, unused) = (max(at, now), cell.center, min(Self.allowance, earned - distance))
        return nil
    }
}
