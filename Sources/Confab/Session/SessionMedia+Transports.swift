import Wire

// Transports for media: relayed, over one peer connection with each other member, or routed, over the client's
// connections to the SFU.
extension SessionMedia {
    // MARK: Relayed

    /// Returns the peer connection with a member, and creates it if needed; nil without a media engine, outside the
    /// session, or if there are too many connections.
    func peer(_ connection: ConnectionID) -> RelayedConnection? {
        let (present, isFull) = state.withLock { ($0.peers[connection], $0.peers.count >= Self.maxPeers) }
        if let present { return present }
        guard !isFull else { return nil }
        guard let engine = core.media, let own = session.machine.connection?.id else { return nil }
        // The peer with the lower id, compared as text, is polite.
        let rules = Runner(
            RelayedPeer(isPolite: "\(own)" < "\(connection)", random: core.dependencies.random),
            clock: core.dependencies.clock)
        let runner = PeerRunner(
            engine: engine,
            configure: { [weak core] () async throws(ConfabError) in
                try await core?.peerConfiguration(isRelayed: true) ?? PeerConfiguration()
            },
            report: { [weak rules] report, number in rules?.post(.report(report, connection: number)) })
        rules.onEffect { [weak self, runner] effect in
            if case .step(let step) = effect { runner.run(step) } else { self?.carryOut(effect, with: connection) }
        }
        let made = RelayedConnection(rules: rules, runner: runner)
        return state.withLock { state in
            if let present = state.peers[connection] { return present }
            state.peers[connection] = made
            return made
        }
    }

    func send(_ publication: Publication, to connection: ConnectionID, _ wanted: Wanted) {
        let outgoing = publication.outgoing(audio: wanted.audio, video: wanted.video)
        peer(connection)?.rules.post(.send(publication.id, outgoing))
    }

    func stopSending(_ stream: StreamID, to connection: ConnectionID) {
        state.withLock { $0.peers[connection] }?.rules.post(.stopSending(stream))
        release(connection)
    }

    /// Closes the peer connection with a member if neither side subscribes to a stream of the other.
    func release(_ connection: ConnectionID) {
        let obsolete = state.withLock { state in
            state.isRelated(connection) ? nil : state.peers.removeValue(forKey: connection)
        }
        withExtendedLifetime(obsolete) {}
    }

    func subscribed(_ notice: SessionNotice.Subscribed) {
        let wanted = Wanted(audio: notice.audio, video: notice.video)
        let publication = state.withLock { state -> Publication? in
            let publication = state.publications[notice.stream]
            if publication == nil, state.subscribers[notice.stream] == nil,
                state.subscribers.count >= Self.maxEarlySubscribers
            {
                return nil
            }
            guard state.subscribers[notice.stream, default: [:]].count < SessionMachine.maxMembers else { return nil }
            state.subscribers[notice.stream, default: [:]][notice.connection] = wanted
            return publication
        }
        if let publication, !isRouted { send(publication, to: notice.connection, wanted) }
    }

    func negotiate(_ notice: SessionNotice.Negotiate) {
        // Ignore late messages from a member if neither side still subscribes to a stream of the other.
        guard !isRouted, state.withLock({ $0.isRelated(notice.from) }), let message = RelayedPeer.Message(notice) else {
            return
        }
        peer(notice.from)?.rules.post(.received(message))
    }

    private func carryOut(_ effect: RelayedPeer.Effect, with connection: ConnectionID) {
        switch effect {
        case .step: break
        case .post(let message):
            core.send(.session(message.verb(session.id, to: connection))) { [weak self] result in
                guard case .failure(let error) = result else { return }
                self?.state.withLock { $0.peers[connection] }?.rules.post(.refused(message, error))
            }
        case .state(let next):
            if next == .connected, state.withLock({ $0.reported.insert(connection).inserted }) {
                send(.connected(.init(session: session.id, connection: connection, connected: true)))
            }
            for subscription in subscriptions(from: connection) { subscription.update(next) }
        case .arrived(let stream, let mid, let track):
            // Ignore media for other streams: a member may send media only for its own streams.
            let subscription = subscriptions(from: connection).first { "\($0.stream.id)" == stream }
            guard let subscription else { return }
            _ = subscription.state.withLock { $0.mids.insert(mid) }
            take(track, track.media.kind, for: subscription)
            if let state = state.withLock({ $0.peers[connection] })?.rules.read(\.state) { subscription.update(state) }
        case .firstFrame(let mid):
            let subscription = subscriptions(from: connection).first { $0.state.withLock { $0.mids.contains(mid) } }
            subscription?.frameArrived()
        case .failed(let error):
            for publication in publications(for: connection) { publication.events.send(.failed(error)) }
            for subscription in subscriptions(from: connection) { subscription.events.send(.failed(error)) }
        case .notSent(let source, let error): tell(notSent: source, error)
        }
    }

    private func subscriptions(from connection: ConnectionID) -> [Subscription] {
        state.withLock { $0.subscriptions.values.filter { $0.stream.connection == connection } }
    }

    private func publications(for connection: ConnectionID) -> [Publication] {
        state.withLock { state in
            state.publications.filter { state.subscribers[$0.key]?[connection] != nil }.map(\.value)
        }
    }

    /// Reports an error only to the publications that send this source.
    private func tell(notSent source: MediaSource, _ error: ConfabError) {
        for publication in state.withLock({ Array($0.publications.values) }) {
            let isMeant = publication.state.withLock { $0.video == source || $0.audio == source }
            if isMeant { publication.events.send(.failed(error)) }
        }
    }

    // MARK: Routed

    func hear(_ event: SFUConnections.Event) {
        let (publications, subscriptions, link) = state.withLock { state in
            (Array(state.publications.values), Array(state.subscriptions.values), state.link)
        }
        switch event {
        case .state(let next): for subscription in subscriptions { subscription.update(next) }
        case .found: for subscription in subscriptions { refresh(subscription) }
        case .firstFrame(let mid):
            let subscription = subscriptions.first { one in
                one.state.withLock { $0.slot }.map { link?.uses($0, mid: mid) ?? false } ?? false
            }
            subscription?.frameArrived()
        case .renewed(.send): for publication in publications { Task { await self.tell(publication) } }
        case .renewed(.receive):
            for subscription in subscriptions {
                subscription.beginAgain()
                Task { await self.tell(subscription) }
            }
        case .failed(let error):
            for publication in publications { publication.events.send(.failed(error)) }
            for subscription in subscriptions { subscription.events.send(.failed(error)) }
        case .notSent(let source, let error): tell(notSent: source, error)
        }
    }

    /// Moves all streams to the SFU, because the relayed session became a routed one.
    func moveAll() {
        let (publications, subscriptions, obsolete) = state.withLock { state in
            defer { (state.peers, state.reported) = ([:], []) }
            return (Array(state.publications.values), Array(state.subscriptions.values), state.peers)
        }
        withExtendedLifetime(obsolete) {}
        for publication in publications { Task { await self.move(publication) } }
        for subscription in subscriptions {
            let former = subscription.state.withLock { state in
                defer { (state.tracks, state.mids) = ([:], []) }
                return state.tracks
            }
            // Release the tracks outside the lock.
            withExtendedLifetime(former) {}
            subscription.update(.connecting)
            Task { await self.tell(subscription) }
        }
    }

    func move(_ publication: Publication) async {
        do throws(ConfabError) {
            let link = try link()
            let pair = try link.takeOutgoing(layers: publication.layers)
            let present = publication.state.withLock { state -> Publication.State? in
                guard !state.isEnded, state.pair == nil else { return nil }
                state.pair = pair
                return state
            }
            guard let present else { return link.release(pair) }
            link.send(present.audio, .audio, on: pair)
            link.send(present.sentVideo, .video, on: pair)
            await tell(publication)
        } catch {
            publication.events.send(.failed(error))
        }
    }

    /// Notifies the server which transceivers carry a stream.
    private func tell(_ publication: Publication) async {
        guard let pair = publication.state.withLock({ $0.isEnded ? nil : $0.pair }) else { return }
        do throws(ConfabError) {
            var update = SessionVerb.Update()
            (update.session, update.stream) = (session.id, publication.id)
            update.mids = try await link().mids(pair)
            try await core.request(.session(.update(update)))
        } catch {
            publication.events.send(.failed(error))
        }
    }

    /// Requests a stream again, over the current transceivers.
    private func tell(_ subscription: Subscription) async {
        guard !subscription.state.withLock({ $0.isEnded }) else { return }
        do throws(ConfabError) {
            try await change(subscription) { _ in }
            refresh(subscription)
        } catch {
            subscription.events.send(.failed(error))
        }
    }
}

extension SessionMedia.State {
    /// Whether this client subscribes to a stream of the member, or the member to one of this client's streams.
    fileprivate func isRelated(_ connection: ConnectionID) -> Bool {
        subscriptions.values.contains { $0.stream.connection == connection }
            || subscribers.values.contains { $0[connection] != nil }
    }
}
