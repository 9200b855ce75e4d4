/// Decides which lost packets of one source to request (RFC 4585 §6.2.1), and when to request a keyframe instead.
///
/// ```swift
/// nacks.receive(number, at: now)
/// var lost: [UInt16] = []
/// nacks.forEachDue(at: now, roundTrip: roundTrip) { lost.append($0) }
/// if !lost.isEmpty { RTCP.writeNACK(sender: ours, media: theirs, lost: lost, to: &writer) }
/// if nacks.takeKeyframeNeed() { … }
/// ```
/// Memory is allocated once at the start, not for each packet.
public struct NACKGenerator: Sendable {
    /// The maximum number of missing packets: as many as fit in one NACK packet as separate items.
    public static let maxOutstanding = 250
    /// The largest gap to request, about a second of video. After a larger gap, a keyframe arrives sooner.
    public static let maxGap: Int64 = 1_000
    /// The maximum number of requests for one packet. After that, the network is assumed to be unable to deliver it.
    public static let maxTries = 10
    /// How long to wait before the initial request, because the packet may only be reordered.
    public static let reorderTolerance = MediaInterval.milliseconds(15)
    /// The minimum time between two requests for a packet, even if the round-trip time is shorter.
    public static let shortestInterval = MediaInterval.milliseconds(20)
    /// The maximum time between two requests for a packet. If the round-trip time is longer, the sender has already dropped the
    /// packet by the time the second request arrives.
    public static let longestInterval = MediaInterval.milliseconds(500)

    private struct Missing {
        let number: Int64
        /// When to send the next request for this packet.
        var due: MediaTime
        var tries = 0
    }

    /// The missing packets in ascending order; new entries are appended.
    private var missing: ContiguousArray<Missing> = []
    private var highest: Int64?
    private var needsKeyframe = false

    public init() { missing.reserveCapacity(Self.maxOutstanding) }

    public var outstanding: Int { missing.count }

    /// Records a received packet, including retransmissions.
    ///
    /// - Parameter number: the extended sequence number from `ReceiverStatistics` or `SequenceUnwrapper`.
    /// - Returns: true if the packet was missing.
    @discardableResult
    public mutating func receive(_ number: Int64, at now: MediaTime) -> Bool {
        guard let highest else {
            self.highest = number
            return false
        }
        guard number > highest else { return found(number) }
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

    private mutating func found(_ number: Int64) -> Bool {
        let index = position(of: number)
        guard index < missing.count, missing[index].number == number else { return false }
        missing.remove(at: index)
        return true
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

    /// Forgets the missing packets before `number`, and that a keyframe is needed.
    public mutating func forgetAll(before number: Int64) {
        forget(before: number)
        needsKeyframe = false
    }

    /// Calls `body` with the packets to request now, in ascending order, and records the requests.
    ///
    /// - Parameter roundTrip: the round-trip time to the sender. It is used as the time between requests for a packet, limited
    ///   by `shortestInterval` and `longestInterval`.
    public mutating func forEachDue(
        at now: MediaTime, roundTrip: MediaInterval, _ body: (_ sequenceNumber: UInt16) -> Void
    ) {
        let interval = min(max(roundTrip, Self.shortestInterval), Self.longestInterval)
        var kept = 0
        for index in missing.indices {
            var entry = missing[index]
            if entry.due <= now {
                guard entry.tries < Self.maxTries else {
                    needsKeyframe = true
                    continue
                }
                entry.tries += 1
                entry.due = now + interval
                body(UInt16(truncatingIfNeeded: entry.number))
            }
            missing[kept] = entry
            kept += 1
        }
        missing.removeLast(missing.count - kept)
    }

    /// When `forEachDue` should be called next.
    public var nextTimeout: MediaTime? {
        var earliest = missing.first?.due
        for entry in missing { earliest = min(earliest ?? entry.due, entry.due) }
        return earliest
    }

    /// Returns true if packets were given up since the last call, so that a keyframe is needed.
    public mutating func takeKeyframeNeed() -> Bool {
        defer { needsKeyframe = false }
        return needsKeyframe
    }
}
