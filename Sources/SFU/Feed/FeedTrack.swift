import RTC

/// One audio or video track of a publisher, as everything behind the ingress knows it: its codecs, its feeds, who reads
/// them, and what the readers demand. A track has one feed, or several with different encodings of the same video
/// (simulcast, RFC 8853).
final class FeedTrack {
    let mid: String
    let kind: MediaKind
    /// The event loop of the publisher; nil if it is this router's.
    let loop: Int?
    /// Whether the publisher is on another node. Such a track arrives over a relay, and is not sent over another one.
    let isRemote: Bool
    /// Where the track comes from. The source owns the track.
    weak var source: (any FeedSource)?
    private(set) var codecs: [Codec] = []
    /// Maps each payload type to an index in `codecs`; -1 if there is no codec. This is a table, in which a lookup is
    /// fast, because it is read for every packet.
    private var codecByPayloadType = [Int8](repeating: -1, count: 128)
    private(set) var extensions: [HeaderExtension: UInt8] = [:]
    /// One bit per header extension id that is forwarded to subscribers. Ids of 63 and above share the highest bit.
    private var forwardedExtensions: UInt64 = 0
    private(set) var feeds: [Feed] = []
    /// The number to add to the publisher's wall clock to get the server's; nil before its first sender report.
    var clockOffset: MediaInterval?
    /// For each feed, in the order of `feeds`, the state that layer selection needs.
    var layers: [Layer] = []
    /// The loudness of the audio, and whether the audio is forwarded. In large sessions, only the loudest tracks are.
    private(set) var voice = Voice()
    /// The published stream that this track belongs to; nil while the track is not part of one.
    weak var publication: Publication?
    private(set) var readers: [any FeedReader] = []

    /// Demand: the layers that subscribers need.
    var demand = LayerDemand()
    /// Whether layers must be selected again for all subscribers.
    var needsSelection = false

    var clockRate: UInt32 { kind == .audio ? 48_000 : 90_000 }

    init(mid: String, kind: MediaKind, loop: Int? = nil, isRemote: Bool = false) {
        (self.mid, self.kind, self.loop, self.isRemote) = (mid, kind, loop, isRemote)
    }

    // MARK: Filling

    /// Applies the negotiated parameters.
    func update(codecs: [Codec], extensions: [HeaderExtension: UInt8]) {
        // Drop the packets that wait to be forwarded, because they refer to the previous codecs by index.
        if self.codecs != codecs { for feed in feeds { for reader in readers { reader.forget(feed) } } }
        self.codecs = codecs
        codecByPayloadType = .init(repeating: -1, count: 128)
        for (index, codec) in codecs.enumerated() where codec.payloadType < 128 {
            codecByPayloadType[Int(codec.payloadType)] = Int8(clamping: index)
        }
        self.extensions = extensions
        forwardedExtensions = 0
        for (name, id) in extensions where name.isForwarded { forwardedExtensions |= 1 << UInt64(min(id, 63)) }
        for feed in feeds { feed.forgetCodec() }
    }

    func addFeed(rid: String?) -> Feed {
        let feed = Feed(track: self, rid: rid, index: feeds.count)
        feeds.append(feed)
        layers.append(Layer())
        needsSelection = true
        return feed
    }

    /// Whether the track has ended. Subscribers can no longer be attached to it.
    private(set) var isEnded = false

    /// Ends the track: its subscribers receive nothing until they are attached to another one.
    func end() {
        isEnded = true
        for reader in readers { reader.end() }
        readers.removeAll()
    }

    /// Records the audio level of a packet (RFC 6464).
    func hear(_ level: UInt8, now: MediaTime) { voice.record(level, now: now) }

    /// Lowers the loudness if no packets have arrived for a while. Must be called every `LoudestAudio.interval`.
    func fadeVoice(now: MediaTime) { voice.fade(now: now) }

    /// Starts or stops forwarding the audio. Packets that are not forwarded leave no gap in the sequence numbers, so
    /// subscribers take their absence for a pause.
    func setForwarded(_ isForwarded: Bool) {
        guard voice.isForwarded != isForwarded else { return }
        voice.isForwarded = isForwarded
        if !isForwarded { pause() }
    }

    /// Records the loudness that the publisher's router has measured.
    func hear(_ voice: Voice) { self.voice = voice }

    /// No packets follow for a while.
    func pause() { for reader in readers { reader.pause() } }

    // MARK: Reading

    func add(_ reader: any FeedReader) { readers.append(reader) }

    /// Removes a reader. What it demanded is forgotten with the next selection.
    func remove(_ reader: any FeedReader) {
        readers.removeAll { $0 === reader }
        needsSelection = true
    }

    /// Whether packets wait in a reader until the flush, which also sends them to subscribers that start before it.
    var holdsPackets: Bool { readers.contains { $0.holdsPackets } }

    func codecIndex(_ payloadType: UInt8) -> Int? {
        let index = codecByPayloadType[Int(payloadType & 127)]
        return index < 0 ? nil : Int(index)
    }

    /// Whether any of the publisher's header extensions may be forwarded to subscribers.
    var forwardsExtensions: Bool { forwardedExtensions != 0 }

    /// Returns whether this header extension may be forwarded to subscribers. Ids of 63 and above share one bit, so
    /// the result can be true for an extension that is not forwarded. Such a false positive only costs time.
    func forwardsExtension(_ extensionID: UInt8) -> Bool {
        forwardedExtensions >> UInt64(min(extensionID, 63)) & 1 == 1
    }

    // MARK: Demand

    /// Whether the track is needed even without readers, because this node chooses the active speaker by its audio levels.
    var isAlwaysHeard: Bool {
        kind == .audio && publication.map { $0.alwaysHeard && $0.forwardsAudio } ?? false
    }

    /// Lets all readers select layers again, and collects what they demand.
    func select() {
        needsSelection = false
        source?.updateLiveness()
        for feed in feeds { feed.isWatched = false }
        demand = LayerDemand()
        for reader in readers { reader.select() }
        source?.demandChanged()
    }

    /// Requests a keyframe that a feed's `keyframes` demands now rather than at the publisher's next tick.
    func requestKeyframeSoon() { source?.requestKeyframeSoon() }

    /// Returns how many subscribers can decode the codec with this index.
    func decoders(of codec: Int) -> Int { readers.reduce(0) { $0 + $1.decoders(of: codec) } }
}

/// What subscribers demand of a track's layers.
struct LayerDemand: Equatable, Sendable {
    /// One bit per feed. Set if a subscriber receives the feed or should receive it.
    var wanted: UInt8 = 0
    /// One bit per feed. Set if a subscriber should receive the feed but cannot decode it, although it can decode
    /// another codec that the publisher offers.
    var refused: UInt8 = 0
}

/// What fills a track's feeds: the ingress, or the router of another event loop. Packets of another node arrive through the ingress.
protocol FeedSource: AnyObject {
    /// Updates which of the track's layers are alive.
    func updateLiveness()
    /// `FeedTrack.demand` was collected again.
    func demandChanged()
    func requestKeyframeSoon()
}

/// What reads a track's feeds, for example the subscribers of one event loop. A reader does not know where the packets
/// come from, and their source does not know who reads them.
protocol FeedReader: AnyObject {
    /// Whether packets wait in the reader until the flush, which also sends them to subscribers that start before it. If so, the
    /// reader calls `KeyframeRequests.passed` after the flush.
    var holdsPackets: Bool { get }
    /// Takes a packet, or drops it if too many wait. The memory of its bytes is valid until the next flush.
    func receive(_ packet: FeedPacket, of feed: Feed, arrivedAt: MediaTime)
    /// The feed starts with another source, whose sequence numbers and timestamps are unrelated to the previous ones.
    func restart(_ feed: Feed)
    /// A sender report of the feed's source has arrived.
    func reported(_ feed: Feed)
    /// Drops the packets that wait to be forwarded.
    func forget(_ feed: Feed)
    /// No packets follow for a while.
    func pause()
    /// No packets follow.
    func end()
    /// Selects layers for the reader's subscribers, and adds what they demand to `FeedTrack.demand`, `Feed.isWatched`
    /// and `Feed.keyframes`.
    func select()
    /// Returns how many subscribers can decode the codec with this index.
    func decoders(of codec: Int) -> Int
}

extension FeedReader {
    func reported(_ feed: Feed) {}
}
