import Wire

extension Session {
    /// How to publish.
    public struct PublishOptions: Hashable, Sendable {
        /// The name of the stream, at most 256 bytes.
        public var name: String
        /// What the video shows.
        public var videoKind: MediaStream.VideoKind
        /// Whether the stream begins with audio. Without audio in the media, it has none.
        public var audio: Bool
        /// Whether the stream begins with video. Without video in the media, it has none.
        public var video: Bool
        /// Whether to send a camera's video, or video that is encoded in layers already, in several sizes, so that each
        /// subscriber gets what fits. Only in routed sessions.
        public var simulcast: Bool
        /// Whether the video stops while this device's network does not carry it, so that the audio gets through. Only in
        /// routed sessions, where the server judges the network. See ``MediaPublisher/Event/videoStopped``.
        public var audioFallback: Bool

        /// Creates options. The defaults suit a camera.
        public init(
            name: String = "", videoKind: MediaStream.VideoKind = .camera, audio: Bool = true, video: Bool = true,
            simulcast: Bool = true, audioFallback: Bool = false
        ) {
            (self.name, self.videoKind) = (name, videoKind)
            (self.audio, self.video, self.simulcast) = (audio, video, simulcast)
            self.audioFallback = audioFallback
        }
    }

    /// How to subscribe.
    public struct SubscribeOptions: Hashable, Sendable {
        /// Whether to receive audio.
        public var audio: Bool
        /// Whether to receive video.
        public var video: Bool
        /// The size in which the video is shown; nil for the largest that the publisher sends.
        public var size: VideoSize?
        /// The maximum frames per second, 1 to 240; nil for no maximum.
        public var frameRate: Int?
        /// How important the video is, 0 to 100. If this device's network cannot carry all videos, those of a higher priority
        /// become sharp first and pause last. Above 0, a video comes before the active speaker. Only in routed sessions.
        public var priority: Int

        /// Creates options. The defaults receive everything.
        public init(
            audio: Bool = true, video: Bool = true, size: VideoSize? = nil, frameRate: Int? = nil, priority: Int = 0
        ) {
            (self.audio, self.video, self.size, self.frameRate) = (audio, video, size, frameRate)
            self.priority = priority
        }
    }
}

extension Session.SubscribeOptions {
    /// The preference as the protocol has it, within its limits.
    var preference: VideoPreference {
        func limited(_ value: Int?, _ range: ClosedRange<Int>) -> Int? {
            value.map { min(max($0, range.lowerBound), range.upperBound) }
        }
        return VideoPreference(
            width: limited(size?.width, 0...16384), height: limited(size?.height, 0...16384),
            frameRate: limited(frameRate, 1...240),
            priority: priority > 0 ? min(priority, VideoPreference.maxPriority) : nil)
    }
}

/// A stream that this client publishes. The session keeps it until the stream ends.
final class Publication: Sendable {
    struct State: Sendable {
        var stream: MediaStream
        var audio: MediaSource?
        var video: MediaSource?
        var hasAudio: Bool
        var hasVideo: Bool
        /// The transceivers in a routed session.
        var pair: MediaLink.Pair?
        /// The rules of audio fallback; nil if the application did not ask for it.
        var fallback: Mailbox<AudioFallback>?
        /// Whether audio fallback withholds the video.
        var isVideoStopped = false
        var isEnded = false

        /// The video that is sent now.
        var sentVideo: MediaSource? { isVideoStopped ? nil : video }
    }

    let state: Guarded<State>
    let layers: [Layer]
    let events = EventSource<MediaPublisher.Event> { present, event in
        if case .ended = event { present = [event] }
    }

    init(_ state: State, layers: [Layer]) { (self.state, self.layers) = (Guarded(state), layers) }

    var id: StreamID { state.withLock { $0.stream.id } }

    /// What goes to a subscriber.
    func outgoing(audio: Bool, video: Bool) -> RelayedPeer.Outgoing {
        state.withLock { RelayedPeer.Outgoing(audio: audio ? $0.audio : nil, video: video ? $0.sentVideo : nil) }
    }

    /// - Returns: the transceivers to give back.
    func end(_ reason: Session.Reason) -> MediaLink.Pair? {
        let (pair, fallback) = state.withLock { state in
            defer { (state.isEnded, state.pair, state.fallback) = (true, nil, nil) }
            return (state.pair, state.fallback)
        }
        events.send(.ended(reason))
        events.finish()
        // Its timer ends outside of the lock.
        withExtendedLifetime(fallback) {}
        return pair
    }
}

/// A stream that this client receives. The session keeps it until it ends.
final class Subscription: Sendable {
    struct State: Sendable {
        var options: Session.SubscribeOptions
        /// The transceivers in a routed session.
        var slot: MediaLink.Pair?
        /// What arrives, by kind.
        var tracks: [TrackKind: RemoteTrack] = [:]
        /// The mids of what arrives, in a relayed session.
        var mids: Set<String> = []
        var volume = 1.0
        /// Why the video is not the one that was asked for, as the server said last.
        var limitation = Statistic.Limitation.unlimited
        /// Whether the network carries less than the subscriber wants of the video.
        var isLimited = false
        /// Whether the server has said that the video will be paused if the network gets worse.
        var isWarned = false
        /// Measures the level of the audio; nil while the application does not ask for it.
        var meter: LevelMeter?
        var wasConnected = false
        var isConnected = false
        var hasFrame = false
        /// The tracks at the last `connected`, `resumed` or `tracksChanged`.
        var announced: [TrackKind: RemoteTrack] = [:]
        var isEnded = false
    }

    let stream: MediaStream
    let state: Guarded<State>
    let events = EventSource<MediaSubscriber.Event>(fold: Subscription.fold)

    init(_ stream: MediaStream, _ options: Session.SubscribeOptions) {
        (self.stream, state) = (stream, Guarded(State(options: options)))
    }

    /// Keeps whether media and its first frame have arrived, and whether the video is paused. Both may happen before the
    /// application can subscribe to the events.
    static let fold: EventSource<MediaSubscriber.Event>.Fold = { present, event in
        switch event {
        case .connected, .resumed: present = [.connected] + present.filter { $0 != .connected }
        case .firstFrame: present.append(event)
        case .dropped: present.removeAll { $0 == .connected }
        case .videoPaused: present = present.filter { !$0.isPause } + [event]
        case .videoResumed: present.removeAll { $0.isPause }
        case .ended: present = [event]
        default: break
        }
    }

    /// The state of the connection or the tracks has changed.
    func update(_ peer: PeerState) {
        if let event = state.withLock({ $0.update(peer, of: stream) }) { events.send(event) }
    }

    /// Whether the server sends no video for now.
    var isPaused: Bool { events.present.contains(where: \.isPause) }

    /// The server sets up the subscription again, over a new connection, and tells again what limits it.
    func beginAgain() {
        let before = state.withLock { state in
            defer {
                (state.tracks, state.limitation) = ([:], .unlimited)
                (state.isLimited, state.isWarned) = (false, false)
            }
            return state
        }
        if before.isWarned { events.send(.warning(false)) }
        if before.isLimited { events.send(.limited(false)) }
        if isPaused { events.send(.videoResumed) }
    }

    /// A whole frame arrived over a connection or transceiver that had none before. Only the stream's first is told.
    func frameArrived() {
        let isFirst = state.withLock { state in
            defer { state.hasFrame = true }
            return !state.hasFrame
        }
        if isFirst { events.send(.firstFrame) }
    }

    /// - Returns: the transceivers to give back.
    func end(_ reason: Session.Reason) -> MediaLink.Pair? {
        let (slot, meter) = state.withLock { state in
            defer { (state.isEnded, state.slot, state.tracks, state.mids, state.meter) = (true, nil, [:], [], nil) }
            return (state.slot, state.meter)
        }
        events.send(.ended(reason))
        events.finish()
        // Its timer ends outside of the lock.
        withExtendedLifetime(meter) {}
        return slot
    }
}

extension Subscription.State {
    /// Keeps why the video is limited. The reason of a change may be that what limited it has gone.
    mutating func limit(_ change: SessionNotice.SubscriptionChanged) {
        (isLimited, isWarned) = (change.limited ?? isLimited, change.warning ?? isWarned)
        let lasting: Statistic.Limitation =
            switch change.reason {
            case _ where isLimited: .bandwidth
            case .size: .size
            case .publisher: .publisher
            case .slow, .codec, .bandwidth: .unlimited
            }
        limitation = change.videoPaused ? .init(rawValue: change.reason.rawValue) ?? .other : lasting
    }

    /// - Returns: what to tell the application; nil for nothing.
    mutating func update(_ peer: PeerState, of stream: MediaStream) -> MediaSubscriber.Event? {
        let isReceiving = peer == .connected && hasTracks(of: stream)
        guard !isEnded else { return nil }
        guard isReceiving != isConnected else {
            // For example a stream that began with audio, and has video now.
            guard isConnected, tracks != announced else { return nil }
            announced = tracks
            return .tracksChanged
        }
        // A connection that begins again is not yet lost.
        if !isReceiving, peer == .connected { return nil }
        isConnected = isReceiving
        guard isReceiving else { return .dropped }
        defer { (wasConnected, announced) = (true, tracks) }
        return wasConnected ? .resumed : .connected
    }

    /// Whether everything that is expected arrives. Audio and video are found one after the other.
    private func hasTracks(of stream: MediaStream) -> Bool {
        let lacksAudio = options.audio && stream.hasAudio && tracks[.audio] == nil
        let lacksVideo = options.video && stream.hasVideo && tracks[.video] == nil
        return !tracks.isEmpty && !lacksAudio && !lacksVideo
    }
}

extension MediaSubscriber.Event {
    fileprivate var isPause: Bool { if case .videoPaused = self { true } else { false } }
}
