/// Extends the reference times of reports so that they do not wrap. In a report they have 24 bits and wrap after 12.4
/// days.
struct ReferenceTime: Sendable {
    /// The latest time in units of 64 ms, not wrapped; nil before the first report.
    private var latest: Int64?

    /// Returns the offset to add to the times in a report so that they continue those of the previous report.
    mutating func offset(of time: Int32) -> MediaInterval {
        let step = latest.map { ((Int64(time) &- $0) << 40) >> 40 } ?? 0
        let extended = latest.map { $0 &+ step } ?? Int64(time)
        latest = extended
        return MediaInterval(nanoseconds: (extended &- Int64(time)) &* 64_000_000)
    }
}
