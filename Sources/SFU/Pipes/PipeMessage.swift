import RTC

/// A message between the routers of two event loops. Messages are rare: they carry what changes about tracks and what is
/// demanded of them. Packets are not messages.
enum PipeMessage: Sendable {
    // From the router of the publisher:

    /// A track was added, or its state has changed.
    case track(UInt32, mid: String, kind: MediaKind, PipedState)
    /// The client's tracks are now these.
    case tracks(of: Key, [UInt32])
    /// A feed of a track starts with another source.
    case restart(UInt32, feed: Int)
    /// No packets of the track follow for a while.
    case pause(UInt32)
    /// The track has ended.
    case end(UInt32)

    // From the router of subscribers:

    /// The demand of the router's subscribers has changed.
    case demand(UInt32, PipedDemand)
    /// A subscriber needs a keyframe.
    case keyframe(UInt32, feed: Int, KeyframeRequests.Need)

    // Between all routers:

    /// How loud the router's publishers are.
    case voices([PipedVoice])
    /// The active speakers of the sessions for which the router chooses them.
    case speakers([PipedSpeaker])
    /// The bitrates that the router sends in each session, in bits per second.
    case sent([String: Int])

    // From a router to a recorder:

    /// What changes about a stream that is recorded, with the recording's id.
    case recorded(UInt32, RecordingMessage)
}

/// What the subscribers' half of a router needs to know about a track.
struct PipedState: Equatable, Sendable {
    var codecs: [Codec]
    var extensions: [HeaderExtension: UInt8]
    var feeds: [Feed]
    /// In the order of the feeds.
    var layers: [Layer]
    var clockOffset: MediaInterval?

    /// The state of one feed.
    struct Feed: Equatable, Sendable {
        var rid: String?
        var codec: Int?
        var report: SourceReport?
    }

    init(of track: FeedTrack) {
        (codecs, extensions, clockOffset) = (track.codecs, track.extensions, track.clockOffset)
        feeds = track.feeds.map { Feed(rid: $0.rid, codec: $0.codec, report: $0.report) }
        layers = track.layers.map(\.measured)
    }

    /// Whether layers must be selected again when this state replaces the former one.
    func needsSelection(after former: PipedState?) -> Bool {
        guard let former, former.feeds.count == feeds.count else { return true }
        return feeds.map(\.codec) != former.feeds.map(\.codec)
            || zip(layers, former.layers).contains {
                $0.size != $1.size || $0.isAlive != $1.isAlive || $0.rates.framesPer10s != $1.rates.framesPer10s
            }
    }
}

/// What the subscribers of one router demand of a track on another one.
struct PipedDemand: Equatable, Sendable {
    var layers = LayerDemand()
    /// One bit per feed. Set if a subscriber receives the feed or is about to.
    var watched: UInt8 = 0
    /// For each codec of the track, the number of subscribers that can decode it.
    var decoders: [Int] = []
}

/// How loud a publisher is.
struct PipedVoice: Sendable {
    var stream: Key
    /// The loudness for the active speaker.
    var loudness: Double
    /// The loudness for the choice of the loudest audio, and whether the audio is forwarded.
    var voice: Voice
}

/// The active speaker of a session.
struct PipedSpeaker: Sendable {
    var session: String
    /// Nil if nobody speaks.
    var stream: Key?
}

extension Layer {
    /// The layer without the counts of the measurement that is in progress.
    var measured: Layer {
        var copy = self
        copy.rates = rates.measured
        copy.wantedSince = nil
        return copy
    }
}
