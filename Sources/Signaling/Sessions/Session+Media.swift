import DequeModule
import Wire

/// What the media plane is told of a routed session, and how a relayed one becomes routed.
extension Session {
    /// How far the relayed media between two members is, as both remember it.
    enum Pair: Equatable, Sendable {
        /// One subscribes to the other, and until then it may take to connect.
        case waiting(until: Timestamp)
        /// Neither wants anything of the other any more; their peer connection may be there still.
        case idle
        /// It worked once. What breaks later is for an ICE restart to mend.
        case connected
    }

    struct Wait: Equatable, Sendable {
        var one: ConnectionID
        var other: ConnectionID
        var until: Timestamp
    }

    var isRouted: Bool { mediaMode == .routed }

    /// Streams cannot be in a routed session where nothing routes them.
    func permitMedia(_ turn: Turn) throws(WireError) {
        guard !isRouted || turn.rules.routesMedia else {
            throw WireError(.mediaUnavailable, "This server routes no media; meet in a relayed session.")
        }
    }

    // MARK: Telling the media plane

    /// Of a stream that is new to it, or carried by other transceivers now.
    func route(_ published: Published, _ turn: inout Turn) {
        guard isRouted else { return }
        let stream = published.stream
        turn.media(
            .publish(
                stream.id, id, by: stream.connection, published.mids, audio: stream.hasAudio,
                video: stream.hasVideo
            )
        )
    }

    /// Of a subscription. Without transceivers it is none to the media plane.
    func route(
        _ verb: SessionVerb.Subscribe, by client: ConnectionID, former: SessionVerb.Subscribe?, _ turn: inout Turn
    ) {
        guard !verb.mids.isEmpty else { return stopRouting(former, by: client, &turn) }
        turn.media(
            .subscribe(
                verb.stream, id, by: client, verb.mids, audio: verb.audio, video: verb.video,
                preferring: verb.preference
            )
        )
    }

    func stopRouting(_ verb: SessionVerb.Subscribe?, by client: ConnectionID, _ turn: inout Turn) {
        guard let verb, !verb.mids.isEmpty else { return }
        turn.media(.unsubscribe(verb.stream, by: client))
    }

    /// A stream is otherwise than before: everybody hears it, and the media plane what concerns it.
    mutating func change(_ stream: StreamInfo, mids: MediaMids = MediaMids(), _ turn: inout Turn) {
        guard let before = streams[stream.id] else { return }
        streams[stream.id]?.stream = stream
        if isRouted, !mids.isEmpty {
            streams[stream.id]?.mids.audio = mids.audio ?? before.mids.audio
            streams[stream.id]?.mids.video = mids.video ?? before.mids.video
            // Also when they are the same as before: they may be another peer connection's.
            if let published = streams[stream.id] { route(published, &turn) }
        } else if isRouted, (stream.hasAudio, stream.hasVideo) != (before.stream.hasAudio, before.stream.hasVideo) {
            turn.media(.update(stream.id, audio: stream.hasAudio, video: stream.hasVideo))
        }
        guard stream != before.stream else { return }
        broadcast(.session(.streamChanged(.init(session: id, stream: stream))), &turn)
    }

    /// Whoever is muted is not forwarded, whether his client obeys or not; he may unmute himself.
    mutating func silence(_ id: StreamID, _ turn: inout Turn) {
        guard isRouted, var stream = streams[id]?.stream else { return }
        stream.hasAudio = false
        change(stream, &turn)
    }

    // MARK: From relayed to routed

    /// Begins the wait for a pair's media, when one of the two first wants any of the other's.
    mutating func beginWait(_ one: ConnectionID, _ other: ConnectionID, _ turn: Turn) {
        guard !isRouted, !isRelayedOnly, turn.rules.routesMedia, wantsMedia(one, other) else { return }
        switch members[one]?.pairs[other] {
        case .waiting, .connected: return
        case .idle, nil: wait(one, other, turn)
        }
    }

    private mutating func wait(_ one: ConnectionID, _ other: ConnectionID, _ turn: Turn) {
        // A wait of nothing would come due again and again at one instant.
        let until = turn.now + max(turn.rules.relayedFallback, .milliseconds(1))
        setPair(one, other, .waiting(until: until))
        waits.append(Wait(one: one, other: other, until: until))
    }

    /// Ends it when neither wants anything of the other any more.
    mutating func endWait(_ one: ConnectionID, _ other: ConnectionID) {
        guard case .waiting? = members[one]?.pairs[other], !wantsMedia(one, other) else { return }
        setPair(one, other, .idle)
    }

    /// Whose line is back gets all the time again: without it nobody could negotiate or say that it works.
    mutating func renewWaits(of client: ConnectionID, _ turn: Turn) {
        let pairs = members[client]?.pairs ?? [:]
        for other in pairs.keys.sorted() {
            if case .waiting? = pairs[other] { wait(client, other, turn) }
        }
    }

    private mutating func setPair(_ one: ConnectionID, _ other: ConnectionID, _ pair: Pair) {
        members[one]?.pairs[other] = pair
        members[other]?.pairs[one] = pair
    }

    private func wantsMedia(_ one: ConnectionID, _ other: ConnectionID) -> Bool {
        gets(one, from: other) || gets(other, from: one)
    }

    private func gets(_ subscriber: ConnectionID, from publisher: ConnectionID) -> Bool {
        members[publisher]?.streams.contains { stream in
            streams[stream]?.subscribers[subscriber].map { $0.audio || $0.video } ?? false
        } ?? false
    }

    /// What one of a pair says of it. That it does not work is no news until its time is up.
    mutating func connected(_ verb: SessionVerb.Connected, by client: ConnectionID) throws(WireError) {
        guard members[verb.connection] != nil else {
            throw WireError(.notFound, "That connection is not in this session any more.")
        }
        guard verb.connected, members[client]?.pairs[verb.connection] != nil else { return }
        setPair(client, verb.connection, .connected)
    }

    mutating func checkWaits(_ turn: inout Turn) {
        while let wait = waits.first, wait.until <= turn.now {
            waits.removeFirst()
            guard let one = members[wait.one], let other = members[wait.other] else { continue }
            guard one.pairs[wait.other] == .waiting(until: wait.until), !one.isDropped, !other.isDropped else {
                continue
            }
            return fallBack(&turn)
        }
    }

    /// Once, and for the whole session: two ways for media in one session are more than anybody could explain.
    private mutating func fallBack(_ turn: inout Turn) {
        mediaMode = .routed
        hasFallenBack = true
        waits = []
        for client in order { members[client]?.pairs = [:] }
        for stream in order.flatMap({ members[$0]?.streams ?? [] }) {
            if let published = streams[stream] { route(published, &turn) }
        }
        broadcast(.session(.mediaModeChanged(.init(session: id, mediaMode: mediaMode))), &turn)
    }

    // MARK: What the media plane tells

    func subscriptionChanged(_ news: SessionNotice.SubscriptionChanged, to subscriber: ConnectionID, _ turn: inout Turn)
    {
        guard isRouted, streams[news.stream]?.subscribers[subscriber] != nil else { return }
        turn.send(.session(.subscriptionChanged(news)), to: subscriber)
    }

    func layersWanted(_ stream: StreamID, _ publisher: ConnectionID, _ rids: [String], _ turn: inout Turn) {
        guard isRouted, streams[stream]?.stream.connection == publisher else { return }
        let event = SessionNotice.LayersWanted(session: id, stream: stream, rids: rids)
        turn.send(.session(.layersWanted(event)), to: publisher)
    }

    func speaking(_ stream: StreamID?, _ turn: inout Turn) {
        guard isRouted, stream.map({ streams[$0] != nil }) ?? true else { return }
        broadcast(.session(.speaking(.init(session: id, stream: stream))), &turn)
    }
}
