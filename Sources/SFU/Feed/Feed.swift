import RTC

/// The packets of one encoding of a publisher's track, in order, and the most recent ones stored.
///
/// A feed is the seam between the publisher's half and the subscribers' half of the router. The ingress fills it, and
/// readers take packets from it. A stored packet never changes, because many subscribers read it. Only the padding after its
/// payload may change. Only the subscribers' demand goes in the other direction, as state: `isWatched` and `keyframes`, and
/// `FeedTrack.demand`.
///
/// ```
///  publisher → ingress → Feed → egress → subscribers
///                 ↑        │
///                 └ demand ┘
/// ```
final class Feed {
    unowned let track: FeedTrack
    /// The RTP stream id of the encoding (RFC 8851); nil without simulcast.
    let rid: String?
    /// The feed's index in the track's `feeds`.
    let index: Int
    private(set) var history: PacketHistory?
    /// The index in the track's `codecs` of the codec of the most recent video packet; nil for audio, and until a
    /// packet arrives after each offer.
    private(set) var codec: Int?
    /// The most recent sender report from the publisher; nil before the first.
    private(set) var report: SourceReport?

    /// Demand: whether a subscriber receives this feed or is about to. If false, its packets are not stored or
    /// forwarded, and lost ones are not requested.
    var isWatched = false
    /// Demand: whether subscribers need a keyframe.
    var keyframes = KeyframeRequests()

    init(track: FeedTrack, rid: String?, index: Int) { (self.track, self.rid, self.index) = (track, rid, index) }

    // MARK: Filling

    /// Starts with a new source, whose sequence numbers have no relation to those of the previous one.
    func restart() {
        (history, report) = (nil, nil)
        for reader in track.readers { reader.restart(self) }
    }

    /// Discards the stored packets.
    func forgetHistory() { history = nil }

    /// Stores a packet of video and passes it to the readers.
    /// - Parameter arrivedAt: when the datagram arrived.
    func write(_ packet: FeedPacket, arrivedAt: MediaTime, now: MediaTime) {
        if track.kind == .video {
            let history = history ?? PacketHistory()
            self.history = history
            history.store(
                packet.bytes, packet.packet, sequence: packet.sequence, isRecovered: packet.isRecovered, now: now)
        }
        pass(packet, arrivedAt: arrivedAt)
    }

    /// Passes a packet to the readers without storing it.
    func pass(_ packet: FeedPacket, arrivedAt: MediaTime) {
        for reader in track.readers { reader.receive(packet, of: self, arrivedAt: arrivedAt) }
    }

    /// Records the codec of a packet of video.
    /// - Returns: whether it differs from that of the previous packet.
    func note(codec: Int) -> Bool {
        guard self.codec != codec else { return false }
        self.codec = codec
        return true
    }

    func forgetCodec() { codec = nil }

    func note(_ report: SourceReport) {
        self.report = report
        for reader in track.readers { reader.reported(self) }
    }

    /// Records the codec and the report that another router knows.
    func note(codec: Int?, report: SourceReport?) { (self.codec, self.report) = (codec, report) }
}

/// A publisher's sender report (RFC 3550 §6.4.1), which maps its media clock to its wall clock.
struct SourceReport: Equatable, Sendable {
    var ntp: NTPTime
    var timestamp: UInt32
    /// When the report arrived.
    var arrivedAt: MediaTime

    /// Returns the report that the publisher would send after this interval. Both of its clocks have advanced by the interval.
    func advanced(by interval: MediaInterval, clockRate: UInt32) -> SourceReport {
        let ticks = interval.nanoseconds / 1000 &* Int64(clockRate) / 1_000_000
        return SourceReport(
            ntp: ntp + interval, timestamp: timestamp &+ UInt32(truncatingIfNeeded: ticks),
            arrivedAt: arrivedAt + interval)
    }
}
