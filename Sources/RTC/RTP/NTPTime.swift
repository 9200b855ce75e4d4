/// An NTP timestamp as used in RTCP (RFC 3550 §4): 32 bits of seconds since 1900, and 32 bits of a fraction. A sender may use
/// any other origin that stays constant.
public struct NTPTime: Hashable, Sendable {
    public var value: UInt64

    public init(_ value: UInt64) { self.value = value }

    /// Converts a time on the monotonic clock.
    ///
    /// - Parameter origin: the wall-clock time at the origin of the monotonic clock.
    public init(_ time: MediaTime, origin: NTPTime) {
        self = origin + MediaInterval(nanoseconds: time.nanoseconds)
    }

    /// The middle 32 bits, in units of 2^-16 seconds, as in the LSR field of reports (RFC 3550 §6.4.1).
    public var middle32: UInt32 { UInt32(truncatingIfNeeded: value >> 16) }

    /// The lowest 24 bits of the time in units of 2^-18 seconds, for the abs-send-time extension. They wrap after 64 s.
    public var absoluteSendTime: UInt32 { UInt32(truncatingIfNeeded: value >> 14) & 0xff_ffff }

    /// Returns the sum, which wraps in 2036 like the NTP format itself.
    public static func + (time: NTPTime, interval: MediaInterval) -> NTPTime {
        let (seconds, rest) = interval.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        // The magnitude of the remainder is below 2^30, so the shifted value stays below 2^62.
        let fraction = (rest << 32) / 1_000_000_000
        return NTPTime(time.value &+ UInt64(bitPattern: seconds &<< 32) &+ UInt64(bitPattern: fraction))
    }

    /// Returns the difference, accurate to a nanosecond for intervals below 68 years.
    public static func - (left: NTPTime, right: NTPTime) -> MediaInterval {
        let difference = Int64(bitPattern: left.value &- right.value)
        let seconds = difference >> 32
        let fraction = ((difference & 0xffff_ffff) * 1_000_000_000) >> 32
        return MediaInterval(nanoseconds: seconds * 1_000_000_000 + fraction)
    }
}

extension MediaInterval {
    /// Converts an interval from units of 2^-16 seconds, the unit of the delays in RTCP reports (RFC 3550 §6.4.1).
    public init(ntpShort units: UInt32) {
        self.init(nanoseconds: Int64((UInt64(units) * 1_000_000_000) >> 16))
    }

    /// The interval in units of 2^-16 seconds: 0 if negative, and at most 18 hours.
    public var ntpShort: UInt32 {
        guard nanoseconds > 0 else { return 0 }
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        guard seconds <= 0xffff else { return .max }
        return UInt32(truncatingIfNeeded: seconds << 16 | (rest << 16) / 1_000_000_000)
    }
}
