/// Which packets of one source to ask for again (RFC 4585 §6.2.1), and when to stop and ask for a keyframe instead.
///
/// ```swift
/// nacks.receive(number, at: now)
/// var lost: [UInt16] = []
/// nacks.forEachDue(at: now, roundTrip: roundTrip) { lost.append($0) }
/// if !lost.isEmpty { RTCP.writeNACK(sender: ours, media: theirs, lost: lost, to: &writer) }
/// if nacks.takeKeyframeNeed() { … }
/// ```
/// Its memory is taken at the beginning; a packet allocates none.
public struct NACKGenerator: Sendable {
    /// As many as one packet of the network has room for, each by itself.
    public static let mostOutstanding = 250
    /// A hole larger than this, about a second of video, is not mended: a keyframe is sooner there.
    public static let mostGap: Int64 = 1_000
    /// A packet is asked for this often. What ten answers did not bring the network cannot carry.
    public static let mostTries = 10
    /// What is merely overtaken comes within this time.
    public static let reorderTolerance = MediaInterval.milliseconds(15)
    /// No packet is asked for again sooner, however near its sender says to be.
    public static let shortestInterval = MediaInterval.milliseconds(20)
    /// Nor later: a sender whose round trip is longer has dropped the packet before the second question comes.
    public static let longestInterval = MediaInterval.milliseconds(500)

    private struct Missing {
        let number: Int64
        /// When to ask (again).
        var due: MediaTime
        var tries = 0
    }

    /// In ascending order: new ones come at the end.
    private var missing: ContiguousArray<Missing> = []
    private var highest: Int64?
    private var needsKeyframe = false

    public init() { missing.reserveCapacity(Self.mostOutstanding) }

    public var outstanding: Int { missing.count }

    /// Takes note of a packet, repeated ones too.
    ///
    /// - Parameter number: in a count that does not wrap, from `ReceiverStatistics` or `SequenceUnwrapper`.
    /// - Returns: whether it had been missing.
    @discardableResult
    public mutating func receive(_ number: Int64, at now: MediaTime) -> Bool {
        guard let highest else {
            self.highest = number
            return false
        }
        guard number > highest else { return found(number) }
        self.highest = number
        let (gap, overflow) = number.subtractingReportingOverflow(highest)
        if overflow || gap > Self.mostGap {
            missing.removeAll(keepingCapacity: true)
            needsKeyframe = true
        } else if gap > 1 {
            note(gap: highest &+ 1..<number, at: now)
        }
        return false
    }

    private mutating func note(gap: Range<Int64>, at now: MediaTime) {
        let new = min(gap.count, Self.mostOutstanding)
        let excess = missing.count + new - Self.mostOutstanding
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

    /// Where the first one is that is not below `number`.
    private func position(of number: Int64) -> Int {
        var (low, high) = (0, missing.count)
        while low < high {
            let middle = (low + high) / 2
            if missing[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// A keyframe begins with this packet: nobody needs what was lost before it.
    public mutating func forget(before number: Int64) {
        missing.removeFirst(position(of: number))
    }

    /// Nobody needs anything from before this packet, and nobody a keyframe in its place.
    public mutating func forgetAll(before number: Int64) {
        forget(before: number)
        needsKeyframe = false
    }

    /// Gives the packets that are to be asked for now, in ascending order, and takes it that they are.
    ///
    /// - Parameter roundTrip: to the sender and back; asking again waits for it, within `shortestInterval` and
    ///   `longestInterval`.
    public mutating func forEachDue(
        at now: MediaTime, roundTrip: MediaInterval, _ body: (_ sequenceNumber: UInt16) -> Void
    ) {
        let interval = min(max(roundTrip, Self.shortestInterval), Self.longestInterval)
        var kept = 0
        for index in missing.indices {
            var entry = missing[index]
            if entry.due <= now {
                guard entry.tries < Self.mostTries else {
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

    /// When `forEachDue` next has something to do.
    public var nextTimeout: MediaTime? {
        var earliest = missing.first?.due
        for entry in missing { earliest = min(earliest ?? entry.due, entry.due) }
        return earliest
    }

    /// Whether packets have been given up, so that only a keyframe helps; then false until more are.
    public mutating func takeKeyframeNeed() -> Bool {
        defer { needsKeyframe = false }
        return needsKeyframe
    }
}
