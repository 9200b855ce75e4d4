/// A moment on a monotonic clock, in nanoseconds since an arbitrary origin. Nothing in this module reads a clock: callers pass
/// the current time.
public struct MediaTime: Hashable, Comparable, Sendable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static func < (left: MediaTime, right: MediaTime) -> Bool { left.nanoseconds < right.nanoseconds }
    public static func - (left: MediaTime, right: MediaTime) -> MediaInterval {
        MediaInterval(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
    public static func + (time: MediaTime, interval: MediaInterval) -> MediaTime {
        MediaTime(nanoseconds: time.nanoseconds &+ interval.nanoseconds)
    }
    public static func - (time: MediaTime, interval: MediaInterval) -> MediaTime {
        MediaTime(nanoseconds: time.nanoseconds &- interval.nanoseconds)
    }
}

/// A length of time in nanoseconds. Intervals are computed for every packet, so this type must be fast: it fits in one
/// machine word, unlike `Duration`.
public struct MediaInterval: Hashable, Comparable, Sendable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }
    public init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        nanoseconds = seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
    }

    public static let zero = MediaInterval(nanoseconds: 0)
    public static func microseconds(_ count: Int64) -> MediaInterval { MediaInterval(nanoseconds: count &* 1000) }
    public static func milliseconds(_ count: Int64) -> MediaInterval { MediaInterval(nanoseconds: count &* 1_000_000) }
    public static func seconds(_ count: Int64) -> MediaInterval { MediaInterval(nanoseconds: count &* 1_000_000_000) }

    public var milliseconds: Int64 { nanoseconds / 1_000_000 }

    public static func < (left: MediaInterval, right: MediaInterval) -> Bool { left.nanoseconds < right.nanoseconds }
    public static func - (left: MediaInterval, right: MediaInterval) -> MediaInterval {
        MediaInterval(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
    public static func * (interval: MediaInterval, factor: Int64) -> MediaInterval {
        MediaInterval(nanoseconds: interval.nanoseconds &* factor)
    }
}
