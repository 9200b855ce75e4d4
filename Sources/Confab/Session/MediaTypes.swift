import Wire

extension Session {
    /// Options for publishing.
    public struct PublishOptions: Hashable, Sendable {
        /// The name of the stream, at most 256 bytes.
        public var name: String
        /// What the video shows.
        public var videoKind: MediaStream.VideoKind
        /// Whether the stream begins with audio. If the media has no audio, the stream has none either.
        public var audio: Bool
        /// Whether the stream begins with video. If the media has no video, the stream has none either.
        public var video: Bool
        /// Whether to send the video in several sizes, so that each subscriber gets a suitable one. This applies only
        /// in routed sessions, and only to a camera's video and to video that is already encoded in layers.
        public var simulcast: Bool
        /// Whether the video stops while this device's network cannot carry it, so that the audio gets through. This
        /// has an effect only in routed sessions, where the server judges the network. See
        /// ``MediaPublisher/Event/videoStopped``.
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

    /// Options for subscribing.
    public struct SubscribeOptions: Hashable, Sendable {
        /// Whether to receive audio.
        public var audio: Bool
        /// Whether to receive video.
        public var video: Bool
        /// The size in pixels at which the video is shown; nil to receive the largest that the publisher sends.
        public var size: VideoSize?
        /// The maximum frames per second, 1 to 240; nil for no maximum.
        public var frameRate: Int?
        /// The priority of the video, 0 to 100. If this device's network cannot carry all videos, those with a higher
        /// priority get a higher quality first and are paused last. A video with a priority above 0 takes precedence
        /// over the active speaker. The priority has an effect only in routed sessions.
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
    /// The size, frame rate and priority as sent to the server, clamped to the limits of the protocol.
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
    /// The state that the lock protects.
    struct State: Sendable {
        var stream: MediaStream
        var audio: MediaSource?
        var video: MediaSource?
        var hasAudio: Bool
        var hasVideo: Bool
        /// The transceivers in a routed session; nil if there are none.
        var pair: SFUConnections.Pair?
        /// The state of audio fallback; nil if the application did not enable it.
        var fallback: Runner<AudioFallback>?
        /// Whether audio fallback has stopped the video.
        var isVideoStopped = false
        var isEnded = false

        /// The video that is sent now; nil if the stream has none, or if audio fallback has stopped it.
        var sentVideo: MediaSource? { isVideoStopped ? nil : video }
    }

    let state: LockedValue<State>
    let layers: [Layer]
    let events = EventSource<MediaPublisher.Event> { present, event in
        if case .ended = event { present = [event] }
    }

    init(_ state: State, layers: [Layer]) { (self.state, self.layers) = (LockedValue(state), layers) }

    var id: StreamID { state.withLock { $0.stream.id } }

    /// Returns the media to send to a subscriber that wants audio, video or both.
    func outgoing(audio: Bool, video: Bool) -> RelayedPeer.Outgoing {
        state.withLock { RelayedPeer.Outgoing(audio: audio ? $0.audio : nil, video: video ? $0.sentVideo : nil) }
    }

    /// Ends the events of the stream.
    ///
    /// - Returns: the transceivers to release; nil if there are none.
    func end(_ reason: Session.Reason) -> SFUConnections.Pair? {
        let (pair, fallback) = state.withLock { state in
            defer { (state.isEnded, state.pair, state.fallback) = (true, nil, nil) }
            return (state.pair, state.fallback)
        }
        events.send(.ended(reason))
        events.finish()
        // Release the fallback, and with it its timer, outside the lock.
        withExtendedLifetime(fallback) {}
        return pair
    }
}

/// A stream that this client receives. The session keeps this object until the stream or the subscription ends.
final class Subscription: Sendable {
    /// The state that the lock protects.
    struct State: Sendable {
        var options: Session.SubscribeOptions
        /// The transceivers in a routed session; nil if there are none.
        var slot: SFUConnections.Pair?
        /// The received tracks, keyed by kind.
        var tracks: [TrackKind: RemoteTrack] = [:]
        /// The mids of the received tracks, in a relayed session.
        var mids: Set<String> = []
        var volume = 1.0
        /// Why the video is not as requested, as last reported by the server.
        var limitation = Statistic.Limitation.unlimited
        /// Whether the network carries less of the video than the subscriber requested.
        var isLimited = false
        /// Whether the server has warned that the video will be paused if the network gets worse.
        var isWarned = false
        /// Measures the level of the audio; nil while the application does not request it.
        var meter: LevelMeter?
        var wasConnected = false
        var isConnected = false
        var hasFrame = false
        /// The tracks when `connected`, `resumed` or `tracksChanged` was last sent.
        var announced: [TrackKind: RemoteTrack] = [:]
        var isEnded = false
    }

    let stream: MediaStream
    let state: LockedValue<State>
    let events = EventSource<MediaSubscriber.Event>(fold: Subscription.fold)

    init(_ stream: MediaStream, _ options: Session.SubscribeOptions) {
        (self.stream, state) = (stream, LockedValue(State(options: options)))
    }

    /// Keeps for later iterations whether media and its first frame have arrived, and whether the video is paused. All
    /// this may happen before the application can subscribe to the events.
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

    /// Reports a change in the connection's state or to the tracks.
    func update(_ peer: PeerState) {
        let (event, former) = state.withLock { state in
            let former = state.announced
            return (state.update(peer, of: stream), former)
        }
        if let event { events.send(event) }
        // Release the previous tracks outside the lock.
        withExtendedLifetime(former) {}
    }

    /// Whether the server has paused the video.
    var isPaused: Bool { events.present.contains(where: \.isPause) }

    /// Resets the subscription, because it is set up again over a new connection. The server then reports again what
    /// limits the video.
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

    /// Handles the first whole frame over a connection or transceiver. Only the first frame of the stream is reported.
    func frameArrived() {
        let isFirst = state.withLock { state in
            defer { state.hasFrame = true }
            return !state.hasFrame
        }
        if isFirst { events.send(.firstFrame) }
    }

    /// Ends the events of the stream.
    ///
    /// - Returns: the transceivers to release; nil if there are none.
    func end(_ reason: Session.Reason) -> SFUConnections.Pair? {
        let (slot, meter, tracks) = state.withLock { state in
            defer { (state.isEnded, state.slot, state.tracks, state.mids, state.meter) = (true, nil, [:], [], nil) }
            return (state.slot, state.meter, state.tracks)
        }
        events.send(.ended(reason))
        events.finish()
        // Release the tracks and the meter, and with it its timer, outside the lock.
        withExtendedLifetime((meter, tracks)) {}
        return slot
    }
}

extension Subscription.State {
    /// Updates why the video is limited. If the video is not paused, the reason `bandwidth` alone does not mean that
    /// bandwidth limits the video: the server also sends it when a larger layer fits again.
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

    /// Updates whether media arrives, from the state of the peer connection and the tracks that have been found.
    ///
    /// - Returns: the event for the application; nil if there is none.
    mutating func update(_ peer: PeerState, of stream: MediaStream) -> MediaSubscriber.Event? {
        let isReceiving = peer == .connected && hasTracks(of: stream)
        guard !isEnded else { return nil }
        guard isReceiving != isConnected else {
            // Report other tracks on a working connection, for example if a stream that began with audio only now has
            // video.
            guard isConnected, tracks != announced else { return nil }
            announced = tracks
            return .tracksChanged
        }
        // Missing tracks on a working connection are not a loss: the subscription is being set up again.
        if !isReceiving, peer == .connected { return nil }
        isConnected = isReceiving
        guard isReceiving else { return .dropped }
        defer { (wasConnected, announced) = (true, tracks) }
        return wasConnected ? .resumed : .connected
    }

    /// Whether all requested tracks of the stream have arrived. The audio and the video track arrive one after the
    /// other.
    private func hasTracks(of stream: MediaStream) -> Bool {
        let lacksAudio = options.audio && stream.hasAudio && tracks[.audio] == nil
        let lacksVideo = options.video && stream.hasVideo && tracks[.video] == nil
        return !tracks.isEmpty && !lacksAudio && !lacksVideo
    }
}

extension MediaSubscriber.Event {
    fileprivate var isPause: Bool { if case .videoPaused = self { true } else { false } }
}
