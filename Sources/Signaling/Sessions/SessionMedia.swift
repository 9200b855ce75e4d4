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
    func permitMedia(_ rules: Rules) throws(WireError) {
        guard !isRouted || rules.routesMedia else {
            throw WireError(.mediaUnavailable, "This server routes no media; meet in a relayed session.")
        }
    }

    // MARK: Telling the media plane

    /// Of a stream that is new to it, or carried by other transceivers now.
    func route(_ published: Published, into effects: inout [Effect]) {
        guard isRouted else { return }
        let stream = published.stream
        effects.append(
            .media(
                .publish(
                    stream.id, id, by: stream.connection, published.mids, audio: stream.hasAudio,
                    video: stream.hasVideo
                )
            )
        )
    }

    /// Of a subscription. Without transceivers it is none to the media plane.
    func route(
        _ verb: Subscribe, by client: ConnectionID, former: Subscribe?, into effects: inout [Effect]
    ) {
        guard !verb.mids.isEmpty else { return stopRouting(former, by: client, into: &effects) }
        effects.append(
            .media(
                .subscribe(
                    verb.stream, id, by: client, verb.mids, audio: verb.audio, video: verb.video,
                    preferring: verb.preference
                )
            )
        )
    }

    func stopRouting(_ verb: Subscribe?, by client: ConnectionID, into effects: inout [Effect]) {
        guard let verb, !verb.mids.isEmpty else { return }
        effects.append(.media(.unsubscribe(verb.stream, by: client)))
    }

    /// A stream is otherwise than before: everybody hears it, and the media plane what concerns it.
    mutating func change(_ stream: Stream, mids: MediaMids = MediaMids(), into effects: inout [Effect]) {
        guard let before = streams[stream.id] else { return }
        streams[stream.id]?.stream = stream
        if isRouted, !mids.isEmpty {
            streams[stream.id]?.mids.audio = mids.audio ?? before.mids.audio
            streams[stream.id]?.mids.video = mids.video ?? before.mids.video
            // Also when they are the same as before: they may be another peer connection's.
            if let published = streams[stream.id] { route(published, into: &effects) }
        } else if isRouted, (stream.hasAudio, stream.hasVideo) != (before.stream.hasAudio, before.stream.hasVideo) {
            effects.append(.media(.update(stream.id, audio: stream.hasAudio, video: stream.hasVideo)))
        }
        guard stream != before.stream else { return }
        broadcast(.streamChanged(WithStream(session: id, stream: stream)), into: &effects)
    }

    /// Whoever is muted is not forwarded, whether his client obeys or not; he may unmute himself.
    mutating func silence(_ id: StreamID, into effects: inout [Effect]) {
        guard isRouted, var stream = streams[id]?.stream else { return }
        stream.hasAudio = false
        change(stream, into: &effects)
    }

    // MARK: From relayed to routed

    /// Begins the wait for a pair's media, when one of the two first wants any of the other's.
    mutating func beginWait(_ one: ConnectionID, _ other: ConnectionID, now: Timestamp, _ rules: Rules) {
        guard !isRouted, !isRelayedOnly, rules.routesMedia, wantsMedia(one, other) else { return }
        switch members[one]?.pairs[other] {
        case .waiting, .connected: return
        case .idle, nil: wait(one, other, now: now, rules)
        }
    }

    private mutating func wait(_ one: ConnectionID, _ other: ConnectionID, now: Timestamp, _ rules: Rules) {
        // A wait of nothing would come due again and again at one instant.
        let until = now + max(rules.relayedFallback, .milliseconds(1))
        setPair(one, other, .waiting(until: until))
        waits.append(Wait(one: one, other: other, until: until))
    }

    /// Ends it when neither wants anything of the other any more.
    mutating func endWait(_ one: ConnectionID, _ other: ConnectionID) {
        guard case .waiting? = members[one]?.pairs[other], !wantsMedia(one, other) else { return }
        setPair(one, other, .idle)
    }

    /// Whose line is back gets all the time again: without it nobody could negotiate or say that it works.
    mutating func renewWaits(of client: ConnectionID, now: Timestamp, _ rules: Rules) {
        let pairs = members[client]?.pairs ?? [:]
        for other in pairs.keys.sorted() {
            if case .waiting? = pairs[other] { wait(client, other, now: now, rules) }
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
    mutating func connected(_ verb: PairConnected, by client: ConnectionID) throws(WireError) {
        guard members[verb.connection] != nil else {
            throw WireError(.notFound, "That connection is not in this session any more.")
        }
        guard verb.connected, members[client]?.pairs[verb.connection] != nil else { return }
        setPair(client, verb.connection, .connected)
    }

    mutating func checkWaits(now: Timestamp, into effects: inout [Effect]) {
        while let wait = waits.first, wait.until <= now {
            waits.removeFirst()
            guard let one = members[wait.one], let other = members[wait.other] else { continue }
            guard one.pairs[wait.other] == .waiting(until: wait.until), !one.isDropped, !other.isDropped else {
                continue
            }
            return fallBack(into: &effects)
        }
    }

    /// Once, and for the whole session: two ways for media in one session are more than anybody could explain.
    private mutating func fallBack(into effects: inout [Effect]) {
        mediaMode = .routed
        hasFallenBack = true
        waits = []
        for client in order { members[client]?.pairs = [:] }
        for stream in order.flatMap({ members[$0]?.streams ?? [] }) {
            if let published = streams[stream] { route(published, into: &effects) }
        }
        broadcast(.mediaModeChanged(MediaModeChanged(session: id, mediaMode: mediaMode)), into: &effects)
    }

    // MARK: What the media plane tells

    func videoPaused(
        _ stream: StreamID, _ subscriber: ConnectionID, _ isPaused: Bool, _ reason: PauseReason,
        into effects: inout [Effect]
    ) {
        guard isRouted, streams[stream]?.subscribers[subscriber] != nil else { return }
        let event = SubscriptionChanged(session: id, stream: stream, videoPaused: isPaused, reason: reason)
        effects.send(.subscriptionChanged(event), to: subscriber)
    }

    func layersWanted(
        _ stream: StreamID, _ publisher: ConnectionID, _ rids: [String], into effects: inout [Effect]
    ) {
        guard isRouted, streams[stream]?.stream.connection == publisher else { return }
        let event = LayersWanted(session: id, stream: stream, rids: rids)
        effects.send(.layersWanted(event), to: publisher)
    }

    func speaking(_ stream: StreamID?, into effects: inout [Effect]) {
        guard isRouted, stream.map({ streams[$0] != nil }) ?? true else { return }
        broadcast(.speaking(Speaking(session: id, stream: stream)), into: &effects)
    }
}
