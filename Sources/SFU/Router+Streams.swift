import RTC

/// The streams that clients publish and subscribe to.
extension Router {
    /// Publishes a stream, or changes the transceivers and kinds of media of a stream that is already published.
    /// Ignored if another client has published the stream.
    public func publish(
        _ stream: Key, session: String, client: Key, mids: Mids, audio: Bool, video: Bool
    ) {
        if let known = publications[stream] {
            guard known.client == client else { return }
            known.mids = mids
            (known.forwardsAudio, known.forwardsVideo) = (audio, video)
        } else {
            publications[stream] = Publication(
                stream: stream, session: session, client: client, mids: mids, audio: audio, video: video
            )
            clients[client, default: Client()].published.insert(stream)
        }
        rebind(publications[stream])
    }

    /// Changes whether the audio and video of a stream are forwarded.
    public func update(_ stream: Key, audio: Bool, video: Bool) {
        guard let publication = publications[stream] else { return }
        (publication.forwardsAudio, publication.forwardsVideo) = (audio, video)
        rebind(publication)
    }

    public func unpublish(_ stream: Key) {
        guard let publication = publications.removeValue(forKey: stream) else { return }
        audioChanged = true
        for subscription in publication.subscriptions.values {
            detach(subscription)
            clients[subscription.client]?.subscribed.remove(stream)
            forgetIfEmpty(subscription.client)
        }
        if let peer = clients[publication.client]?.send {
            for track in peer.incoming where track.publication === publication { track.publication = nil }
        }
        clients[publication.client]?.published.remove(stream)
        speakers[publication.session]?.remove(stream)
        forgetIfEmpty(publication.client)
    }

    /// Subscribes to a stream, or changes the transceivers and kinds of media of an existing subscription. Ignored if
    /// the stream is not published.
    /// - Parameters:
    ///   - audio: whether the client receives the stream's audio.
    ///   - video: whether the client receives the stream's video.
    ///   - preference: selects the encoding if the publisher sends several.
    public func subscribe(
        _ stream: Key, client: Key, mids: Mids, audio: Bool, video: Bool,
        preferring preference: VideoPreference = VideoPreference()
    ) {
        guard let publication = publications[stream] else { return }
        let subscription: Subscription
        if let known = publication.subscriptions[client] {
            subscription = known
            if known.mids != mids { detach(known) }
            (known.mids, known.audio, known.video) = (mids, audio, video)
        } else {
            subscription = Subscription(
                publication: publication, client: client, mids: mids, audio: audio, video: video
            )
            publication.subscriptions[client] = subscription
            clients[client, default: Client()].subscribed.insert(stream)
        }
        subscription.preference = preference
        take(mids, for: subscription)
        rebind(subscription)
    }

    /// Assigns transceivers to a subscription. A transceiver carries one stream at a time, so it is taken from any stream
    /// that used it before.
    private func take(_ mids: Mids, for subscription: Subscription) {
        for stream in clients[subscription.client]?.subscribed ?? [] where stream != subscription.publication.stream {
            publications[stream]?.subscriptions[subscription.client]?.release(mids)
        }
        for slot in clients[subscription.client]?.receive?.outgoing ?? []
        where (slot.mid == mids.audio || slot.mid == mids.video) && slot.subscription !== subscription {
            slot.subscription = nil
            slot.attach(nil)
        }
    }

    public func unsubscribe(_ stream: Key, client: Key) {
        guard let subscription = publications[stream]?.subscriptions.removeValue(forKey: client) else { return }
        detach(subscription)
        clients[client]?.subscribed.remove(stream)
        forgetIfEmpty(client)
    }

    func forgetIfEmpty(_ client: Key) {
        if clients[client]?.isEmpty ?? false { clients[client] = nil }
    }

    // MARK: Links between transceivers

    func relinkAll(_ client: Key, _ side: Side) {
        guard let entry = clients[client] else { return }
        switch side {
        case .send: for stream in entry.published { rebind(publications[stream]) }
        case .receive:
            for stream in entry.subscribed {
                if let subscription = publications[stream]?.subscriptions[client] { rebind(subscription) }
            }
        }
    }

    private func rebind(_ publication: Publication?) {
        guard let publication else { return }
        audioChanged = true
        if let peer = clients[publication.client]?.send {
            for track in peer.incoming {
                if track.mid == publication.mids.audio || track.mid == publication.mids.video {
                    track.publication = publication
                } else if track.publication === publication {
                    track.publication = nil
                }
            }
        }
        for subscription in publication.subscriptions.values { rebind(subscription) }
    }

    private func rebind(_ subscription: Subscription) {
        rebind(subscription, .audio)
        rebind(subscription, .video)
    }

    /// Updates one transceiver to match the publication, the subscription and their settings. The operation is
    /// idempotent.
    private func rebind(_ subscription: Subscription, _ kind: MediaKind) {
        let publication = subscription.publication
        guard let mid = subscription.mid(kind), let slot = clients[subscription.client]?.receive?.outgoing(mid),
            slot.kind == kind
        else { return }
        // No other subscription of this client uses the slot, because `take` has released it.
        slot.subscription = subscription
        let source = publication.mid(kind).flatMap { clients[publication.client]?.send?.incoming($0) }
        let isOn = publication.forwards(kind) && subscription.wants(kind) && source?.kind == kind && slot.isWanted
        slot.attach(isOn ? source : nil)
        slot.preference = subscription.preference
        if isOn, let source, source.needsSelection { select(source) }
    }

    private func detach(_ subscription: Subscription) {
        guard let peer = clients[subscription.client]?.receive else { return }
        for slot in peer.outgoing where slot.subscription === subscription {
            slot.subscription = nil
            slot.attach(nil)
        }
    }
}

extension Router.Client {
    var isEmpty: Bool { send == nil && receive == nil && published.isEmpty && subscribed.isEmpty }
}
