import Wire

// Subscribing to streams, and handling the session's status changes, events and notices that concern media.
extension SessionMedia {
    func subscribe(
        _ stream: MediaStream, _ options: Session.SubscribeOptions
    ) async throws(ConfabError) -> Subscription {
        guard core.media != nil else { throw .noMediaEngine }
        let machine = session.machine
        guard [.connected, .reconnecting].contains(machine.status) else { throw .disconnected }
        let isOwn = stream.connection == machine.connection?.id
        guard !isOwn || isRouted else { throw .ownStream }
        guard isOwn || machine.stream(stream.id) != nil else { throw .streamEnded }
        let subscription = Subscription(stream, options)
        let isNew = state.withLock { state in
            if state.subscriptions[stream.id] != nil { return false }
            state.subscriptions[stream.id] = subscription
            return true
        }
        guard isNew else { throw .alreadySubscribed }
        do {
            let mids = isRouted ? try await takeSlot(subscription) : MediaMids()
            let request = subscribeVerb(subscription, mids)
            _ = try await awaitResult { (answer: @escaping ClientCore.Completion) in
                core.send(.session(request), answer)
                // Expect media only after the request has been sent: expecting can lead to an offer, and the server
                // forwards an offer only between a publisher and a subscriber.
                if !isRouted { peer(stream.connection)?.rules.post(.expect) }
            }
        } catch {
            if session.machine.status == .connected {
                send(.unsubscribe(.init(session: session.id, stream: stream.id)))
            }
            stop(subscription, .clientDisconnected)
            throw error
        }
        if subscription.state.withLock({ $0.isEnded }) { throw .streamEnded }
        refresh(subscription)
        return subscription
    }

    func subscribeVerb(_ subscription: Subscription, _ mids: MediaMids) -> SessionVerb {
        let options = subscription.state.withLock { $0.options }
        return .subscribe(
            .init(
                session: session.id, stream: subscription.stream.id, audio: options.audio, video: options.video,
                mids: mids,
                preference: isRouted ? options.preference : VideoPreference()))
    }

    private func takeSlot(_ subscription: Subscription) async throws(ConfabError) -> MediaMids {
        let link = try link()
        let slot: SFUConnections.Pair
        if let present = subscription.state.withLock({ $0.slot }) {
            slot = present
        } else {
            slot = try link.takeSlot()
            let isEnded = subscription.state.withLock { state in
                if !state.isEnded { state.slot = slot }
                return state.isEnded
            }
            if isEnded {
                link.release(slot)
                throw .streamEnded
            }
        }
        return try await link.mids(slot)
    }

    func change(
        _ subscription: Subscription, _ body: @Sendable (inout Session.SubscribeOptions) -> Void
    ) async throws(ConfabError) {
        let isEnded = subscription.state.withLock { state in
            body(&state.options)
            return state.isEnded
        }
        guard !isEnded else { throw .streamEnded }
        let mids = isRouted ? try await takeSlot(subscription) : MediaMids()
        try await core.request(.session(subscribeVerb(subscription, mids)))
    }

    func unsubscribe(_ subscription: Subscription) async {
        guard !subscription.state.withLock({ $0.isEnded }) else { return }
        stop(subscription, .clientDisconnected)
        let request = SessionVerb.StreamReference(session: session.id, stream: subscription.stream.id)
        _ = try? await core.request(.session(.unsubscribe(request)))
    }

    /// Stops receiving a stream on this device, and ends its events. Does not notify the server.
    func stop(_ subscription: Subscription, _ reason: Session.Reason) {
        let stream = subscription.stream
        let (isKnown, link) = state.withLock { state in
            guard state.subscriptions[stream.id] === subscription else { return (false, state.link) }
            state.subscriptions[stream.id] = nil
            return (true, state.link)
        }
        guard isKnown else { return }
        if let slot = subscription.end(reason) { link?.release(slot) }
        release(stream.connection)
    }

    /// In a routed session, assigns the tracks that arrive over the subscription's transceivers to it, and sends an
    /// event if media has started or stopped arriving. Does nothing in a relayed session.
    func refresh(_ subscription: Subscription) {
        guard let link = state.withLock({ $0.link }), let slot = subscription.state.withLock({ $0.slot }) else {
            return
        }
        for kind in TrackKind.allCases {
            if let track = link.track(kind, on: slot) { take(track, kind, for: subscription) }
        }
        subscription.update(link.receiving)
    }

    /// Assigns an arrived track to its subscription, and applies the volume that the application has set.
    func take(_ track: RemoteTrack, _ kind: TrackKind, for subscription: Subscription) {
        let (volume, former) = subscription.state.withLock { state -> (Double, RemoteTrack?) in
            let former = state.isEnded ? nil : state.tracks.updateValue(track, forKey: kind)
            return (state.volume, former)
        }
        // Release the previous track outside the lock.
        withExtendedLifetime(former) {}
        if kind == .audio, volume != 1 { Task { await track.media.setVolume(volume) } }
    }

    func statistics(of subscription: Subscription) async -> [Statistic] {
        let (isSlot, limitation) = subscription.state.withLock { ($0.slot != nil, $0.limitation) }
        let link = state.withLock { $0.link }
        guard isSlot, let link else { return await counters(of: subscription) }
        // Add the values of the server, because only the server knows how much it could send, and what limits the
        // video.
        let estimate = await link.estimate.read()
        return await counters(of: subscription).map { known in
            var statistic = known
            statistic.availableBitrate = estimate ?? known.availableBitrate
            if known.kind == .video { statistic.limitation = limitation }
            return statistic
        }
    }

    /// Returns the media engine's counters for a subscription.
    func counters(of subscription: Subscription) async -> [Statistic] {
        let (slot, mids) = subscription.state.withLock { ($0.slot, $0.mids) }
        let (link, peer) = state.withLock { ($0.link, $0.peers[subscription.stream.connection]) }
        if let slot { return await link?.statistics(slot) ?? [] }
        return await peer?.runner.statistics().filter { $0.mid.map(mids.contains) ?? false } ?? []
    }

    // MARK: Notifications of the session

    func hear(_ status: Session.Status) {
        switch status {
        case .connected: for peer in state.withLock({ Array($0.peers.values) }) { peer.rules.post(.resumed) }
        case .notConnected, .connecting, .reconnecting, .disconnecting, .failed: break
        }
    }

    func hear(_ event: Session.Event) {
        switch event {
        case .disconnected(let reason): endAll(reason)
        case .muted(let isActive, nil): state.withLock { $0.startsMuted = isActive }
        default: break
        }
    }

    private func endAll(_ reason: Session.Reason) {
        let (publications, subscriptions) = state.withLock { state in
            (Array(state.publications.values), Array(state.subscriptions.values))
        }
        for publication in publications { stop(publication, reason) }
        for subscription in subscriptions { stop(subscription, reason) }
        // Release the state outside the lock, because releasing it closes connections.
        let obsolete = state.withLock { state in
            defer { state = State() }
            return state
        }
        withExtendedLifetime(obsolete) {}
    }

    func hear(_ notice: SessionNotice) {
        switch notice {
        case .subscribed(let notice): subscribed(notice)
        case .unsubscribed(let notice):
            state.withLock { $0.subscribers[notice.stream]?[notice.connection] = nil }
            stopSending(notice.stream, to: notice.connection)
        case .negotiate(let notice): negotiate(notice)
        case .streamDestroyed(let notice): ended(notice.stream, Session.Reason(notice.reason))
        case .connectionDestroyed(let notice): gone(notice.connection, Session.Reason(notice.reason))
        case .muted(let notice): muted(notice)
        case .mediaModeChanged: if isRouted { moveAll() }
        case .layersWanted(let notice): layersWanted(notice)
        case .subscriptionChanged(let notice): changed(notice)
        case .streamQuality(let notice):
            guard let (level, reason) = notice.judgment else { return }
            let (publication, subscription) = state.withLock {
                ($0.publications[notice.stream], $0.subscriptions[notice.stream])
            }
            publication?.events.send(.quality(level, reason))
            subscription?.events.send(.quality(level, reason))
            if let publication { judge(publication, level, reason) }
        default: break
        }
    }

    private func ended(_ stream: StreamID, _ reason: Session.Reason) {
        let (publication, subscription) = state.withLock { ($0.publications[stream], $0.subscriptions[stream]) }
        if let subscription { stop(subscription, reason) }
        if let publication { stop(publication, reason) }
    }

    private func gone(_ connection: ConnectionID, _ reason: Session.Reason) {
        let subscriptions = state.withLock { state in
            for id in state.subscribers.keys { state.subscribers[id]?[connection] = nil }
            state.reported.remove(connection)
            return state.subscriptions.values.filter { $0.stream.connection == connection }
        }
        for subscription in subscriptions { stop(subscription, reason) }
        release(connection)
    }

    private func muted(_ notice: SessionNotice.Muted) {
        guard notice.active, let stream = notice.stream,
            let publication = state.withLock({ $0.publications[stream] })
        else { return }
        let audio = publication.state.withLock { state in
            state.hasAudio = false
            return state.audio
        }
        publication.events.send(.muted)
        if let audio { Task { await audio.media.setEnabled(audio: false, video: nil) } }
    }

    /// Sends only the layers that subscribers need, and reports them to the application. The codec that the server
    /// recommends is not used: engines send VP8, unless the application has chosen another codec.
    private func layersWanted(_ notice: SessionNotice.LayersWanted) {
        let (publication, link) = state.withLock { ($0.publications[notice.stream], $0.link) }
        guard let publication, let pair = publication.state.withLock({ $0.pair }) else { return }
        if let isWanted = notice.video {
            link?.want(isWanted ? nil : [], on: pair)
        } else {
            let rids = notice.rids ?? []
            if !publication.layers.isEmpty { link?.want(rids, on: pair) }
            publication.events.send(.layersWanted(rids))
        }
    }

    private func changed(_ notice: SessionNotice.SubscriptionChanged) {
        guard let subscription = state.withLock({ $0.subscriptions[notice.stream] }) else { return }
        subscription.state.withLock { $0.limit(notice) }
        let events = subscription.events
        if notice.videoPaused {
            let reason = MediaSubscriber.PauseReason(rawValue: notice.reason.rawValue) ?? .other
            if !subscription.isPaused { events.send(.videoPaused(reason)) }
        } else {
            if subscription.isPaused { events.send(.videoResumed) }
            events.send(.layer(notice.rid))
        }
        if let warning = notice.warning { events.send(.warning(warning)) }
        if let limited = notice.limited { events.send(.limited(limited)) }
    }
}
