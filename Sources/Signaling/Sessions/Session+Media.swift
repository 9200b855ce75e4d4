import Cluster
import DequeModule
import Wire

/// Controls the media plane for routed sessions, and switches relayed sessions to routed media.
extension Session {
    /// The state of the relayed media between two members. It is stored with both members.
    enum Pair: Equatable, Sendable {
        /// At least one of the members subscribes to the other. Media must connect before `until`.
        case waiting(until: Timestamp)
        /// Neither of the members subscribes to the other. Their peer connection may still exist.
        case idle
        /// Media has connected at least once. Clients handle later failures with ICE restarts.
        case connected
    }

    /// Two members whose media must connect before a deadline.
    struct Wait: Equatable, Sendable {
        var one: ConnectionID
        var other: ConnectionID
        var until: Timestamp
    }

    var isRouted: Bool { mediaMode == .routed }

    /// Throws if the session is routed but the server does not route media.
    func permitMedia(_ context: Context) throws(WireError) {
        guard !isRouted || context.rules.routesMedia else {
            throw WireError(.mediaUnavailable, "This server does not route media. Use a relayed session.")
        }
    }

    /// Throws if the request is for video and the session or the server has reached its bandwidth limit. Audio uses so
    /// little that it is always allowed.
    /// - Parameter refusals: the counter to increment before throwing.
    func permitBandwidth(
        video: Bool, counting refusals: WritableKeyPath<BandwidthRefusals, Int>, _ context: inout Context
    ) throws(WireError) {
        guard isFull, isRouted, video else { return }
        context.figures.refusals[keyPath: refusals] += 1
        throw WireError(
            .bandwidthExceeded,
            "The bandwidth limit of this session or server is reached. Try again later, or without video.",
            retryable: true, retryAfter: .seconds(10))
    }

    // MARK: Commands to the media plane

    /// In a routed session, asks the media plane to route a stream that is new or has moved to other transceivers.
    func route(_ published: Published, _ context: inout Context) {
        guard isRouted else { return }
        let isOnOtherNode = context.tag.flatMap { published.stream.connection.tag(unless: $0) } != nil
        context.media(publication(of: published, alwaysHeard: isOnOtherNode))
        for node in otherNodes { context.post(.media(publication(of: published)), to: node) }
    }

    private func publication(of published: Published, alwaysHeard: Bool = false) -> MediaCommand {
        let stream = published.stream
        return .publish(
            stream.id, id, by: stream.connection, published.mids, audio: stream.hasAudio, video: stream.hasVideo,
            alwaysHeard: alwaysHeard)
    }

    /// Asks the media plane to forward a stream to a subscriber. Stops forwarding it if the subscription has no
    /// transceivers, because the media plane ignores such a subscription.
    func route(
        _ verb: SessionVerb.Subscribe, by client: ConnectionID, former: SessionVerb.Subscribe?, _ context: inout Context
    ) {
        guard !verb.mids.isEmpty else { return stopRouting(former, by: client, &context) }
        context.media(
            .subscribe(
                verb.stream, id, by: client, verb.mids, audio: verb.audio, video: verb.video,
                preferring: verb.preference
            ), at: client
        )
    }

    func stopRouting(_ verb: SessionVerb.Subscribe?, by client: ConnectionID, _ context: inout Context) {
        guard let verb, !verb.mids.isEmpty else { return }
        context.media(.unsubscribe(verb.stream, by: client), at: client)
    }

    // MARK: Other nodes

    /// The other nodes with members, in a fixed order.
    var otherNodes: [NodeTag] {
        distant.isEmpty ? [] : distant.keys.sorted { $0.rawValue < $1.rawValue }
    }

    /// The streams in the order of their publishers.
    private var publishedStreams: [Published] {
        order.flatMap { members[$0]?.streams ?? [] }.compactMap { streams[$0] }
    }

    /// A member has joined. The media plane of its node must know all streams.
    mutating func enterNode(of client: ConnectionID, _ context: inout Context) {
        guard let own = context.tag, let tag = client.tag(unless: own) else { return }
        distant[tag, default: 0] += 1
        guard distant[tag] == 1, isRouted else { return }
        for published in publishedStreams { context.post(.media(publication(of: published)), to: tag) }
    }

    /// A member has left. If it was the last one on its node, the media plane there forgets the streams that are left.
    mutating func leaveNode(of client: ConnectionID, _ context: inout Context) {
        guard let own = context.tag, let tag = client.tag(unless: own), let count = distant[tag] else { return }
        distant[tag] = count > 1 ? count - 1 : nil
        guard count == 1 else { return }
        fullNodes.remove(tag)
        guard isRouted else { return }
        for published in publishedStreams {
            let stream = published.stream
            context.post(.media(.unpublish(stream.id, by: stream.connection)), to: tag)
        }
    }

    /// Updates a stream, and notifies the media plane and all members of what changed.
    mutating func change(_ stream: StreamInfo, mids: MediaMids = MediaMids(), _ context: inout Context) {
        guard let before = streams[stream.id] else { return }
        streams[stream.id]?.stream = stream
        if stream.hasVideo { streams[stream.id]?.hasHadVideo = true }
        if isRouted, !mids.isEmpty {
            streams[stream.id]?.mids.audio = mids.audio ?? before.mids.audio
            streams[stream.id]?.mids.video = mids.video ?? before.mids.video
            // Route the stream again even if the mids are unchanged, because the publisher may have a new peer
            // connection with the same mids.
            if let published = streams[stream.id] { route(published, &context) }
        } else if isRouted, (stream.hasAudio, stream.hasVideo) != (before.stream.hasAudio, before.stream.hasVideo) {
            context.media(
                .update(stream.id, by: stream.connection, audio: stream.hasAudio, video: stream.hasVideo),
                andOn: otherNodes)
        }
        guard stream != before.stream else { return }
        announceChange(of: stream, &context)
    }

    // MARK: Relayed to routed

    /// Starts the wait for media between two members when one of them first subscribes to the other, if the session
    /// may switch to routed media.
    mutating func beginWait(_ one: ConnectionID, _ other: ConnectionID, _ context: Context) {
        guard !isRouted, !isRelayedOnly, context.rules.routesMedia, wantsMedia(one, other) else { return }
        switch members[one]?.pairs[other] {
        case .waiting, .connected: return
        case .idle, nil: wait(one, other, context)
        }
    }

    private mutating func wait(_ one: ConnectionID, _ other: ConnectionID, _ context: Context) {
        // Wait at least a millisecond, because a wait of zero would be due again and again at the same time.
        let until = context.now + max(context.rules.relayedFallback, .milliseconds(1))
        setPair(one, other, .waiting(until: until))
        waits.append(Wait(one: one, other: other, until: until))
    }

    /// Ends the wait for media between two members if neither still subscribes to the other.
    mutating func endWait(_ one: ConnectionID, _ other: ConnectionID) {
        guard case .waiting? = members[one]?.pairs[other], !wantsMedia(one, other) else { return }
        setPair(one, other, .idle)
    }

    /// Restarts the waits for media of a member that reconnected, because it could not negotiate or report success while it was
    /// disconnected.
    mutating func renewWaits(of client: ConnectionID, _ context: Context) {
        let pairs = members[client]?.pairs ?? [:]
        for other in pairs.keys.sorted() {
            if case .waiting? = pairs[other] { wait(client, other, context) }
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

    /// Handles a member's report on whether media with another member works. A report of failure has no effect.
    mutating func connected(_ verb: SessionVerb.Connected, by client: ConnectionID) throws(WireError) {
        guard members[verb.connection] != nil else {
            throw WireError.noConnection
        }
        guard verb.connected, members[client]?.pairs[verb.connection] != nil else { return }
        setPair(client, verb.connection, .connected)
    }

    mutating func checkWaits(_ context: inout Context) {
        while let wait = waits.first, wait.until <= context.now {
            waits.removeFirst()
            guard let one = members[wait.one], let other = members[wait.other] else { continue }
            guard one.pairs[wait.other] == .waiting(until: wait.until), !one.isDropped, !other.isDropped else {
                continue
            }
            return fallBack(&context)
        }
    }

    /// Switches the whole session to routed media, permanently and for all members. A mix of relayed and routed media in one
    /// session would be too hard to explain.
    private mutating func fallBack(_ context: inout Context) {
        mediaMode = .routed
        hasFallenBack = true
        waits = []
        for client in order { members[client]?.pairs = [:] }
        for stream in order.flatMap({ members[$0]?.streams ?? [] }) {
            if let published = streams[stream] { route(published, &context) }
        }
        broadcast(.session(.mediaModeChanged(.init(session: id, mediaMode: mediaMode))), &context)
    }

    // MARK: Events from the media plane

    /// Notes whether the bandwidth limit of another node is reached.
    mutating func setFull(_ isFull: Bool, on node: NodeTag) {
        if isFull, distant[node] != nil { fullNodes.insert(node) } else { fullNodes.remove(node) }
    }

    func subscriptionChanged(
        _ news: SessionNotice.SubscriptionChanged, to subscriber: ConnectionID, _ context: inout Context
    ) {
        guard isRouted, streams[news.stream]?.subscribers[subscriber] != nil else { return }
        context.send(.session(.subscriptionChanged(news)), to: subscriber)
    }

    /// Reports to the publisher and the subscribers of a stream how well the server receives it.
    func streamQuality(_ quality: SessionNotice.StreamQuality, _ context: inout Context) {
        guard isRouted, let published = streams[quality.stream] else { return }
        context.send(.session(.streamQuality(quality)), to: published.stream.connection)
        for client in order where published.subscribers[client] != nil && client != published.stream.connection {
            context.send(.session(.streamQuality(quality)), to: client)
        }
    }

    func layersWanted(_ wanted: SessionNotice.LayersWanted, _ publisher: ConnectionID, _ context: inout Context) {
        guard isRouted, streams[wanted.stream]?.stream.connection == publisher else { return }
        context.send(.session(.layersWanted(wanted)), to: publisher)
    }

    func speaking(_ stream: StreamID?, _ context: inout Context) {
        guard isRouted, stream.map({ streams[$0] != nil }) ?? true else { return }
        let number = stream.flatMap { streams[$0] }.flatMap { publisherNumber($0.stream) }
        broadcast(.session(.speaking(.init(session: id, stream: stream))), about: number ?? 0, &context)
    }
}
