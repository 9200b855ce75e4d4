/// The delays of the packets in one report.
struct ReportedDelays: Sendable {
    private static let shortest = MediaInterval.milliseconds(20)
    private static let tolerance = MediaInterval.milliseconds(10)

    /// The lowest delay; nil without packets.
    var lowest: MediaInterval? { count > 0 ? lowestDelay : nil }
    /// The send time of the packet that was sent last; nil without packets.
    var newest: MediaTime? { count > 0 ? last.sentAt : nil }

    private var count = 0
    // These are not optionals, because every packet would have to test them.
    private var lowestDelay = MediaInterval(nanoseconds: .max)
    private var first = (sentAt: MediaTime(nanoseconds: .max), oneWay: MediaInterval.zero)
    private var last = (sentAt: MediaTime(nanoseconds: .min), oneWay: MediaInterval.zero)
    private var (start, end) = (Part(), Part())

    /// Packets that were sent within a short time of each other.
    private struct Part {
        static let length = MediaInterval.milliseconds(25)
        static let fewest = 3

        var sentAt: MediaTime?
        var lowest = MediaInterval.zero
        var count = 0

        /// Adds a packet to the group.
        ///
        /// - Returns: false if the packet was sent too late to belong to the others.
        mutating func add(_ sentAt: MediaTime, _ oneWay: MediaInterval) -> Bool {
            guard let since = self.sentAt else {
                (self.sentAt, lowest, count) = (sentAt, oneWay, 1)
                return true
            }
            guard sentAt - since < Self.length else { return false }
            lowest = min(lowest, oneWay)
            count += 1
            return true
        }
    }

    mutating func add(_ sentAt: MediaTime, _ oneWay: MediaInterval) {
        count &+= 1
        lowestDelay = min(lowestDelay, oneWay)
        if !start.add(sentAt, oneWay), !end.add(sentAt, oneWay) {
            if end.count >= Part.fewest { former = end }
            end = Part()
            _ = end.add(sentAt, oneWay)
        }
        if sentAt < first.sentAt { first = (sentAt, oneWay) }
        if sentAt >= last.sentAt { last = (sentAt, oneWay) }
    }

    /// The most recent part with enough packets, used while `end` has too few.
    private var former: Part?

    /// The growth of the delay from the first packets to the last; zero if it did not grow or there are too few
    /// packets. Computed from the minimum delays, because jitter only increases delays.
    var rise: MediaInterval {
        guard start.count >= Part.fewest, let last = end.count >= Part.fewest ? end : former else { return .zero }
        return max(.zero, last.lowest - start.lowest)
    }

    /// Whether the delays are caused by a queue. If the receiver or a radio link was busy and then delivered everything
    /// that it had held back, each packet has waited less than the one sent before it.
    var isQueue: Bool {
        guard count >= 3, last.sentAt - first.sentAt >= Self.shortest else { return false }
        return last.oneWay >= first.oneWay - Self.tolerance
    }

    /// Whether the delay has grown within the report: the packet that was sent last waited longer than the first one.
    var isGrowing: Bool {
        count >= 2 && last.oneWay > first.oneWay
    }
}

/// The queueing delay on the path: the delay above the minimum of the last 10 to 20 s. The clocks of the sender and
/// the receiver need not agree.
struct QueueDelay: Sendable {
    private static let window = MediaInterval.seconds(10)

    private var lowest: MediaInterval?
    private var former: MediaInterval?
    private var since: MediaTime?
    /// The queueing delay: the minimum over the packets in the latest three reports. The minimum is used because
    /// jitter only increases delays.
    private(set) var current = MediaInterval.zero
    /// The minimum queueing delay of the packets in the latest report.
    private(set) var latest = MediaInterval.zero
    private var recent = (MediaInterval.zero, MediaInterval.zero, MediaInterval.zero)
    /// The minimum one-way delay, which is that of the path without a queue.
    var base: MediaInterval? { lowest.map { min($0, former ?? $0) } }

    /// Returns the one-way delay of a packet, which includes the unknown offset between the two clocks.
    /// - Parameters:
    ///   - sentAt: when a packet was sent, by the local clock.
    ///   - arrival: when it arrived, by the receiver's clock.
    static func oneWay(_ sentAt: MediaTime, _ arrival: MediaInterval) -> MediaInterval {
        MediaInterval(nanoseconds: arrival.nanoseconds &- sentAt.nanoseconds)
    }

    /// Updates the queueing delay from a report.
    ///
    /// - Parameter oneWay: the minimum one-way delay of the packets in a report; see `oneWay`.
    mutating func add(_ oneWay: MediaInterval, now: MediaTime) {
        if since.map({ now - $0 >= Self.window }) ?? true { (former, lowest, since) = (lowest, oneWay, now) }
        lowest = min(lowest ?? oneWay, oneWay)
        let base = min(lowest ?? oneWay, former ?? oneWay)
        recent = (recent.1, recent.2, oneWay)
        current = max(.zero, min(recent.0, recent.1, recent.2) - base)
        latest = max(.zero, oneWay - base)
    }
}
