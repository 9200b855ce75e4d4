/// Drops frames of a source that delivers more than are sent.
public struct FramePacer: Sendable {
    /// Text on a screen needs size more than motion.
    public static let screenRate = 15

    private let interval: Int64
    private var last: Int64?

    /// A source is not exact, so frames may come a tenth of the interval early.
    public init(framesPerSecond: Int) { interval = 900_000_000 / Int64(max(1, framesPerSecond)) }

    /// Returns whether to use a frame with this timestamp, in nanoseconds.
    public mutating func accepts(_ timestamp: Int64) -> Bool {
        if let last, timestamp >= last {
            let (passed, overflow) = timestamp.subtractingReportingOverflow(last)
            if !overflow, passed < interval { return false }
        }
        last = timestamp
        return true
    }

    /// Converts a time in seconds; nil if it is not a time.
    public static func nanoseconds(_ seconds: Double) -> Int64? { Int64(exactly: (seconds * 1_000_000_000).rounded()) }
}
