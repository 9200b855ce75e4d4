/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z.
///
/// State machines receive the current time as the argument `now: Timestamp` and have no clock. A server has two clocks:
/// one for timers, which starts at the wall clock's time and then advances with the monotonic clock, and the time of
/// day for times that are stored or sent.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Milliseconds since the epoch; negative for earlier times.
    public var milliseconds: Int64

    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// The earliest time that can be represented.
    public static let distantPast = Timestamp(milliseconds: .min)

    /// Whole seconds since the epoch, rounded down, as in the `NumericDate` claims of a JWT.
    public var seconds: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    /// Returns the sum of a time and a duration. Saturates instead of overflowing, because some deadlines come from other
    /// computers.
    public static func + (left: Timestamp, right: Duration) -> Timestamp {
        let (sum, overflow) = left.milliseconds.addingReportingOverflow(right.wholeMilliseconds)
        return Timestamp(milliseconds: overflow ? (right < .zero ? .min : .max) : sum)
    }

    public static func - (left: Timestamp, right: Duration) -> Timestamp {
        left + (.zero - right)
    }

    /// Returns the duration from `right` to `left`, which is negative if `left` is earlier.
    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        let (difference, overflow) = left.milliseconds.subtractingReportingOverflow(right.milliseconds)
        return .milliseconds(overflow ? (left < right ? Int64.min : .max) : difference)
    }
}

extension Duration {
    /// This duration in milliseconds, rounded toward zero. Saturates instead of overflowing.
    public var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carry) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}
