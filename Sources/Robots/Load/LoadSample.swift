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
    /// The counters of all servers together.
    var counters = LoadCounters()
    /// The counters of each server; nil for one whose counters are not readable.
    var nodeCounters: [LoadCounters?] = []
    /// The CPU time of all servers together.
    var serverSeconds = 0.0
    /// The CPU time of each server in seconds; NaN for one whose process is unknown.
    var nodeSeconds: [Double] = []
    var robotSeconds = 0.0
}
