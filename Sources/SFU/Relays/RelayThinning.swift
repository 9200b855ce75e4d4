import RTC

/// Decides how many of the largest layers of each video are not offered over a relay, because the relay loses too many packets.
///
/// Losses are computed from the other node's receiver reports. Level changes are delayed: the level rises after two lossy windows in a row,
/// and falls after a calm time. If losses return soon after a layer was offered again, the calm time doubles, so that a slow network is not
/// overloaded every few seconds. It doubles once, however many layers these losses take.
struct RelayThinning: Equatable, Sendable {
    /// The share of packets above which a window is lossy, and the share up to which it is calm. Anything between changes nothing.
    static let (lossyShare, calmShare) = (0.05, 0.02)
    /// How long losses are measured before they are judged. The other node sends a report each second for each client.
    static let window = MediaInterval.seconds(2)
    /// The minimum number of packets in a window to judge it. A window with fewer packets is extended to `shortestCalm`, and then counts as
    /// calm.
    static let fewestPackets: Int64 = 100
    /// The number of lossy windows in a row after which layers are dropped.
    static let lossyWindows = 2
    /// The time after a change in which nothing is measured, so that all subscribers can switch layers.
    static let settling = MediaInterval.seconds(3)
    /// The calm time after which a layer is offered again: the initial and the maximum value.
    static let (shortestCalm, longestCalm) = (MediaInterval.seconds(10), MediaInterval.seconds(160))
    /// Losses within this time after a layer was offered again are attributed to that layer.
    static let probation = MediaInterval.seconds(30)
    /// The smallest layer of a video is always offered.
    static let maxLevel = RelayMessage.maxEncodings - 1

    /// How many of the largest layers of each video are not offered.
    private(set) var level = 0
    /// When the present window began, or will begin.
    private var since: MediaTime?
    private var sent: Int64 = 0
    private var lost: Int64 = 0
    private var lossyCount = 0
    private var calmSince: MediaTime?
    private var neededCalm = RelayThinning.shortestCalm
    /// When a layer was last offered again; nil once losses have returned.
    private var restoredAt: MediaTime?

    init() {}

    /// Adds the counts of one receiver report.
    /// - Parameters:
    ///   - sent: the number of packets that were sent.
    ///   - lost: the number of these packets that did not arrive.
    mutating func add(sent: Int64, lost: Int64, now: MediaTime) {
        guard let since, now >= since else { return }
        self.sent &+= sent
        self.lost &+= lost
    }

    /// Judges the present window if it is over. Must be called regularly.
    /// - Parameter drops: returns whether a level would drop a layer that is sent now.
    /// - Returns: whether the level has changed.
    mutating func update(now: MediaTime, drops: (Int) -> Bool) -> Bool {
        guard let since else {
            begin(at: now)
            return false
        }
        let hasEnough = sent >= Self.fewestPackets
        guard now - since >= (hasEnough ? Self.window : Self.shortestCalm) else { return false }
        let share = hasEnough ? Double(lost) / Double(sent) : 0
        begin(at: now)
        if share > Self.lossyShare { return noteLosses(now: now, drops) }
        lossyCount = 0
        guard share <= Self.calmShare else {
            calmSince = nil
            return false
        }
        return noteCalm(since: since, now: now)
    }

    private mutating func begin(at time: MediaTime) { (since, sent, lost) = (time, 0, 0) }

    private mutating func noteLosses(now: MediaTime, _ drops: (Int) -> Bool) -> Bool {
        calmSince = nil
        lossyCount += 1
        guard lossyCount >= Self.lossyWindows, level < Self.maxLevel,
            let next = (level + 1...Self.maxLevel).first(where: drops)
        else { return false }
        if let restoredAt, now - restoredAt < Self.probation { neededCalm = min(neededCalm * 2, Self.longestCalm) }
        // Further drops without a calm time in between have the same cause.
        restoredAt = nil
        (level, lossyCount) = (next, 0)
        begin(at: now + Self.settling)
        return true
    }

    private mutating func noteCalm(since start: MediaTime, now: MediaTime) -> Bool {
        let start = calmSince ?? start
        calmSince = start
        guard level > 0 else {
            if now - start >= Self.longestCalm { neededCalm = Self.shortestCalm }
            return false
        }
        guard now - start >= neededCalm else { return false }
        level -= 1
        (calmSince, restoredAt) = (nil, now)
        begin(at: now + Self.settling)
        return true
    }
}
