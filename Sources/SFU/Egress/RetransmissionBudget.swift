/// The number of bytes that may be retransmitted to a subscriber: as many as were originally sent to it, plus a burst. A
/// subscriber that requests all packets many times gets no more than that, so spoofed requests can at most double the traffic.
struct RetransmissionBudget: Sendable {
    /// The burst in bytes. It covers about 100 packets that are lost together.
    static let burst = 150_000

    private var bytes = burst

    mutating func earn(_ count: Int) { bytes = min(Self.burst, bytes + count) }

    mutating func spend(_ count: Int) -> Bool {
        guard bytes >= count else { return false }
        bytes -= count
        return true
    }
}
