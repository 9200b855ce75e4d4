import RTC

/// The values of all counters at one moment.
struct LoadSample: Sendable {
    var at = MediaTime(nanoseconds: 0)
    var expected: Int64 = 0
    var received: Int64 = 0
    var lost: Int64 = 0
    var sent: Int64 = 0
    var keyframes = 0
    var pauses = 0
    var broken = 0
    var delays = DelayHistogram()
    var robotDrops: UInt64 = 0
    var robotUnsent = 0
    var serverDrops: UInt64 = 0
    var machineDrops: UInt64 = 0
    var counters = LoadCounters()
    var serverSeconds = 0.0
    var robotSeconds = 0.0
}
