import RTC

/// One transceiver over which a client receives media. The track is a single RTP stream for the lifetime of the connection,
/// even when its source changes.
final class OutgoingTrack {
    // The fields that each packet needs are stored together, because with many subscribers few cache lines stay in the
    // processor's cache.
    let ssrc: UInt32
    /// Whether forwarding is paused because the allocation has no bitrate left for this video.
    var isPaused = false
    /// Whether bursts are paced; see `Egress.pace`.
    var isPaced = false
    /// The subscriber's ids of the header extensions that the server writes itself, for a transport-wide sequence
    /// number or an absolute send time; 0 if the extension is not written.
    private(set) var transportNumberID: UInt8 = 0
    private(set) var sendTimeID: UInt8 = 0
    var temporalFilter = TemporalLayerFilter()
    var packets: UInt32 = 0
    var octets: UInt32 = 0
    /// The peer's transport, stored here too to save an indirection.
    let transport: PeerTransport
    /// The peer's congestion control; nil if the client sends no feedback for it.
    private(set) var downlink: Downlink? { didSet { unretainedDownlink = downlink.map(Unmanaged.passUnretained) } }
    /// The object of `downlink` as an unretained reference, for `addTiming`, which would otherwise retain and release
    /// it for each packet. The reference is valid because `downlink` retains the object, and both change together.
    private(set) var unretainedDownlink: Unmanaged<Downlink>?
    /// The feed that is being forwarded; nil if none is.
    private(set) var feed: Feed?
    /// The feed that the subscriber should receive. `feed` becomes the target at the target's next keyframe.
    /// Nil while the subscriber cannot receive any.
    var target: Feed?
    /// The subscriber's payload types, indexed like the codecs of the source.
    private(set) var codecMap: [MappedCodec] = []
    private(set) var extensionMap = ExtensionMap()
    var budget = RetransmissionBudget()
    var rewriting: RTPRewriter

    unowned let owner: Subscriber
    let mid: String
    let kind: MediaKind
    let repairSSRC: UInt32?
    private(set) var codecs: [Codec] = []
    private(set) var extensions: [HeaderExtension: UInt8] = [:]

    /// The publisher's track that is currently sent over this transceiver; nil if none is.
    private(set) weak var source: FeedTrack?
    weak var subscription: Subscription?
    var preference = VideoPreference() {
        didSet {
            // Ignore a change to the priority, because only the allocation uses it, and reads it each time.
            var former = oldValue
            former.priority = preference.priority
            guard preference != former else { return }
            source?.needsSelection = true
            reason = .size
        }
    }
    /// The layers for which the subscriber's connection has enough bandwidth, one bit each.
    private(set) var allowedLayers: UInt8 = .max
    /// The highest temporal layer for which the subscriber's connection has enough bandwidth.
    private(set) var allowedTemporalLayer = FeedPacket.noLayer
    /// Whether the video would be paused if the connection carried 30 % less.
    var isAtRisk = false
    /// Whether the allocated bitrate is lower than that of the video the subscriber requests.
    var isLimited = false
    /// The reason for the next change of the layer.
    var reason = SubscriptionReason.publisher
    /// Whether the transceiver receives, according to the client's description.
    private(set) var isWanted = true
    /// Whether forwarding is stopped because the subscriber cannot decode the source's codec.
    private(set) var isRefused = false
    /// The reason why no video is sent, to be reported to the subscriber; nil if video is sent.
    var pause: SubscriptionReason? { isPaused ? .slow : isRefused ? .codec : nil }
    /// The times of recent retransmissions; nil until the first retransmission request.
    var retransmissionTimes: RetransmissionTimes?
    var repairSequence: UInt16
    /// The packets of `feed` that wait until the subscriber's path has capacity; nil if there are none.
    var waiting: WaitingPackets?
    /// The values of `octets` and `packets` when the bitrate was last measured.
    var measuredOctets: UInt32 = 0
    var measuredPackets: UInt32 = 0
    /// The RTX payload type of the first codec that has one; nil if no codec has one.
    var repairPayloadType: UInt8? { codecs.lazy.compactMap(\.rtxPayloadType).first }
    var reportedAt: MediaTime?
    /// The packets and octets that were already counted against the bandwidth limits.
    var metered: (packets: UInt32, octets: UInt32) = (0, 0)

    init(
        owner: Subscriber, mid: String, kind: MediaKind, ssrc: UInt32, repairSSRC: UInt32?, rewriting: RTPRewriter,
        repair: UInt16
    ) {
        (self.owner, self.mid, self.kind, self.ssrc) = (owner, mid, kind, ssrc)
        transport = owner.link.transport
        (self.repairSSRC, self.rewriting, self.repairSequence) = (repairSSRC, rewriting, repair)
    }

    /// Reads a field in each cache line that forwarding needs; see `Egress.prefetch`.
    @inline(__always)
    func prefetch() -> UInt64 {
        UInt64(ssrc) &+ UInt64(bitPattern: rewriting.firstSequence) &+ rewriting.prefetch() &+ (feed == nil ? 0 : 1)
            &+ (downlink?.prefetch() ?? 0)
    }

    func update(_ media: NegotiatedMedia) {
        codecs = media.codecs
        extensions = media.extensions
        isWanted = media.direction.sends
        downlink = owner.downlink
        // Number the packets if possible: feedback about numbered packets is better than the receiver's own estimate,
        // which needs send times instead.
        transportNumberID = downlink == nil ? 0 : ownID(of: .transportWideCC)
        sendTimeID = downlink == nil || transportNumberID != 0 ? 0 : ownID(of: .absSendTime)
        updatePacing()
        if let source { remap(source) }
    }

    /// Returns the subscriber's id of an extension that the server writes; 0 if the extension was not negotiated, or
    /// if the id does not fit in the one-byte form.
    private func ownID(of name: HeaderExtension) -> UInt8 { extensions[name].map { $0 < 15 ? $0 : 0 } ?? 0 }

    /// Returns whether packets of this feed can be sent to the client now; always true for audio. A video that
    /// cannot be sent needs no keyframe and no layer.
    func canTake(_ feed: Feed) -> Bool {
        guard kind == .video else { return true }
        return !isPaused && transport.isWritable && decodes(feed)
    }

    /// Returns whether the subscriber can decode the feed's current codec; true if the codec is unknown.
    func decodes(_ feed: Feed) -> Bool {
        guard let codec = feed.codec, codec < codecMap.count else { return true }
        return codecMap[codec].isDecodable
    }

    /// Whether the subscriber can decode any codec that the source offers.
    var decodesAny: Bool { codecMap.contains { $0.isDecodable } }

    /// Switches to another source, or to none; see `Egress.attach`.
    func attach(_ source: FeedTrack?) {
        self.source = source
        target = nil
        pauseForwarding()
        isRefused = false
    }

    /// Stops forwarding. The next forwarded packet begins a new segment.
    func pauseForwarding() {
        feed = nil
        waiting = nil
        reportedAt = nil
    }

    /// Starts forwarding this feed.
    func follow(_ feed: Feed) {
        pauseForwarding()
        self.feed = feed
        isRefused = false
        temporalFilter.begin()
        // The previous feed may have no subscribers left, so layers must be selected again.
        feed.track.needsSelection = true
    }

    /// Stops forwarding because the subscriber cannot decode the codec. The dropped packets leave no gap in the sequence
    /// numbers, so the subscriber does not report them as lost.
    func refuse() {
        if feed != nil { pauseForwarding() }
        isRefused = true
    }

    /// Limits the video to what the subscriber's connection carries.
    /// - Parameters:
    ///   - layers: one bit for each layer that may be forwarded; 0 pauses the video.
    ///   - temporalLayer: the highest temporal layer that may be forwarded.
    func allow(_ layers: UInt8, _ temporalLayer: UInt8) {
        guard layers != allowedLayers || temporalLayer != allowedTemporalLayer else { return }
        (allowedLayers, allowedTemporalLayer) = (layers, temporalLayer)
        isPaused = layers == 0
        if isPaused { pauseForwarding() }
        reason = .bandwidth
        // Select again, because the selection requests the keyframe with which the video continues.
        source?.needsSelection = true
    }

    /// Maps the source's codecs and header extensions to the subscriber's.
    func remap(_ source: FeedTrack) {
        codecMap = source.codecs.map { MappedCodec($0, among: codecs) }
        source.needsSelection = true
        extensionMap = ExtensionMap()
        for (name, id) in source.extensions where name.isForwarded {
            extensionMap.map(id, to: extensions[name] ?? 0)
        }
    }
}

/// The subscriber's ids of the header extensions that are forwarded, by the source's ids.
struct ExtensionMap: Equatable, Sendable {
    /// The ids for the source's ids 0 to 15, stored in the object because they are read for every packet.
    private var small = SIMD16<UInt8>()
    /// The ids for larger ids of the source, which need the two-byte form (RFC 8285 §4.3). Usually empty.
    private var large: [UInt8: UInt8] = [:]

    /// Returns the subscriber's id of an extension; 0 if the extension is not forwarded.
    @inline(__always)
    subscript(_ theirs: UInt8) -> UInt8 { theirs < 16 ? small[Int(theirs)] : large[theirs] ?? 0 }

    mutating func map(_ theirs: UInt8, to ours: UInt8) {
        if theirs < 16 { small[Int(theirs)] = ours } else { large[theirs] = ours == 0 ? nil : ours }
    }
}

/// Maps a publisher's codec to the subscriber's payload types. The payload types are plain numbers, which are smaller
/// and faster than optionals, because they are read for every packet.
struct MappedCodec: Equatable, Sendable {
    /// The subscriber's payload type; 255 if the subscriber cannot decode the codec.
    var payloadType: UInt8 = 255
    /// The payload type of retransmissions (RTX, RFC 4588); 255 if RTX was not negotiated.
    var repairPayloadType: UInt8 = 255
    /// Whether the publisher's redundant audio (RFC 2198) is unwrapped, because the subscriber negotiated only plain
    /// Opus, or redundant audio with other payload types.
    var isUnwrapped = false
    /// The subscriber's payload type of plain Opus, if the publisher sends redundant audio; 255 if there is none.
    var plainPayloadType: UInt8 = 255
    var clockRate: UInt32

    var isDecodable: Bool { payloadType != 255 }

    init(_ theirs: Codec, among codecs: [Codec]) {
        clockRate = theirs.clockRate
        // Prefer a codec that is compatible in both directions, although the subscriber sends nothing.
        var ours =
            codecs.first { $0.kind.decodes(theirs.kind) && theirs.kind.decodes($0.kind) }
            ?? codecs.first { $0.kind.decodes(theirs.kind) }
        // Redundant audio contains the publisher's payload types. A subscriber that negotiated others gets plain
        // Opus.
        if theirs.kind == .red, ours?.redundantPayloadTypes != theirs.redundantPayloadTypes { ours = nil }
        if theirs.kind == .red {
            let plain = codecs.first { $0.kind == .opus }
            plainPayloadType = plain?.payloadType ?? 255
            if ours == nil { (ours, isUnwrapped) = (plain, true) }
        }
        guard let ours else { return }
        payloadType = ours.payloadType
        repairPayloadType = ours.rtxPayloadType ?? 255
    }
}

extension Codec.Kind {
    /// Returns whether a decoder negotiated with this codec can decode the output of an encoder negotiated with
    /// `other`.
    func decodes(_ other: Codec.Kind) -> Bool {
        switch (self, other) {
        case (.h264(let profile, let mode), .h264(let theirs, let theirMode)):
            // Do not compare the level (RFC 6184 §8.1), because browsers use asymmetric levels. Packetization mode 1
            // includes the packets of mode 0.
            H264Profile(profileLevelID: profile).decodes(H264Profile(profileLevelID: theirs)) && mode >= theirMode
        default: self == other
        }
    }
}
