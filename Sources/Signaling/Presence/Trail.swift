import Wire

/// Where somebody was lately, to tell travelling from pretending.
///
/// Distance has to be earned by time. What is earned and not used counts for at most `allowance`, so that many small leaps
/// are no faster than one large one; and a few steps about the place cost nothing, because cells make whoever stands on the
/// edge of two of them leap 2 km to and fro.
struct Trail: Equatable, Sendable {
    /// Metres that a position may be off without time having passed: a coarse fix, then an exact one.
    static let allowance = 5000.0
    /// Metres: the next cells, diagonal ones too.
    static let steps = 3000.0

    private var at: Timestamp
    private var centre: GlobePoint
    /// Metres.
    private var unused: Double

    init(_ cell: Cell, now: Timestamp) { (at, centre, unused) = (now, cell.centre, Self.allowance) }

    /// Goes on to this cell, or says after how long somebody could have got there.
    mutating func follow(to cell: Cell, now: Timestamp, fastest kilometresPerHour: Int) -> Duration? {
        let speed = Double(max(1, kilometresPerHour)) / 3.6
        let distance = centre.distance(to: cell.centre)
        let earned = unused + Double(max(0, (now - at).wholeMilliseconds)) / 1000 * speed
        if distance <= Self.steps {
            // The place stays, or a walk of small steps would go around the check.
            (at, unused) = (max(at, now), min(Self.allowance, earned))
            return nil
        }
        guard distance <= earned else { return .milliseconds(Int64(((distance - earned) / speed * 1000).rounded(.up))) }
        (at, centre, unused) = (max(at, now), cell.centre, min(Self.allowance, earned - distance))
        return nil
    }
}
