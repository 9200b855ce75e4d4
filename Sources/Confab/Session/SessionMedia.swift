import Wire

/// The streams that a client publishes and receives in a session. Chooses the peer connections that carry them:
/// `RelayedPeer` handles relayed media, `SFUTransport` routed media.
///
/// Invariant: however a stream ends, its transceivers are released once, and its events end.
final class SessionMedia: Sendable {
    /// The state that the lock protects.
    struct State: Sendable {
        var publications: [StreamID: Publication] = [:]
        var subscriptions: [StreamID: Subscription] = [:]
        /// The media that each subscriber of a local stream wants. May contain streams that are not in `publications`
        /// yet, because the server can report a subscriber before the answer to `publish` is handled.
        var subscribers: [StreamID: [ConnectionID: Wanted]] = [:]
        var peers: [ConnectionID: RelayedConnection] = [:]
        /// The members with which a peer connection has been established, as reported to the server.
        var reported: Set<ConnectionID> = []
        var link: SFUConnections?
        var listening: Listening?
        /// Whether a moderator has muted everyone, so that new streams begin without audio.
        var startsMuted = false
    }

    /// Which media of a stream a subscriber wants.
    struct Wanted: Hashable, Sendable {
        var audio: Bool
        var video: Bool
    }

    /// The peer connection with one other member.
    struct RelayedConnection: Sendable {
        let rules: Runner<RelayedPeer>
        let runner: PeerRunner
    }

    /// The maximum number of streams in `subscribers`. Beyond it, subscribers of a stream that is not in
    /// `publications` yet are ignored.
    static let maxEarlySubscribers = 64
    /// The maximum number of peer connections of a relayed session. Larger sessions are routed.
    static let maxPeers = 100

    let session: SessionCore
    let state = LockedValue(State())
    var core: ClientCore { session.core }
    var isRouted: Bool { session.machine.mediaMode == .routed }

    init(_ session: SessionCore) {
        self.session = session
        session.setMedia { [weak self] news in
            switch news {
            case .status(let status): self?.hear(status)
            case .notice(let notice): self?.hear(notice)
            case .event(let event): self?.hear(event)
            }
        }
    }

    deinit {
        // End all streams, because the application has released the session without leaving it.
        let state = state.withLock { $0 }
        for publication in state.publications.values {
            if let pair = publication.end(.clientDisconnected) { state.link?.release(pair) }
        }
        for subscription in state.subscriptions.values {
            if let slot = subscription.end(.clientDisconnected) { state.link?.release(slot) }
        }
    }

    func send(_ verb: SessionVerb) { core.send(.session(verb)) }

    func link() throws(ConfabError) -> SFUConnections {
        if let link = state.withLock({ $0.link }) { return link }
        let link = try core.sfuConnections()
        let listening = link.attach { [weak self] in self?.hear($0) }
        state.withLock { ($0.link, $0.listening) = (link, listening) }
        return link
    }

    /// Checks that this client can publish in the session now.
    ///
    /// - Throws: `no_media_engine` or `not_joined`.
    private func demand() throws(ConfabError) {
        guard core.media != nil else { throw .noMediaEngine }
        guard [.connected, .reconnecting].contains(session.machine.status) else { throw .disconnected }
    }

    // MARK: Publishing

    /// Publishes media as a stream.
    ///
    /// - Parameter enabling: whether to enable the audio and video that the stream begins with. False leaves them as
    ///   they are, for media that the application may have muted.
    func publish(
        _ local: any LocalMedia, _ options: Session.PublishOptions, enabling: Bool = true
    ) async throws(ConfabError) -> Publication {
        try demand()
        let source = MediaSource(media: local)
        let layers = options.simulcast ? Self.layers(of: local, options.videoKind) : []
        var verb = SessionVerb.Publish()
        verb.session = session.id
        verb.name = options.name.isEmpty ? nil : options.name
        verb.hasAudio = local.hasAudio && options.audio && !state.withLock { $0.startsMuted }
        verb.hasVideo = local.video != nil && options.video
        verb.videoType = VideoType(rawValue: options.videoKind.rawValue)
        (verb.width, verb.height) = (local.size?.width, local.size?.height)
        var begun = Publication.State(
            stream: MediaStream(StreamInfo()), audio: local.hasAudio ? source : nil,
            video: local.video == nil ? nil : source, hasAudio: verb.hasAudio, hasVideo: verb.hasVideo)
        await local.setEnabled(
            audio: enabling || !verb.hasAudio ? verb.hasAudio : nil,
            video: enabling || !verb.hasVideo ? verb.hasVideo : nil)
        var used: SFUConnections?
        if isRouted {
            let link = try link()
            used = link
            let pair = try link.takeOutgoing(layers: layers)
            link.send(begun.audio, .audio, on: pair)
            link.send(begun.video, .video, on: pair)
            begun.pair = pair
            do throws(ConfabError) { verb.mids = try await link.mids(pair) } catch {
                link.release(pair)
                throw error
            }
        }
        let publication = try await announce(verb, begun, layers, used)
        if options.audioFallback { beginFallback(of: publication) }
        return publication
    }

    /// Returns the layers to send; empty for one encoding.
    private static func layers(of local: any LocalMedia, _ kind: MediaStream.VideoKind) -> [Layer] {
        guard local.video != nil else { return [] }
        if let layers = local.layers { return layers.count > 1 ? layers : [] }
        return kind == .camera ? Layer.simulcast(of: local.size) : []
    }

    /// Requests the publication from the server.
    ///
    /// - Parameter link: the SFU connections that own the stream's pair of transceivers; nil in a relayed session. If
    ///   publishing fails, the pair is released to them, even if the session has ended in the meantime.
    private func announce(
        _ verb: SessionVerb.Publish, _ begun: Publication.State, _ layers: [Layer], _ link: SFUConnections?
    ) async throws(ConfabError) -> Publication {
        /// Whether the task was canceled, and the stream once it exists. Either can happen first. If both happen,
        /// whichever is second ends the stream.
        let outcome = LockedValue<(isCancelled: Bool, publication: Publication?)>((false, nil))
        do {
            return try await awaitResult { (answer: @escaping @Sendable (Result<Publication, ConfabError>) -> Void) in
                // Register the stream in this callback: the next event may already report its first subscriber.
                core.send(.session(.publish(verb))) { [self] result in
                    switch result {
                    case .success(.session(.published(let published))):
                        var state = begun
                        state.stream = MediaStream(published.stream)
                        let publication = Publication(state, layers: layers)
                        let isCancelled = outcome.withLock { outcome in
                            outcome.publication = publication
                            return outcome.isCancelled
                        }
                        begin(publication)
                        if isCancelled { end(publication) }
                        answer(.success(publication))
                    case .success(let other): fail(.unexpected(other, for: "session.publish"))
                    case .failure(let error): fail(error)
                    }
                    func fail(_ error: ConfabError) {
                        if let pair = begun.pair { link?.release(pair) }
                        answer(.failure(error))
                    }
                }
            }
        } catch {
            let unwanted = outcome.withLock { outcome in
                outcome.isCancelled = true
                return outcome.publication
            }
            if let unwanted { end(unwanted) }
            throw error
        }
    }

    private func begin(_ publication: Publication) {
        let id = publication.id
        let subscribers = state.withLock { state in
            state.publications[id] = publication
            return state.subscribers[id] ?? [:]
        }
        if isRouted {
            // Move the stream to the SFU if the session was still relayed when the stream was announced.
            if publication.state.withLock({ $0.pair == nil }) { Task { await self.move(publication) } }
        } else {
            for (connection, wanted) in subscribers { send(publication, to: connection, wanted) }
        }
    }

    func set(_ publication: Publication, audio: Bool? = nil, video: Bool? = nil) async throws(ConfabError) {
        let (now, isEnded) = publication.state.withLock { state in
            state.hasAudio = (audio ?? state.hasAudio) && state.audio != nil
            state.hasVideo = (video ?? state.hasVideo) && state.video != nil
            return (state, state.isEnded)
        }
        guard !isEnded else { throw .streamEnded }
        if video != nil { now.fallback?.post(.videoTurned(isOn: now.hasVideo)) }
        if audio != nil { await now.audio?.media.setEnabled(audio: now.hasAudio, video: nil) }
        if video != nil { await now.video?.media.setEnabled(audio: nil, video: now.hasVideo) }
        var update = SessionVerb.Update()
        (update.session, update.stream) = (session.id, publication.id)
        (update.hasAudio, update.hasVideo) = (audio.map { _ in now.hasAudio }, video.map { _ in now.hasVideo })
        try await tell(update, of: publication)
    }

    /// Notifies the server which media a stream has. If the server refuses the video for now, turns the video off
    /// again. The other members also see it as off.
    private func tell(_ update: SessionVerb.Update, of publication: Publication) async throws(ConfabError) {
        do throws(ConfabError) { try await core.request(.session(.update(update))) } catch {
            guard update.hasVideo == true, error.code == .bandwidthExceeded else { throw error }
            let now = publication.state.withLock { state in
                state.hasVideo = false
                return state
            }
            now.fallback?.post(.videoTurned(isOn: false))
            await now.video?.media.setEnabled(audio: nil, video: false)
            throw error
        }
    }

    func replaceVideo(of publication: Publication, with other: any LocalMedia) async throws(ConfabError) {
        guard other.video != nil else { throw .noVideo }
        let source = MediaSource(media: other)
        let (now, hadVideo) = publication.state.withLock { state in
            defer { if !state.isEnded { state.video = source } }
            return (state, state.video != nil)
        }
        guard !now.isEnded else { throw .streamEnded }
        await other.setEnabled(audio: nil, video: now.hasVideo || !hadVideo)
        // If audio fallback has stopped the video, do not send it yet. It is sent when the network has improved.
        if let pair = now.pair, !now.isVideoStopped { state.withLock { $0.link }?.send(source, .video, on: pair) }
        for (connection, wanted) in state.withLock({ $0.subscribers[publication.id] ?? [:] }) where !isRouted {
            send(publication, to: connection, wanted)
        }
        var update = SessionVerb.Update()
        (update.session, update.stream) = (session.id, publication.id)
        (update.width, update.height) = (other.size?.width, other.size?.height)
        if !hadVideo {
            publication.state.withLock { $0.hasVideo = true }
            update.hasVideo = true
        }
        try await tell(update, of: publication)
    }

    func unpublish(_ publication: Publication) async {
        guard !publication.state.withLock({ $0.isEnded }) else { return }
        let (session, id) = (session.id, publication.id)
        stop(publication, .clientUnpublished)
        _ = try? await core.request(.session(.unpublish(.init(session: session, stream: id))))
    }

    private func end(_ publication: Publication) {
        send(.unpublish(.init(session: session.id, stream: publication.id)))
        stop(publication, .clientUnpublished)
    }

    /// Stops sending a stream, because it has ended, and ends its events. Does not notify the server.
    func stop(_ publication: Publication, _ reason: Session.Reason) {
        let id = publication.id
        let (isKnown, subscribers, link) = state.withLock { state in
            (
                state.publications.removeValue(forKey: id) != nil, state.subscribers.removeValue(forKey: id) ?? [:],
                state.link
            )
        }
        guard isKnown else { return }
        if let pair = publication.end(reason) { link?.release(pair) }
        for connection in subscribers.keys { stopSending(id, to: connection) }
    }

    func statistics(of publication: Publication) async -> [Statistic] {
        if let pair = publication.state.withLock({ $0.pair }) {
            return await state.withLock { $0.link }?.statistics(pair) ?? []
        }
        let peers = state.withLock { state in
            (state.subscribers[publication.id] ?? [:]).keys.compactMap { state.peers[$0] }
        }
        var all: [Statistic] = []
        for peer in peers { all += await peer.runner.statistics().filter { $0.flow == .sent } }
        return all
    }
}

extension ConfabError {
    static let streamEnded = ConfabError(.notFound, "This stream has ended. Publish or subscribe again.")
    static let noVideo = ConfabError(.mediaFailed, "This media has no video. Use media with video.")
    static let ownStream = ConfabError(
        .notPermitted, "This is your own stream, and the session is relayed. Show the local media instead.")
    static let alreadySubscribed = ConfabError(
        "already_subscribed", "Already subscribed to this stream. Use the existing subscriber, or unsubscribe first.")
}
