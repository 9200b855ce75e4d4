import RTC

/// The audio or video that a client publishes in one media section, for example from its microphone or camera. The
/// track has one encoding, or several encodings of the same video (simulcast, RFC 8853), and a list of subscribers.
final class IncomingTrack {
    unowned let peer: Peer
    let mid: String
    let kind: MediaKind
    private(set) var codecs: [Codec] = []
    /// Maps each payload type to an index in `codecs`; -1 if there is no codec. This is a table, in which a lookup is
    /// fast, because it is read for every packet.
    private var codecByPayloadType = [Int8](repeating: -1, count: 128)
    /// Maps each RTX payload type to the payload type of the packets that it retransmits; 255 for all other payload
    /// types.
    private var repairedByPayloadType = [UInt8](repeating: 255, count: 128)
    var extensions: [HeaderExtension: UInt8] = [:]
    /// One bit per header extension id that is forwarded to subscribers. Ids of 63 and above share the highest bit.
    private(set) var forwardedExtensions: UInt64 = 0
    var audioLevelID: UInt8 = 0
    /// The loudness of the audio, and whether the audio is forwarded. In large sessions, only the loudest tracks are.
    var voice = Voice()
    /// Whether the publisher answers NACKs (RFC 4585).
    private(set) var supportsNACK = false
    /// Whether keyframes are requested with PLI. If false, FIR is used.
    private(set) var supportsPLI = true
    /// Whether feedback may be sent without a preceding receiver report (reduced-size RTCP, RFC 5506).
    private(set) var hasReducedSizeRTCP = false
    /// Whether the description lists the encodings by their RIDs (simulcast).
    private(set) var hasRIDs = false
    var clockRate: UInt32 { kind == .audio ? 48_000 : 90_000 }
    private(set) var encodings: [IncomingEncoding] = []
    /// For each encoding, in the order of `encodings`, the state that layer selection needs.
    var layers: [Layer] = []
    /// Whether layers must be selected again for all subscribers.
    var needsSelection = false
    var announcement = LayerAnnouncement()
    /// Whether the codec advice may have to change.
    var needsAdvice = false
    var advice = CodecAdvice()
    var uplink = UplinkQuality()
    var judgedAt: MediaTime?
    /// The number of consecutive seconds in which too few packets arrived to judge the uplink.
    var quietSeconds = 0
    /// The published stream that this track belongs to; nil while the track is not part of one.
    weak var publication: Publication?
    var subscribers: [OutgoingTrack] = []

    /// The maximum number of encodings of a track. Browsers send fewer of one video.
    static let maxEncodings = 4

    init(peer: Peer, mid: String, kind: MediaKind) {
        (self.peer, self.mid, self.kind) = (peer, mid, kind)
    }

    /// Applies the negotiated parameters. Must be called after each offer.
    func update(_ media: NegotiatedMedia) {
        // Drop the pending packets, because they refer to the previous codecs by index.
        if codecs != media.codecs { for encoding in encodings { encoding.forgetPending() } }
        codecs = media.codecs
        codecByPayloadType = .init(repeating: -1, count: 128)
        repairedByPayloadType = .init(repeating: 255, count: 128)
        for (index, codec) in codecs.enumerated() where codec.payloadType < 128 {
            codecByPayloadType[Int(codec.payloadType)] = Int8(clamping: index)
            if let repair = codec.rtxPayloadType, repair < 128 {
                repairedByPayloadType[Int(repair)] = codec.payloadType
            }
        }
        extensions = media.extensions
        forwardedExtensions = 0
        for (name, id) in extensions where name.isForwarded { forwardedExtensions |= 1 << UInt64(min(id, 63)) }
        audioLevelID = media.extensions[.audioLevel] ?? 0
        supportsNACK = codecs.contains(where: \.nack)
        supportsPLI = codecs.contains(where: \.pli)
        for encoding in encodings { encoding.codec = nil }
        hasRIDs = !media.rids.isEmpty
        hasReducedSizeRTCP = media.hasReducedSizeRTCP
    }

    func codecIndex(_ payloadType: UInt8) -> Int? {
        let index = codecByPayloadType[Int(payloadType & 127)]
        return index < 0 ? nil : Int(index)
    }

    /// Returns whether this header extension may be forwarded to subscribers. Ids of 63 and above share one bit, so
    /// the result can be true for an extension that is not forwarded. Such a false positive only costs time.
    func forwardsExtension(_ extensionID: UInt8) -> Bool {
        forwardedExtensions >> UInt64(min(extensionID, 63)) & 1 == 1
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
        if let known = encodings.first(where: { $0.rid == rid }) { return known }
        guard rid != nil || !hasRIDs else { return nil }
        guard encodings.count < Self.maxEncodings, peer.encodingCount < Peer.maxEncodings else { return nil }
        let encoding = IncomingEncoding(track: self, rid: rid)
        encodings.append(encoding)
        layers.append(Layer())
        needsSelection = true
        return encoding
    }

    func add(_ subscriber: OutgoingTrack) {
        subscribers.append(subscriber)
        needsSelection = true
    }

    func remove(_ subscriber: OutgoingTrack) {
        guard let index = subscribers.firstIndex(where: { $0 === subscriber }) else { return }
        subscribers.remove(at: index)
        // The subscribers after the removed one move up by one position. Adjust the unfinished passes that will
        // continue at one of them.
        for encoding in encodings where index < encoding.pass?.subscriber ?? 0 { encoding.pass?.subscriber -= 1 }
        needsSelection = true
    }
}

/// One RTP stream that a client sends, with its receiver state.
final class IncomingEncoding {
    unowned let track: IncomingTrack
    let rid: String?
    /// The encoding's index in the track's `encodings`.
    let index: Int
    /// Whether a subscriber receives this encoding or is about to. If false, its packets are not stored, and lost ones are not
    /// requested.
    var isWatched = false
    private(set) var ssrc: UInt32 = 0
    var repairSSRC: UInt32?
    /// The receiver statistics; nil until the SSRC is known.
    var statistics: ReceiverStatistics?
    var missing = NACKGenerator()
    private(set) var history: PacketHistory?
    var keyframes = KeyframeRequests()
    /// Which of the latest packets of redundant audio arrived or were recovered.
    var arrivedAudio = ArrivedAudio()
    /// The packets that arrived since the previous flush, in order of arrival.
    var pending: [PendingPacket] = []
    /// When the first of the pending packets arrived; nil once that packet was forwarded to a subscriber.
    var waitingSince: MediaTime?
    /// How far the pending packets were forwarded, if the previous flush ended before all subscribers had received
    /// them; otherwise nil.
    var pass: ForwardingPass?
    /// Whether the pending packets' bytes are in the history rather than the receive buffer.
    var isHeld = false
    var lastPacketAt: MediaTime?
    /// The index in the track's `codecs` of the codec of the most recent video packet; nil for audio, and until a
    /// packet arrives after each offer.
    var codec: Int?
    /// The most recent sender report from the publisher; nil before the first.
    var report: SourceReport?
    var firSequence: UInt8 = 0
    /// The total number of packets when the uplink was last judged.
    var judgedPackets: Int64 = 0
    /// The total number of losses when the uplink was last judged.
    var judgedLosses: Int64 = 0

    /// The progress of forwarding: the number of pending packets in this pass, and the index of the subscriber that
    /// gets them next.
    struct ForwardingPass {
        var packets: Int
        var subscriber = 0
    }

    /// The maximum number of pending packets. Normally only the packets of one read from the socket are pending, at
    /// most 64. If flushes cannot keep up, packets beyond this maximum are dropped. It is half of the history's
    /// capacity, so all pending packets fit in the history.
    static let maxPending = PacketHistory.capacity / 2

    init(track: IncomingTrack, rid: String?) {
        (self.track, self.rid, index) = (track, rid, track.encodings.count)
        pending.reserveCapacity(64)
    }

    /// Starts receiving a new SSRC: discards the statistics and the history of the previous SSRC.
    func begin(_ ssrc: UInt32) {
        self.ssrc = ssrc
        statistics = ReceiverStatistics(ssrc: ssrc, clockRate: track.clockRate)
        missing = NACKGenerator()
        arrivedAudio = ArrivedAudio()
        history = nil
        report = nil
        // Drop the pending packets, because they carry the extended sequence numbers of the previous SSRC.
        forgetPending()
        for subscriber in track.subscribers where subscriber.encoding === self { subscriber.pauseForwarding() }
    }

    /// Drops the packets that have not been forwarded.
    func forgetPending() {
        pending.removeAll(keepingCapacity: true)
        (pass, isHeld, waitingSince) = (nil, false, nil)
    }

    func keep(
        _ bytes: UnsafeRawBufferPointer, _ packet: RTPPacket, sequence: Int64, isRecovered: Bool, now: MediaTime
    ) {
        guard track.kind == .video else { return }
        let history = history ?? PacketHistory()
        self.history = history
        history.store(bytes, packet, sequence: sequence, isRecovered: isRecovered, now: now)
    }
}

/// A packet that has arrived, but has not been forwarded to all subscribers yet. Its bytes are in the receive buffer,
/// or in the history if a flush ended before the packet was forwarded.
struct PendingPacket {
    var bytes: UnsafeRawBufferPointer
    var packet: RTPPacket
    var sequence: Int64
    var codec: Int
    var startsKeyframe: Bool
    var picture: UInt16?
    var layerZero: UInt8?
    /// VP8's temporal layer (`TID` in RFC 7741 §4.2), 0 to 3.
    var temporalLayer = noLayer
    /// Whether a receiver may switch up to this temporal layer at this packet (`Y` in RFC 7741 §4.2).
    var isLayerSync = false
    /// Whether this is the first packet of a frame.
    var startsPicture = false
    /// The VP8 descriptor, if it contains a picture id or a TL0PICIDX, which are rewritten for each subscriber;
    /// otherwise nil.
    var descriptor: VP8Descriptor?
    /// The packet's header extensions that are forwarded.
    var extensions = ForwardedExtensions.none

    /// The value of `temporalLayer` for a packet without a temporal layer.
    static let noLayer: UInt8 = 255

    var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange]) }

    /// Writes one subscriber's picture ids into the payload, replacing those of the previous subscriber. This is done
    /// in place, because the router owns the buffer and because a contiguous payload can be encrypted in one call.
    @inline(__always)
    func renumber(_ numbers: RTPRewriter.Numbers) { renumber(picture: numbers.picture, layerZero: numbers.layerZero) }

    /// Writes the publisher's picture ids into the payload again.
    func restore() { renumber(picture: picture ?? 0, layerZero: layerZero ?? 0) }

    /// Writes these picture ids into the payload. Does nothing if the packet has no descriptor to rewrite. Inlined,
    /// because a call would copy the whole packet for each subscriber.
    @inline(__always)
    private func renumber(picture: UInt16, layerZero: UInt8) {
        guard let descriptor else { return }
        descriptor.renumber(
            UnsafeMutableRawBufferPointer(mutating: payload), pictureID: picture, temporalLayerZeroIndex: layerZero)
    }
}

/// The header extensions of a packet that may be forwarded to subscribers. Almost always there is only one, which is
/// then located once for all subscribers.
enum ForwardedExtensions {
    case none
    case one(id: UInt8, range: Range<Int>)
    case several

    mutating func add(_ id: UInt8, _ range: Range<Int>) {
        if case .none = self { self = .one(id: id, range: range) } else { self = .several }
    }
}

/// A publisher's sender report (RFC 3550 §6.4.1), which maps its media clock to its wall clock.
struct SourceReport {
    var ntp: NTPTime
    var timestamp: UInt32
}
