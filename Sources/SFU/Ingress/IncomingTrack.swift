import RTC

/// The audio or video that a client publishes in one media section, for example from its microphone or camera: what
/// the ingress knows of it. Everything that subscribers need is in `feedTrack`.
final class IncomingTrack: FeedSource {
    unowned let publisher: Publisher
    /// The track as subscribers see it.
    let feedTrack: FeedTrack
    /// Maps each RTX payload type to the payload type of the packets that it retransmits; 255 for all other payload
    /// types.
    private var repairedByPayloadType = [UInt8](repeating: 255, count: 128)
    var audioLevelID: UInt8 = 0
    /// Whether the publisher answers NACKs (RFC 4585).
    private(set) var supportsNACK = false
    /// Whether keyframes are requested with PLI. If false, FIR is used.
    private(set) var supportsPLI = true
    /// Whether feedback may be sent without a preceding receiver report (reduced-size RTCP, RFC 5506).
    private(set) var hasReducedSizeRTCP = false
    /// Whether the description lists the encodings by their RIDs (simulcast).
    private(set) var hasRIDs = false
    /// In the order of the feeds of `feedTrack`.
    private(set) var encodings: [IncomingEncoding] = []
    var announcement = LayerAnnouncement()
    /// Whether the codec advice may have to change.
    var needsAdvice = false
    var advice = CodecAdvice()
    var uplink = UplinkQuality()
    var judgedAt: MediaTime?
    /// The number of consecutive seconds in which too few packets arrived to judge the uplink.
    var quietSeconds = 0

    /// The maximum number of encodings of a track. Browsers send fewer of one video.
    static let maxEncodings = 4

    init(publisher: Publisher, mid: String, kind: MediaKind) {
        self.publisher = publisher
        feedTrack = FeedTrack(mid: mid, kind: kind, isRemote: publisher.isRemote)
        feedTrack.source = self
    }

    /// Applies the negotiated parameters. Must be called after each offer.
    func update(_ media: NegotiatedMedia) {
        update(codecs: media.codecs, extensions: media.extensions)
        supportsNACK = media.codecs.contains(where: \.nack)
        supportsPLI = media.codecs.contains(where: \.pli)
        hasRIDs = !media.rids.isEmpty
        hasReducedSizeRTCP = media.hasReducedSizeRTCP
    }

    /// Applies the parameters that the publisher's node has negotiated. A node answers NACKs and PLI, and needs no receiver report
    /// before feedback.
    /// - Returns: false if they are the present ones.
    func updateRemote(codecs: [Codec], extensions: [HeaderExtension: UInt8]) -> Bool {
        guard feedTrack.codecs != codecs || feedTrack.extensions != extensions else { return false }
        update(codecs: codecs, extensions: extensions)
        (supportsNACK, supportsPLI, hasReducedSizeRTCP) = (true, true, true)
        return true
    }

    private func update(codecs: [Codec], extensions: [HeaderExtension: UInt8]) {
        feedTrack.update(codecs: codecs, extensions: extensions)
        repairedByPayloadType = .init(repeating: 255, count: 128)
        for codec in codecs where codec.payloadType < 128 {
            if let repair = codec.rtxPayloadType, repair < 128 {
                repairedByPayloadType[Int(repair)] = codec.payloadType
            }
        }
        audioLevelID = extensions[.audioLevel] ?? 0
    }

    /// Returns the payload type of the original packets that this RTX payload type retransmits (RFC 4588 §8.1); nil if
    /// it is not an RTX payload type.
    func repaired(_ payloadType: UInt8) -> UInt8? {
        let repaired = repairedByPayloadType[Int(payloadType & 127)]
        return repaired == 255 ? nil : repaired
    }

    /// Returns the encoding with this RID, and creates it if it does not exist. Returns nil if there are too many encodings, or if
    /// the RID is missing although the description has RIDs, as in packets that only probe the bandwidth.
    func encoding(rid: String?) -> IncomingEncoding? {
        if let known = encodings.first(where: { $0.feed.rid == rid }) { return known }
        guard rid != nil || !hasRIDs else { return nil }
        return addEncoding(rid: rid)
    }

    /// Adds an encoding. Returns nil if there are too many.
    func addEncoding(rid: String?) -> IncomingEncoding? {
        guard encodings.count < Self.maxEncodings, publisher.encodingCount < Publisher.maxEncodings else { return nil }
        let encoding = IncomingEncoding(track: self, feed: feedTrack.addFeed(rid: rid))
        encodings.append(encoding)
        return encoding
    }

    // MARK: FeedSource

    func requestKeyframeSoon() { publisher.requestKeyframesSoon() }

    func demandChanged() {
        needsAdvice = feedTrack.demand.refused != 0 || advice.payloadType != nil
        publisher.isDemandChanged = true
    }
}

/// One RTP stream that a client sends, with its receiver state.
final class IncomingEncoding {
    unowned let track: IncomingTrack
    let feed: Feed
    private(set) var ssrc: UInt32 = 0
    /// The receiver statistics; nil until the SSRC is known.
    var statistics: ReceiverStatistics?
    var missing = NACKGenerator()
    /// Which of the latest packets of redundant audio arrived or were recovered.
    var arrivedAudio = ArrivedAudio()
    var lastPacketAt: MediaTime?
    var firSequence: UInt8 = 0
    /// The total number of packets when the uplink was last judged.
    var judgedPackets: Int64 = 0
    /// The total number of losses when the uplink was last judged.
    var judgedLosses: Int64 = 0

    init(track: IncomingTrack, feed: Feed) { (self.track, self.feed) = (track, feed) }

    /// Starts receiving a new SSRC: discards the statistics and the history of the previous SSRC.
    func begin(_ ssrc: UInt32) {
        self.ssrc = ssrc
        statistics = ReceiverStatistics(ssrc: ssrc, clockRate: feed.track.clockRate)
        missing = NACKGenerator()
        arrivedAudio = ArrivedAudio()
        feed.restart()
    }

    /// Stops receiving.
    func stop() {
        (ssrc, statistics, lastPacketAt) = (0, nil, nil)
        missing = NACKGenerator()
        feed.forgetHistory()
    }
}
