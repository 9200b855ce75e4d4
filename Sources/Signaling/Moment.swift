import Wire

/// The time of an event on two clocks.
///
/// Durations are measured on a clock that neither the operator nor NTP can change. A jump of the wall clock therefore
/// fires no timer early and delays none. Times that have a meaning outside this process, such as the end of a ban or
/// the expiry of a token, use the wall clock.
public struct Moment: Hashable, Sendable {
    /// The time for timers, budgets and other state that exists only in memory. It never jumps or goes backward. It
    /// starts at the wall clock's time when the server starts, and may drift from it.
    public var now: Timestamp
    /// The time of day: for tokens, bans, and all times that are stored or sent. Correcting the system clock moves it
    /// forward or backward.
    public var wall: Timestamp
    /// Whether the wall clock has been steady for a long time. Only then may stored data be deleted because of its
    /// age: with a clock that is wrong for a while, recent data would look old.
    public var isConfirmed: Bool

    /// - Parameter wall: the time of day; nil if it is the same as `now`.
    public init(now: Timestamp, wall: Timestamp? = nil, isConfirmed: Bool = true) {
        (self.now, self.wall, self.isConfirmed) = (now, wall ?? now, isConfirmed)
    }

    /// The wall clock's time if it is confirmed, for deleting stored data because of its age; otherwise nil.
    public var confirmedWall: Timestamp? { isConfirmed ? wall : nil }

    /// Converts a time on the clock of `now` to the wall clock.
    public func wall(at time: Timestamp) -> Timestamp { wall + (time - now) }

    /// Converts a time on the wall clock to the clock of `now`.
    public func time(atWall time: Timestamp) -> Timestamp { now + (time - wall) }

    /// Maximum time after which a timer that waits for a wall clock time checks again. The wall clock may have been
    /// corrected or confirmed since the previous check.
    static let longestLook: Duration = .seconds(3600)

    /// Returns when a timer should next check whether a wall clock time has passed. If it has passed already, the
    /// timer waits for the wall clock to be confirmed, and checks after `longestLook`.
    func look(forWall time: Timestamp) -> Timestamp {
        let left = time - wall
        return now + (left > .zero ? min(left, Self.longestLook) : Self.longestLook)
    }
}
