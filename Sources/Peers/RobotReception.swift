import RTC

/// One section in which a connection receives: its counters and its missing packets.
public final class RobotReception {
    /// How long to wait before requesting a packet again. Round trips within one host or one continent are shorter.
    static let roundTrip = MediaInterval.milliseconds(60)
    /// The minimum interval between two keyframe requests.
    static let keyframeInterval = MediaInterval.milliseconds(500)

    public let mid: String
    public let kind: MediaKind
    public internal(set) var codecs: [Codec]
    /// The section's SSRC, announced in SDP or learned from the MID header extension; nil while it is unknown.
    public private(set) var ssrc: UInt32?
    public private(set) var repairSSRC: UInt32?
    /// The msid that the remote side announced for the section; nil if it announced none.
    public internal(set) var msid: MediaStreamID?
    /// The number of packets received, without retransmissions.
    public private(set) var packets = 0
    /// The number of bytes received, with RTP headers and without the SRTP authentication tag.
    public private(set) var bytes = 0
    public private(set) var retransmissions = 0
    /// The number of retransmissions requested with NACK.
    public internal(set) var retransmissionsRequested = 0
    public internal(set) var keyframesRequested = 0
    public private(set) var lastAt: MediaTime?
    /// A number that the handler may use for any purpose. The reception does not use it.
    public var tag = 0

    private var statistics: ReceiverStatistics?
    var nacks: NACKGenerator?
    var wantsKeyframe = false
    var keyframeRequestedAt: MediaTime?

    init(_ media: NegotiatedMedia, sendsFeedback: Bool) {
        (mid, kind, codecs, msid) = (media.mid, media.kind, media.codecs, media.msid)
        if sendsFeedback, kind == .video, codecs.contains(where: \.nack) { nacks = NACKGenerator() }
    }

    /// The number of missing packets; negative if more duplicates have arrived than packets are missing.
    public var lost: Int64 { statistics?.lost ?? 0 }
    /// The number of packets that should have arrived.
    public var expected: Int64 { Int64(packets) + lost }
    /// The interarrival jitter in RTP timestamp units.
    public var jitter: UInt32 { statistics?.jitter ?? 0 }

    public func codec(_ payloadType: UInt8) -> Codec? { codecs.first { $0.payloadType == payloadType } }

    /// Sets the section's SSRCs. Starts new statistics if the SSRC of the media changed.
    /// - Returns: true if the SSRC of the media changed.
    func bind(_ source: RemoteSource) -> Bool {
        repairSSRC = source.rtxSSRC ?? (ssrc == source.ssrc ? repairSSRC : nil)
        guard ssrc != source.ssrc else { return false }
        ssrc = source.ssrc
        statistics = ReceiverStatistics(ssrc: source.ssrc, clockRate: kind == .audio ? 48_000 : 90_000)
        if nacks != nil { nacks = NACKGenerator() }
        return true
    }

    func bindRepair(_ ssrc: UInt32) { repairSSRC = ssrc }

    /// Counts a packet that is not a retransmission.
    ///
    /// - Returns: the packet's extended sequence number.
    func take(_ packet: RTPPacket, length: Int, at now: MediaTime) -> Int64 {
        packets &+= 1
        bytes &+= length
        lastAt = now
        let number =
            statistics?.receive(sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, at: now) ?? 0
        if nacks != nil { nacks?.receive(number, at: now) }
        return number
    }

    /// Counts a retransmission, and returns its extended sequence number. `lost` does not decrease, because it
    /// measures the network.
    func takeRetransmission(_ sequence: UInt16, at now: MediaTime) -> Int64 {
        retransmissions &+= 1
        let number = statistics?.nearest(sequence) ?? 0
        nacks?.receive(number, at: now)
        return number
    }

    func take(senderReport info: RTCP.SenderInfo, at now: MediaTime) {
        statistics?.receive(senderReport: info.ntp, at: now)
    }

    func reportBlock(at now: MediaTime) -> RTCP.ReportBlock? { statistics?.reportBlock(at: now) }

    /// Returns the original payload type for a retransmission payload type (RFC 4588 §8.1); nil for any other payload
    /// type.
    func original(_ payloadType: UInt8) -> UInt8? {
        codecs.first { $0.rtxPayloadType == payloadType }?.payloadType
    }

    /// The time at which to send the next NACK; nil if no packet is missing.
    var feedbackDue: MediaTime? {
        guard let nacks, nacks.outstanding > 0 else { return nil }
        return nacks.nextTimeout
    }
}
