/// The amount of padding to send in order to fill a path up to a bitrate.
struct PaddingBudget: Sendable {
    /// The maximum time since the previous tick for which padding is computed.
    private static let longestTick = MediaInterval.milliseconds(50)

    /// The number of bytes due; negative after a packet that was longer than the bytes due.
    private var bytes = 0
    /// The time of the previous tick, with or without padding.
    var updatedAt: MediaTime?

    /// Resets the amount due, and returns 0.
    mutating func none() -> Int {
        bytes = 0
        return 0
    }

    /// Adds the padding due since the previous tick, and returns the number of bytes to send now in addition to the
    /// media.
    mutating func add(to media: Bitrate, upTo target: Bitrate, now: MediaTime) -> Int {
        guard let updatedAt else { return none() }
        guard target > media else { return 0 }
        bytes += (target - media).bytes(in: min(now - updatedAt, Self.longestTick))
        return max(0, bytes)
    }

    mutating func sent(_ count: Int) { bytes -= count }
}
