/// How much padding is due, to fill a path up to a bitrate.
struct PaddingDue: Sendable {
    /// The longest time without a tick that is made up for.
    private static let longestTick = MediaInterval.milliseconds(50)

    /// In bytes; negative after a packet that was longer than what was due.
    private var bytes = 0
    /// The previous tick, with padding or without.
    var updatedAt: MediaTime?

    /// Forgets what was due.
    mutating func none() -> Int {
        bytes = 0
        return 0
    }

    /// Returns how many bytes to add to the media that is sent.
    mutating func add(to media: Bitrate, upTo target: Bitrate, now: MediaTime) -> Int {
        guard let updatedAt else { return none() }
        guard target > media else { return 0 }
        bytes += (target - media).bytes(in: min(now - updatedAt, Self.longestTick))
        return max(0, bytes)
    }

    mutating func sent(_ count: Int) { bytes -= count }
}
