/// A moment as RTCP says it (RFC 3550 §4): seconds since 1900 in 32 bits, and 32 bits of a fraction. A sender's clock
/// may have any origin, as long as it is always the same one.
public struct NTPTime: Hashable, Sendable {
    public var value: UInt64

    public init(_ value: UInt64) { self.value = value }

    /// - Parameter origin: what the wall clock showed at the origin of the monotonic clock.
    public init(_ time: MediaTime, origin: NTPTime) {
        self = origin + MediaInterval(nanoseconds: time.nanoseconds)
    }

    /// The middle 32 bits, in units of 2^-16 seconds: what a report says of a moment ("LSR", RFC 3550 §6.4.1).
    public var middle32: UInt32 { UInt32(truncatingIfNeeded: value >> 16) }

    /// 24 bits in units of 2^-18 seconds, as the abs-send-time extension has it; wraps after 64 s.
    public var absoluteSendTime: UInt32 { UInt32(truncatingIfNeeded: value >> 14) & 0xff_ffff }

    /// Wraps in 2036 as the format does.
    public static func + (time: NTPTime, interval: MediaInterval) -> NTPTime {
        let (seconds, rest) = interval.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        // The remainder is less than 2^30 in size, so that this stays below 2^62.
        let fraction = (rest << 32) / 1_000_000_000
        return NTPTime(time.value &+ UInt64(bitPattern: seconds &<< 32) &+ UInt64(bitPattern: fraction))
    }

    /// Exact to a nanosecond for intervals of less than 68 years.
    public static func - (left: NTPTime, right: NTPTime) -> MediaInterval {
        let difference = Int64(bitPattern: left.value &- right.value)
        let seconds = difference >> 32
        let fraction = ((difference & 0xffff_ffff) * 1_000_000_000) >> 32
        return MediaInterval(nanoseconds: seconds * 1_000_000_000 + fraction)
    }
}

extension MediaInterval {
    /// Of units of 2^-16 seconds, in which reports count delays (RFC 3550 §6.4.1).
    public init(ntpShort units: UInt32) {
        self.init(nanoseconds: Int64((UInt64(units) * 1_000_000_000) >> 16))
    }

    /// In units of 2^-16 seconds: nothing for what is negative, and at most 18 hours.
    public var ntpShort: UInt32 {
        guard nanoseconds > 0 else { return 0 }
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        guard seconds <= 0xffff else { return .max }
        return UInt32(truncatingIfNeeded: seconds << 16 | (rest << 16) / 1_000_000_000)
    }
}
