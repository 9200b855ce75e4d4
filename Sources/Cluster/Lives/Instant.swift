/// A reading of one node's monotonic clock. Readings of different nodes, or of different starts, cannot be compared.
///
/// The clock must advance while the machine sleeps: `CLOCK_BOOTTIME` on Linux, not `CLOCK_MONOTONIC`. Otherwise a lease would seem to
/// be valid after a sleep.
public struct Instant: Hashable, Comparable, Sendable {
    /// The time since an arbitrary moment, which is the same for all readings of one clock.
    public var reading: Duration

    /// Creates an instant from a reading of the clock.
    public init(_ reading: Duration) { self.reading = reading }

    public static func < (left: Instant, right: Instant) -> Bool { left.reading < right.reading }

    /// Returns the instant that comes this much later.
    public static func + (left: Instant, right: Duration) -> Instant { Instant(left.reading + right) }

    /// Returns the time from `right` to `left`.
    public static func - (left: Instant, right: Instant) -> Duration { left.reading - right.reading }
}
