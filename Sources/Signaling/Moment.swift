import Wire

/// The time of an event, on two clocks.
///
/// Durations are measured on a clock that the operator and NTP cannot change, so a jump of the wall clock fires no timer early
/// and stalls none. Times with a meaning outside this process, such as the end of a ban or a token, are judged by the wall clock.
public struct Moment: Hashable, Sendable {
    /// The time for timers, budgets and everything else that lives in memory only. It never jumps and never goes back. It
    /// begins at the wall clock's time when the server starts, and may differ from it later.
    public var now: Timestamp
    /// The time of day: for tokens, bans, and all times that are stored or sent. A correction of the system's clock moves it
    /// forward or back.
    public var wall: Timestamp
    /// Whether the wall clock has run steadily for a long time. Only then may stored data be deleted because of its age: a clock
    /// that is wrong for a while would otherwise delete what is not old.
    public var isConfirmed: Bool

    /// - Parameter wall: nil for the same time as `now`.
    public init(now: Timestamp, wall: Timestamp? = nil, isConfirmed: Bool = true) {
        (self.now, self.wall, self.isConfirmed) = (now, wall ?? now, isConfirmed)
    }

    /// The wall clock's time if it is confirmed, for deleting stored data because of its age; otherwise nil.
    public var confirmedWall: Timestamp? { isConfirmed ? wall : nil }

    /// Returns a time of `now`'s clock as the wall clock shows it.
    public func wall(at time: Timestamp) -> Timestamp { wall + (time - now) }

    /// Returns a time of the wall clock as `now`'s clock shows it.
    public func time(atWall time: Timestamp) -> Timestamp { now + (time - wall) }

    /// Maximum time between two looks at a wall clock's time that has not come or is not confirmed: the clock may be corrected.
    static let longestLook: Duration = .seconds(3600)

    /// Returns when a timer should look whether a time of the wall clock has passed.
    func look(forWall time: Timestamp) -> Timestamp {
        let left = time - wall
        return now + (left > .zero ? min(left, Self.longestLook) : Self.longestLook)
    }
}
