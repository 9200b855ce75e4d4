import Wire

/// The status of a broadcast, with OpenTok's names.
public enum BroadcastStatus: String, Hashable, Sendable, CaseIterable {
    /// The session is broadcast, or will be as soon as the members had time to read the notice.
    case started
    case stopped
    /// The broadcast has ended because of an error.
    case failed

    public var isRunning: Bool { self == .started }
}

/// The secret part of the URL of a broadcast: with the URL, everyone can watch.
public struct BroadcastKey: Identifier128 {
    public let high: UInt64
    public let low: UInt64
    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// How a broadcast is offered over HLS.
public struct HLSOutput: Hashable, Sendable {
    /// Whether viewers are a few seconds behind instead of 15 to 20.
    public var isLowLatency: Bool
    /// Whether viewers can go back to earlier parts (DVR). Never together with low latency.
    public var hasDVR: Bool

    public init(isLowLatency: Bool = false, hasDVR: Bool = false) {
        (self.isLowLatency, self.hasDVR) = (isLowLatency, hasDVR)
    }
}

/// A server to which a broadcast is sent over RTMP. Its URL was checked when it was requested.
public struct RTMPOutput: Hashable, Sendable {
    /// The application's name for the target; empty if it has none.
    public var id: String
    /// `rtmp://` or `rtmps://`. May contain a secret.
    public var serverURL: String
    /// A secret.
    public var streamName: String

    public init(id: String, serverURL: String, streamName: String) {
        (self.id, self.serverURL, self.streamName) = (id, serverURL, streamName)
    }
}

/// What an application requests when it starts a broadcast.
public struct BroadcastRequest: Hashable, Sendable {
    /// The maximum number of RTMP targets, as in OpenTok.
    public static let maxTargets = 5
    /// The maximum durations that an application may request, as in OpenTok.
    public static let maxDurations: ClosedRange<Duration> = .seconds(60) ... .seconds(36_000)

    /// nil without HLS. There is HLS, or at least one RTMP target.
    public var hls: HLSOutput?
    public var rtmp: [RTMPOutput] = []
    public var streamMode = StreamMode.auto
    public var hasAudio = true
    public var hasVideo = true
    public var resolution = CompositionResolution.small
    /// nil for the usual layout.
    public var layout: CompositionLayout?
    /// A session may have several broadcasts at the same time only if their tags differ. Never returned.
    public var tag = ""
    /// Maximum bitrate of the video in bits per second; nil for the default.
    public var maxBitrate: Int?
    /// The broadcast ends by itself after this time. The usual value is OpenTok's.
    public var maxDuration = Duration.seconds(14_400)

    public init() {}
}

/// A broadcast, as stored. Each change stores the whole record, so that the stored state is never a mix of two states.
public struct BroadcastRecord: Hashable, Sendable {
    /// How many streams a broadcast contains at most, as OpenTok's.
    public static let maxStreams = 50

    /// The broadcast.
    public var id: BroadcastID
    /// The API key of the session's project.
    public var project: String
    /// The session that is broadcast.
    public var session: SessionID
    /// What the application has requested, with later changes of the layout.
    public var request: BroadcastRequest
    /// The secret part of the URL of HLS.
    public var key: BroadcastKey
    public var status = BroadcastStatus.started
    /// nil without HLS.
    public var hlsStatus: HLSStatus?
    /// One for each RTMP target of the request, in the same order.
    public var rtmpStatuses: [RTMPStatus]
    /// Why the broadcast has ended, as a phrase; nil while it runs.
    public var reason: String?
    /// The name of the node of a cluster that composes the broadcast and serves it; empty without a cluster.
    public var node = ""
    /// When the broadcast was requested.
    public var createdAt: Timestamp
    /// When one of the statuses last changed.
    public var updatedAt: Timestamp
    /// The streams that the application has added, in the stream mode `manual`.
    public var selection: [SelectedStream] = []

    public init(
        id: BroadcastID, project: String, session: SessionID, request: BroadcastRequest, key: BroadcastKey,
        createdAt: Timestamp
    ) {
        (self.id, self.project, self.session, self.request, self.key) = (id, project, session, request, key)
        (self.createdAt, updatedAt) = (createdAt, createdAt)
        hlsStatus = request.hls == nil ? nil : .connecting
        rtmpStatuses = request.rtmp.map { _ in .connecting }
    }

    /// The path and query of the multivariant playlist, below the server's URL; nil without HLS. Contains the key.
    public var playlistPath: String? {
        request.hls.map { "/broadcasts/\(id)/\(key)/index.m3u8\($0.hasDVR ? "?DVR" : "")" }
    }
}

/// A command for the part of the server that composes broadcasts, executed in order with the other effects.
///
/// Every `begin` is answered with exactly one `BroadcastReport.ended` or `failed`. Between them, each `add` of a stream is
/// followed by at most one `remove`; the end of the stream's publication also removes it. Commands for a broadcast that has
/// ended are ignored.
public enum BroadcastCommand: Equatable, Sendable {
    /// Starts to compose a broadcast of a routed session, and to offer it to viewers. It is black and silent before a stream is
    /// added. The record contains what was requested.
    indirect case begin(BroadcastRecord)
    /// Includes a published stream. `hasAudio` and `hasVideo` say which of its tracks.
    indirect case add(BroadcastID, StreamID, RecordedStream)
    case remove(BroadcastID, StreamID)
    /// The layout classes of a stream that was added have changed.
    case setClasses(BroadcastID, StreamID, [String])
    indirect case setLayout(BroadcastID, CompositionLayout)
    /// Composes what was sent up to now, ends the playlist, and closes the connections to RTMP targets. Answered with `ended`.
    /// Viewers can still load what is there for some time.
    case end(BroadcastID)
}

/// An event from the part of the server that composes broadcasts. Events for broadcasts that no longer exist are dropped.
public enum BroadcastReport: Equatable, Sendable {
    /// The status over HLS has changed, or is the same.
    case hls(BroadcastID, HLSStatus)
    /// The status of the RTMP target with this index in the request has changed, or is the same.
    case rtmp(BroadcastID, target: Int, RTMPStatus)
    /// The broadcast has ended, as `BroadcastCommand.end` requested, or because the server stops.
    case ended(BroadcastID)
    /// The broadcast could not be started, or cannot continue.
    case failed(BroadcastID, BroadcastFailure)

    /// The broadcast that the event is about.
    public var broadcast: BroadcastID {
        switch self {
        case .hls(let broadcast, _), .rtmp(let broadcast, target: _, _), .ended(let broadcast),
            .failed(let broadcast, _):
            broadcast
        }
    }
}

/// Why a broadcast has failed. The raw values are the reasons in the API.
public enum BroadcastFailure: String, Hashable, Sendable, CaseIterable {
    /// There is no compositor, it has ended too often, or the files for viewers cannot be written.
    case compositor = "composing failed"
    /// The disk has no space for the files of a broadcast whose viewers can go back.
    case diskFull = "disk full"
}

/// Events for a broadcast's state machine.
public enum BroadcastEvent: Equatable, Sendable {
    /// Begins a broadcast whose record was stored.
    indirect case begin(BroadcastRecord, [SessionStream], accepted: Set<ConnectionID>)
    /// Ends a broadcast that was running when the server stopped.
    indirect case restore(BroadcastRecord)
    case session(SessionNews)
    /// An application's server requests a change. It gets the changed broadcast.
    indirect case operated(CompositionOperation, SocketID)
    // From the shell.
    case reported(BroadcastReport)
    /// A change to the broadcast could not be stored.
    case notStored
}

extension WireError.Code {
    /// The broadcast's or the session's state does not allow this request.
    public static let broadcastConflict: WireError.Code = "broadcast_conflict"
    /// This server cannot broadcast.
    public static let broadcastUnavailable: WireError.Code = "broadcast_unavailable"
}

extension WireError {
    /// The error for a change to a broadcast that has ended.
    public static let broadcastNotRunning = WireError(.broadcastConflict, "This broadcast has already stopped.")
    /// The error for a server without a compositor.
    public static let broadcastUnavailable = WireError(
        .broadcastUnavailable,
        "This server cannot broadcast. Its operator can install confab-compositor, if the server routes media.")
    /// The error for a broadcast whose viewers can go back, if the disk has no space for it.
    public static let broadcastSpace = WireError(
        .storageFull,
        """
        The disk of broadcasts is almost full. Start the broadcast without "dvr", or free space or lower recording.minFreeSpace, and \
        try again.
        """, retryable: true, retryAfter: .seconds(60))
    static func broadcastConflict(_ sentence: String) -> WireError { WireError(.broadcastConflict, sentence) }
}
