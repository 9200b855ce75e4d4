import Wire

/// Rejects moves of a person's location that are implausibly fast.
///
/// As time passes, a person earns distance, which moves use up. Unused distance is saved, but at most `allowance`.
/// Many small jumps thus get no farther than one large jump. Moves to neighboring cells are free, because a device on
/// the border between two cells may alternate between them, and their centers are 2 km apart.
struct TravelLimiter: Equatable, Sendable {
    /// The distance in meters that a location may jump without any elapsed time, for example if an exact fix follows a coarse
    /// one.
    static let allowance = 5000.0
    /// The distance in meters up to which cells count as neighbors, including diagonal ones.
    static let steps = 3000.0

    private var at: Timestamp
    private var center: GlobePoint
    /// The distance earned but not used yet, in meters.
    private var unused: Double

    init(_ cell: Cell, now: Timestamp) { (at, center, unused) = (now, cell.center, Self.allowance) }

    /// Moves to `cell` and returns nil, or returns how long to wait until the move is physically plausible.
    mutating func follow(to cell: Cell, now: Timestamp, fastest kilometersPerHour: Int) -> Duration? {
        let speed = Double(max(1, kilometersPerHour)) / 3.6
        let distance = center.distance(to: cell.center)
        let earned = unused + Double(max(0, (now - at).wholeMilliseconds)) / 1000 * speed
        if distance <= Self.steps {
            // Keep the old center as the reference point. Otherwise a series of small steps would bypass the check.
            (at, unused) = (max(at, now), min(Self.allowance, earned))
            return nil
        }
        guard distance <= earned else { return .milliseconds(Int64(((distance - earned) / speed * 1000).rounded(.up))) }
        (at, center, unused) = (max(at, now), cell.center, min(Self.allowance, earned - distance))
        return nil
    }
}
