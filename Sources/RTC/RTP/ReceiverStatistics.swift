/// What a receiver knows of one source and tells its sender in report blocks (RFC 3550 §6.4.1, A.3, A.8). Its numbers
/// are also the ones to give to a `NACKGenerator`: one count for both.
public struct ReceiverStatistics: Sendable {
    /// A timestamp that is further off than this has jumped, and says nothing of the network: 5 s.
    private static let mostTransitSeconds: UInt64 = 5
    private static let fewestLost: Int64 = -0x80_0000
    private static let mostLost: Int64 = 0x7f_ffff

    public let ssrc: UInt32
    /// In Hz.
    public let clockRate: UInt32
    public private(set) var unwrapper = SequenceUnwrapper()
    /// Packets that came, duplicates too.
    public private(set) var received: Int64 = 0

    /// The first number of the count that `expected` is of.
    private var base: Int64 = 0
    /// What `received` was when that count began.
    private var receivedBefore: Int64 = 0
    private var lostBefore: Int64 = 0
    private var expectedPrior: Int64 = 0
    private var receivedPrior: Int64 = 0
    /// Sixteen times the jitter, in the timestamps' units.
    private var scaledJitter: UInt64 = 0
    private var transit: UInt32?
    private var lastReport: (ntp: UInt32, at: MediaTime)?

    /// - Parameter clockRate: of the payload's timestamps, in Hz.
    public init(ssrc: UInt32, clockRate: UInt32) { (self.ssrc, self.clockRate) = (ssrc, clockRate) }

    /// Takes note of a packet. A repeated packet of RFC 4588 is not this source's: ask `nearest` for its number.
    ///
    /// - Returns: its number in a count that does not wrap.
    @discardableResult
    public mutating func receive(sequenceNumber: UInt16, timestamp: UInt32, at now: MediaTime) -> Int64 {
        let before = unwrapper.highest
        let lostBefore = lost
        let number = unwrapper.unwrap(sequenceNumber)
        if before == nil {
            base = number
        } else if unwrapper.restarted {
            restart(at: number, lost: lostBefore)
        }
        received &+= 1
        // Late packets would count the time they were late for as jitter.
        if number == unwrapper.highest, number != before { measure(timestamp, at: now) }
        return number
    }

    /// The number of a packet that others speak of: see `SequenceUnwrapper.nearest`.
    public func nearest(_ sequenceNumber: UInt16) -> Int64 { unwrapper.nearest(sequenceNumber) }

    /// The sender began to count anew: what was lost before stays as it is. The new count has begun with the packet
    /// before this one, which the old count took for one of its own.
    private mutating func restart(at number: Int64, lost: Int64) {
        lostBefore = lost &+ 1
        base = number &- 1
        receivedBefore = received &- 1
        receivedPrior = receivedBefore
        expectedPrior = 0
        transit = nil
    }

    /// RFC 3550 A.8.
    private mutating func measure(_ timestamp: UInt32, at now: MediaTime) {
        let (seconds, rest) = now.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let arrival = seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
        let transit = UInt32(truncatingIfNeeded: arrival) &- timestamp
        defer { self.transit = transit }
        guard let last = self.transit else { return }
        let difference = UInt64(Int32(bitPattern: transit &- last).magnitude)
        guard difference <= UInt64(clockRate) * Self.mostTransitSeconds else { return }
        scaledJitter = scaledJitter &+ difference &- ((scaledJitter &+ 8) >> 4)
    }

    /// Takes note of a sender report of this source.
    public mutating func receive(senderReport ntp: NTPTime, at now: MediaTime) { lastReport = (ntp.middle32, now) }

    /// In the timestamps' units.
    public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

    private var expected: Int64 {
        guard let highest = unwrapper.highest else { return 0 }
        return highest &- base &+ 1
    }

    /// Packets that did not come; fewer than none where some came twice.
    public var lost: Int64 {
        guard unwrapper.highest != nil else { return 0 }
        return lostBefore &+ expected &- (received &- receivedBefore)
    }

    /// What to report now; the fraction lost is since the last time. Nil while nothing has come.
    public mutating func reportBlock(at now: MediaTime) -> RTCP.ReportBlock? {
        guard let highest = unwrapper.highest else { return nil }
        let expectedNow = expected &- expectedPrior
        let lostNow = expectedNow &- (received &- receivedPrior)
        expectedPrior = expected
        receivedPrior = received
        let fraction = expectedNow > 0 && lostNow > 0 ? UInt8(clamping: (lostNow &<< 8) / expectedNow) : 0
        return RTCP.ReportBlock(
            ssrc: ssrc, fractionLost: fraction,
            lost: Int32(truncatingIfNeeded: min(max(lost, Self.fewestLost), Self.mostLost)),
            // The count begins at 2^16, and its cycles at none.
            highestSequenceNumber: UInt32(truncatingIfNeeded: highest &- 0x1_0000), jitter: jitter,
            lastSenderReport: lastReport?.ntp ?? 0,
            delaySinceLastSenderReport: lastReport.map { (now - $0.at).ntpShort } ?? 0)
    }
}
