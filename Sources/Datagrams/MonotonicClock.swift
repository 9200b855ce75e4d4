import CSockets
import RTC

extension MediaTime {
    /// The current time of the system's monotonic clock.
    package static var monotonic: MediaTime {
        MediaTime(nanoseconds: confab_monotonic())
    }
}

extension NTPTime {
    /// The wall-clock time at the origin of the monotonic clock.
    package static var monotonicOrigin: NTPTime {
        let time = confab_wall_clock().quotientAndRemainder(dividingBy: 1_000_000_000)
        // The seconds from 1900 to 1970 (RFC 5905 §6).
        let seconds = UInt64(time.quotient) &+ 2_208_988_800
        let fraction = (UInt64(time.remainder) << 32) / 1_000_000_000
        return NTPTime(seconds << 32 | fraction) + (MediaTime(nanoseconds: 0) - MediaTime.monotonic)
    }
}
