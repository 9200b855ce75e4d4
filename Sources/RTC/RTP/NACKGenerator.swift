/// Decides which lost packets of one source to request (RFC 4585 §6.2.1), and when to request a keyframe instead.
///
/// ```swift
/// nacks.receive(number, at: now)
/// var lost: [UInt16] = []
/// nacks.forEachDue(at: now, roundTrip: nacks.answerTime) { lost.append($0) }
/// if !lost.isEmpty { RTCP.writeNACK(sender: ours, media: theirs, lost: lost, to: &writer) }
/// if nacks.takeKeyframeNeed() { … }
/// ```
/// Memory is allocated once, when the generator is created, and not for each packet.
public struct NACKGenerator: Sendable {
    /// The maximum number of missing packets: as many as fit in one NACK packet as separate items.
    public static let maxOutstanding = 250
    /// The largest gap to request, about a second of video. After a larger gap, a keyframe repairs the video sooner.
    public static let maxGap: Int64 = 1_000
    /// The maximum number of requests for one packet. After that, the network is assumed to be unable to deliver it.
    public static let maxTries = 10
    /// How long to wait before the initial request, because the packet may only be reordered.
    public static let reorderTolerance = MediaInterval.milliseconds(15)
    /// The minimum time between two requests for a packet, even if the round-trip time is shorter.
    public static let shortestInterval = MediaInterval.milliseconds(20)
    /// The maximum time between two requests for a packet. If the round-trip time is longer, the sender has already dropped the
    /// packet by the time the second request arrives.
    public static let longestInterval = MediaInterval.milliseconds(1000)
    /// The time between the first two requests while the round-trip time is unknown. It doubles with each request, so
    /// that an answer from far away arrives before the packet is considered lost.
    public static let firstInterval = MediaInterval.milliseconds(50)
    /// How long to keep requesting a packet, counted from the first request. After this time, the packet is considered
    /// lost. Senders keep packets for about this long.
    public static let maxAge = MediaInterval.milliseconds(1000)

    /// A missing packet, and its requests so far.
    private struct Missing {
        let number: Int64
        /// When to send the next request for this packet.
        var due: MediaTime
        var tries = 0
        /// When the first request was sent.
        var requestedAt: MediaTime?
    }

    /// The missing packets in ascending order; new entries are appended.
    private var missing: ContiguousArray<Missing> = []
    private var highest: Int64?
    private var needsKeyframe = false
    /// A moving average of the time from the first request for a packet to its retransmission; nil if it is unknown.
    private var average: MediaInterval?

    public init() { missing.reserveCapacity(Self.maxOutstanding) }

    public var outstanding: Int { missing.count }

    /// Records a received packet, including retransmissions.
    ///
    /// - Parameters:
    ///   - number: the extended sequence number from `ReceiverStatistics` or `SequenceUnwrapper`.
    ///   - isRetransmission: whether the packet answers a request, so that it can be used to measure the round-trip
    ///     time.
    /// - Returns: true if the packet was missing.
    @discardableResult
    public mutating func receive(_ number: Int64, at now: MediaTime, isRetransmission: Bool = false) -> Bool {
        guard let highest else {
            self.highest = number
            return false
        }
        guard number > highest else { return found(number, at: now, isRetransmission: isRetransmission) }
        self.highest = number
        let (gap, overflow) = number.subtractingReportingOverflow(highest)
        if overflow || gap > Self.maxGap {
            missing.removeAll(keepingCapacity: true)
            needsKeyframe = true
        } else if gap > 1 {
            note(gap: highest &+ 1..<number, at: now)
        }
        return false
    }

    private mutating func note(gap: Range<Int64>, at now: MediaTime) {
        let new = min(gap.count, Self.maxOutstanding)
        let excess = missing.count + new - Self.maxOutstanding
        if excess > 0 { missing.removeFirst(excess) }
        if excess > 0 || new < gap.count { needsKeyframe = true }
        for number in gap.suffix(new) { missing.append(Missing(number: number, due: now + Self.reorderTolerance)) }
    }

    private mutating func found(_ number: Int64, at now: MediaTime, isRetransmission: Bool) -> Bool {
        let index = position(of: number)
        guard index < missing.count, missing[index].number == number else { return false }
        let entry = missing.remove(at: index)
        if isRetransmission, let requestedAt = entry.requestedAt { measure(now - requestedAt) }
        return true
    }

    private mutating func measure(_ time: MediaInterval) {
        guard let average else { return self.average = time }
        self.average = MediaInterval(nanoseconds: average.nanoseconds + (time - average).nanoseconds / 8)
    }

    /// The time in which a retransmission should arrive: the measured average plus a quarter for its variation. Nil if
    /// it is unknown.
    public var answerTime: MediaInterval? {
        average.map { MediaInterval(nanoseconds: $0.nanoseconds + $0.nanoseconds / 4) }
    }

    /// Returns the index of the first missing packet that is not below `number`.
    private func position(of number: Int64) -> Int {
        var (low, high) = (0, missing.count)
        while low < high {
            let middle = (low + high) / 2
            if missing[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Forgets the missing packets before `number`, the first packet of a keyframe.
    public mutating func forget(before number: Int64) {
        missing.removeFirst(position(of: number))
    }

    /// Forgets the missing packets before `number`, and clears the need for a keyframe.
    public mutating func forgetAll(before number: Int64) {
        forget(before: number)
        needsKeyframe = false
    }

    /// Calls `body` with the packets to request now, in ascending order, and records the requests.
    ///
    /// - Parameter roundTrip: the round-trip time to the sender, or `answerTime`; nil if it is unknown. It is used as the time
    ///   between requests for a packet, limited by `shortestInterval` and `longestInterval`.
    public mutating func forEachDue(
        at now: MediaTime, roundTrip: MediaInterval?, _ body: (_ sequenceNumber: UInt16) -> Void
    ) {
        var kept = 0
        for index in missing.indices {
            var entry = missing[index]
            if entry.due <= now {
                let requestedAt = entry.requestedAt ?? now
                guard entry.tries < Self.maxTries, now - requestedAt < Self.maxAge else {
                    needsKeyframe = true
                    // The requests that were timed with this average got no answer, so it may be outdated.
                    average = nil
                    continue
                }
                entry.due = now + Self.interval(roundTrip, tries: entry.tries)
                entry.tries += 1
                entry.requestedAt = requestedAt
                body(UInt16(truncatingIfNeeded: entry.number))
            }
            missing[kept] = entry
            kept += 1
        }
        missing.removeLast(missing.count - kept)
    }

    /// Returns the time until the next request for a packet that was requested this many times before.
    private static func interval(_ roundTrip: MediaInterval?, tries: Int) -> MediaInterval {
        let interval = roundTrip ?? MediaInterval(nanoseconds: firstInterval.nanoseconds << Int64(min(tries, 8)))
        return min(max(interval, shortestInterval), longestInterval)
    }

    /// When `forEachDue` should be called next; nil if no packet is missing.
    public var nextTimeout: MediaTime? {
        var earliest = missing.first?.due
        for entry in missing { earliest = min(earliest ?? entry.due, entry.due) }
        return earliest
    }

    /// Returns true if packets were given up on or a gap was too large since the last call, so that a keyframe is
    /// needed.
    public mutating func takeKeyframeNeed() -> Bool {
        defer { needsKeyframe = false }
        return needsKeyframe
    }
}
