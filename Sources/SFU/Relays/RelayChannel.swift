import RTC

/// A channel of the sending end: the numbers of its two SSRCs, which continue when another encoding takes the channel, and the
/// encoding that it carries.
final class RelayChannel {
    let number: UInt16
    let ssrc: UInt32
    private(set) var feed: Feed?
    /// The packets that arrived since the previous flush, in order of arrival.
    var pending: [FeedPacket] = []
    var numbers = RelayNumbers()
    var repairNumber: UInt16 = 0
    var budget = RetransmissionBudget()
    private var times: RetransmissionTimes?
    /// The number of packets that were sent, without retransmissions.
    private var sent: Int64 = 0
    /// The number of these packets that were sent, and the number that had arrived, at the latest report about the encoding. Only
    /// differences of `arrived` are meaningful: it contains an unknown constant.
    private var reported: (sent: Int64, arrived: Int64)?
    /// The number of packets that were sent before the latest interruption of the relay.
    private var sentBefore: Int64 = 0
    /// The codecs of the feed's track when `listed` was computed.
    private var codecs: [Codec] = []
    /// The same codecs as the other node knows them, with payload types of retransmissions.
    private var listed: [Codec] = []

    init(_ number: UInt16) { (self.number, ssrc) = (number, RelayChannels.ssrc(of: number)) }

    /// - Returns: false if the channel carries another encoding.
    func begin(_ feed: Feed) -> Bool {
        guard self.feed == nil else { return false }
        self.feed = feed
        numbers.begin()
        (budget, times, reported) = (RetransmissionBudget(), nil, nil)
        return true
    }

    func end() {
        feed = nil
        pending.removeAll(keepingCapacity: true)
    }

    func noteSent() { sent &+= 1 }

    /// Continues after an interruption of the relay. Packets that were sent before it do not count as losses, because they say nothing
    /// about the capacity of the network.
    func resume() {
        numbers.begin()
        (reported, sentBefore) = (nil, sent)
    }

    /// Returns the number of packets sent between the previous report and this one, and the number of them that did not arrive. Packets
    /// that the publisher's connection lost leave gaps in the sequence numbers. They do not count, because they were never sent over the
    /// relay. Returns nil for the first report about an encoding or after an interruption, and for an inconsistent report.
    func measure(_ block: RTCP.ReportBlock) -> (sent: Int64, lost: Int64)? {
        guard feed != nil else { return nil }
        // These were sent after the newest packet that had arrived.
        let ahead = Int64(numbers.latest &- UInt16(truncatingIfNeeded: block.highestSequenceNumber))
        let latest = (sent: sent &- ahead, arrived: Int64(block.highestSequenceNumber) - Int64(block.lost))
        // Until a packet sent after the interruption has arrived, the next report would still contain losses of the interruption.
        guard latest.sent > sentBefore else { return nil }
        defer { self.reported = latest }
        guard let former = reported else { return nil }
        let (passed, arrived) = (latest.sent &- former.sent, latest.arrived - former.arrived)
        guard passed > 0, (0...2 * passed).contains(arrived) else { return nil }
        return (passed, max(0, passed - arrived))
    }

    /// Returns whether a packet may be retransmitted now; see `RetransmissionTimes`.
    func mayRepeat(_ sequence: Int64, now: MediaTime) -> Bool {
        if times == nil { times = RetransmissionTimes() }
        return times?.take(sequence, now: now) ?? false
    }

    /// Returns the payload type of the retransmissions of a packet.
    func repairPayloadType(of payloadType: UInt8) -> UInt8? {
        guard let track = feed?.track else { return nil }
        if track.codecs != codecs { (codecs, listed) = (track.codecs, track.codecs.forRelay) }
        return listed.first { $0.payloadType == payloadType }?.rtxPayloadType
    }
}
