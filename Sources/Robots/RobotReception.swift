import RTC

/// What comes into one section of a connection: its counts, and what of it is missing.
public final class RobotReception {
    /// Asking again waits for an answer this long; what comes from the same machine or continent is sooner there.
    static let roundTrip = MediaInterval.milliseconds(60)
    /// Between two requests for a keyframe.
    static let keyframeInterval = MediaInterval.milliseconds(500)

    public let mid: String
    public let kind: MediaKind
    public internal(set) var codecs: [Codec]
    /// As announced, or learned from the packets' mid.
    public private(set) var ssrc: UInt32?
    public private(set) var repairSSRC: UInt32?
    /// As the other end calls it.
    public internal(set) var msid: MediaStreamID?
    /// Packets that came at once, without those repeated.
    public private(set) var packets = 0
    /// With headers, without what encryption adds.
    public private(set) var bytes = 0
    public private(set) var repeats = 0
    /// Packets that were asked for again.
    public internal(set) var asked = 0
    public internal(set) var keyframesAsked = 0
    public private(set) var lastAt: MediaTime?
    /// For whoever handles the packets.
    public var tag = 0

    private var statistics: ReceiverStatistics?
    var nacks: NACKGenerator?
    var wantsKeyframe = false
    var keyframeAskedAt: MediaTime?

    init(_ media: NegotiatedMedia, complains: Bool) {
        (mid, kind, codecs, msid) = (media.mid, media.kind, media.codecs, media.msid)
        if complains, kind == .video, codecs.contains(where: \.nack) { nacks = NACKGenerator() }
    }

    /// Packets that did not come, so far; fewer than none where some came twice.
    public var lost: Int64 { statistics?.lost ?? 0 }
    /// What should have come by now.
    public var expected: Int64 { Int64(packets) + lost }
    /// In the timestamps' units.
    public var jitter: UInt32 { statistics?.jitter ?? 0 }

    public func codec(_ payloadType: UInt8) -> Codec? { codecs.first { $0.payloadType == payloadType } }

    /// - Returns: whether it is another source than before.
    func bind(_ source: RemoteSource) -> Bool {
        repairSSRC = source.rtxSSRC ?? (ssrc == source.ssrc ? repairSSRC : nil)
        guard ssrc != source.ssrc else { return false }
        ssrc = source.ssrc
        statistics = ReceiverStatistics(ssrc: source.ssrc, clockRate: kind == .audio ? 48_000 : 90_000)
        if nacks != nil { nacks = NACKGenerator() }
        return true
    }

    func bindRepair(_ ssrc: UInt32) { repairSSRC = ssrc }

    /// A packet that came at once.
    /// - Returns: its number.
    func take(_ packet: RTPPacket, length: Int, at now: MediaTime) -> Int64 {
        packets &+= 1
        bytes &+= length
        lastAt = now
        let number =
            statistics?.receive(sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, at: now) ?? 0
        if nacks != nil { nacks?.receive(number, at: now) }
        return number
    }

    /// A packet that was asked for again. It is none that `lost` counts as come: that tells of the network.
    func takeRepeat(_ sequence: UInt16, at now: MediaTime) -> Int64 {
        repeats &+= 1
        let number = statistics?.nearest(sequence) ?? 0
        nacks?.receive(number, at: now)
        return number
    }

    func take(senderReport info: RTCP.SenderInfo, at now: MediaTime) {
        statistics?.receive(senderReport: info.ntp, at: now)
    }

    func reportBlock(at now: MediaTime) -> RTCP.ReportBlock? { statistics?.reportBlock(at: now) }

    /// The payload type of what a repeated packet repeats (RFC 4588 §8.1).
    func original(_ payloadType: UInt8) -> UInt8? {
        codecs.first { $0.rtxPayloadType == payloadType }?.payloadType
    }

    /// Whether packets that are missing are being asked for.
    var complaintDue: MediaTime? {
        guard let nacks, nacks.outstanding > 0 else { return nil }
        return nacks.nextTimeout
    }
}
