/// The time that packets wait in queues on the path: the delay above the smallest one of the last 10 to 20 s. The clocks of the
/// two ends need not agree.
struct QueueDelay: Sendable {
    private static let window = MediaInterval.seconds(10)

    private var lowest: MediaInterval?
    private var former: MediaInterval?
    private var since: MediaTime?
    /// The smallest delay of the packets in the latest reports. The smallest, because jitter only makes delays larger.
    private(set) var current = MediaInterval.zero
    /// The smallest delay of the packets in the latest report.
    private(set) var latest = MediaInterval.zero
    private var recent = (MediaInterval.zero, MediaInterval.zero, MediaInterval.zero)

    /// - Parameters:
    ///   - sentAt: when a packet was sent, by our clock.
    ///   - arrival: when it arrived, by the receiver's clock.
    static func oneWay(_ sentAt: MediaTime, _ arrival: MediaInterval) -> MediaInterval {
        MediaInterval(nanoseconds: arrival.nanoseconds &- sentAt.nanoseconds)
    }

    /// - Parameter oneWay: the smallest difference between arrival and sending in a report.
    mutating func add(_ oneWay: MediaInterval, now: MediaTime) {
        if since.map({ now - $0 >= Self.window }) ?? true { (former, lowest, since) = (lowest, oneWay, now) }
        lowest = min(lowest ?? oneWay, oneWay)
        let base = min(lowest ?? oneWay, former ?? oneWay)
        recent = (recent.1, recent.2, oneWay)
        current = max(.zero, min(recent.0, recent.1, recent.2) - base)
        latest = max(.zero, oneWay - base)
    }
}
