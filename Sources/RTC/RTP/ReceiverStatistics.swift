/// The statistics that a receiver keeps about one source for report blocks (RFC 3550 §6.4.1, A.3, A.8). They also provide the
/// extended sequence numbers for a `NACKGenerator`.
public struct ReceiverStatistics: Sendable {
    /// The largest change in the transit time that counts as jitter. A larger change means that the sender's
    /// timestamps jumped.
    private static let maxTransitSeconds: UInt64 = 5
    private static let minLost: Int64 = -0x80_0000
    private static let maxLost: Int64 = 0x7f_ffff

    public let ssrc: UInt32
    /// The clock rate in Hz.
    public let clockRate: UInt32
    public private(set) var unwrapper = SequenceUnwrapper()
    /// The number of received packets, including duplicates.
    public private(set) var received: Int64 = 0

    /// The first extended sequence number included in the current `expected` count.
    private var base: Int64 = 0
    /// The value of `received` when the current `expected` count began.
    private var receivedBefore: Int64 = 0
    private var lostBefore: Int64 = 0
    private var expectedPrior: Int64 = 0
    private var receivedPrior: Int64 = 0
    /// The jitter times 16, in RTP timestamp units.
    private var scaledJitter: UInt64 = 0
    private var transit: UInt32?
    private var lastReport: (ntp: UInt32, at: MediaTime)?

    /// - Parameter clockRate: the clock rate of the timestamps in Hz.
    public init(ssrc: UInt32, clockRate: UInt32) { (self.ssrc, self.clockRate) = (ssrc, clockRate) }

    /// Records a packet. An RTX packet (RFC 4588) does not belong to this source; pass its original sequence number to
    /// `nearest` instead.
    ///
    /// - Returns: the packet's extended sequence number.
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
        // Skip late packets, because their delay would be counted as jitter.
        if number == unwrapper.highest, number != before { measure(timestamp, at: now) }
        return number
    }

    /// Returns the extended sequence number for one in a NACK or retransmission; see `SequenceUnwrapper.nearest`.
    public func nearest(_ sequenceNumber: UInt16) -> Int64 { unwrapper.nearest(sequenceNumber) }

    /// Starts a new count after the sender restarted its sequence numbers. Earlier losses stay counted. The new sequence began
    /// with the previous packet, which the old count included by mistake.
    private mutating func restart(at number: Int64, lost: Int64) {
        lostBefore = lost &+ 1
        base = number &- 1
        receivedBefore = received &- 1
        receivedPrior = receivedBefore
        expectedPrior = 0
        transit = nil
    }

    /// Updates the jitter (RFC 3550 A.8).
    private mutating func measure(_ timestamp: UInt32, at now: MediaTime) {
        let (seconds, rest) = now.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let arrival = seconds &* Int64(clockRate) &+ rest &* Int64(clockRate) / 1_000_000_000
        let transit = UInt32(truncatingIfNeeded: arrival) &- timestamp
        defer { self.transit = transit }
        guard let last = self.transit else { return }
        let difference = UInt64(Int32(bitPattern: transit &- last).magnitude)
        guard difference <= UInt64(clockRate) * Self.maxTransitSeconds else { return }
        scaledJitter = scaledJitter &+ difference &- ((scaledJitter &+ 8) >> 4)
    }

    /// Records the arrival of a sender report from this source.
    public mutating func receive(senderReport ntp: NTPTime, at now: MediaTime) { lastReport = (ntp.middle32, now) }

    /// The interarrival jitter in RTP timestamp units.
    public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

    private var expected: Int64 {
        guard let highest = unwrapper.highest else { return 0 }
        return highest &- base &+ 1
    }

    /// The cumulative number of lost packets; negative if duplicates outnumber losses.
    public var lost: Int64 {
        guard unwrapper.highest != nil else { return 0 }
        return lostBefore &+ expected &- (received &- receivedBefore)
    }

    /// Returns a report block with the fraction lost since the previous call. Nil before the first packet.
    public mutating func reportBlock(at now: MediaTime) -> RTCP.ReportBlock? {
        guard let highest = unwrapper.highest else { return nil }
        let expectedNow = expected &- expectedPrior
        let lostNow = expectedNow &- (received &- receivedPrior)
        expectedPrior = expected
        receivedPrior = received
        let fraction = expectedNow > 0 && lostNow > 0 ? UInt8(clamping: (lostNow &<< 8) / expectedNow) : 0
        return RTCP.ReportBlock(
            ssrc: ssrc, fractionLost: fraction,
            lost: Int32(truncatingIfNeeded: min(max(lost, Self.minLost), Self.maxLost)),
            // Extended numbers begin at 2^16 here, but the cycles in reports begin at 0.
            highestSequenceNumber: UInt32(truncatingIfNeeded: highest &- 0x1_0000), jitter: jitter,
            lastSenderReport: lastReport?.ntp ?? 0,
            delaySinceLastSenderReport: lastReport.map { (now - $0.at).ntpShort } ?? 0)
    }
}
