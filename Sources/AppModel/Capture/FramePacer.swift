/// Drops frames of a source that delivers more than the target rate.
public struct FramePacer: Sendable {
    /// The target frame rate of a screen share. It is low, because text on a screen needs resolution more than motion.
    public static let screenRate = 15

    private let interval: Int64
    private var last: Int64?

    /// Creates a pacer. It accepts frames up to a tenth of the interval early, because sources are not exact.
    public init(framesPerSecond: Int) { interval = 900_000_000 / Int64(max(1, framesPerSecond)) }

    /// Returns whether to use a frame with this timestamp, in nanoseconds. A timestamp before the last accepted one
    /// is accepted.
    public mutating func accepts(_ timestamp: Int64) -> Bool {
        if let last, timestamp >= last {
            let (passed, overflow) = timestamp.subtractingReportingOverflow(last)
            if !overflow, passed < interval { return false }
        }
        last = timestamp
        return true
    }

    /// Converts a time in seconds to nanoseconds; nil if it is not a valid time.
    public static func nanoseconds(_ seconds: Double) -> Int64? { Int64(exactly: (seconds * 1_000_000_000).rounded()) }
}
