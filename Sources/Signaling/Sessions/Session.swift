import Cluster
import DequeModule
import Wire

/// A session, in which connections publish streams, subscribe to streams, and send each other signals.
///
/// Owns the members and their streams. A session does not verify tokens (the client's state machine does), does not carry
/// media, and does not know how its members were matched.
/// Invariants: each member is notified of every other member and stream exactly once, on a page of the roster or by an event. No
/// member joined with the token of a match that has ended.
public struct Session: Machine, Equatable, Sendable {
    /// A connection in the session.
    struct Member: Equatable, Sendable {
        /// The number of the member's join, counted per session. Members who joined later have higher numbers.
        var number: UInt64
        var connection: ConnectionInfo
        /// The encoded size of `connection`.
        var size: Int
        var identity: IdentityID
        var rights: SessionRights
        var match: MatchID?
        var token: Token
        /// The layout classes that the member's streams have at first.
        var layoutClasses: [String] = []
        var isDropped = false
        /// Whether the others were notified that this member has dropped.
        var isDropAnnounced = false
        var streams: [StreamID] = []
        /// How many streams this member has published so far. The first `Rules.streamsPerConnection` of them are not
        /// charged. A member whose join was charged, because it followed a departure, starts at that number, so that
        /// all of its streams are charged.
        var publications = 0
        /// Whether the member accepts to be recorded; nil while it has not answered.
        var acceptsRecording: Bool?
        /// Whether the member accepts to be broadcast; nil while it has not answered.
        var acceptsBroadcast: Bool?
        /// Streams that this member subscribes to.
        var subscriptions: Set<StreamID> = []
        /// The state of relayed media between this member and each member to which it has subscribed, or that has
        /// subscribed to it.
        var pairs: [ConnectionID: Pair] = [:]
    }

    /// The token with which a member joined.
    struct Token: Equatable, Sendable {
        var fingerprint: [UInt8]
        var expiresAt: Timestamp
    }

    /// A stream that a member publishes.
    struct Published: Equatable, Sendable {
        var stream: StreamInfo {
            didSet { size = stream.encodedSize }
        }
        /// The encoded size of `stream`.
        private(set) var size: Int
        /// The layout classes, for composed archives and broadcasts.
        var layoutClasses: [String] = []
        /// The transceivers that carry the stream; empty in a relayed session.
        var mids: MediaMids
        /// Maps each subscriber to its subscription.
        var subscribers: [ConnectionID: SessionVerb.Subscribe] = [:]
        /// Whether the stream has had video. If so, its video may be turned off and on again even when the bandwidth
        /// limit is reached.
        var hasHadVideo: Bool

        init(_ stream: StreamInfo, mids: MediaMids) {
            (self.stream, self.mids, size) = (stream, mids, stream.encodedSize)
            hasHadVideo = stream.hasVideo
        }
    }

    /// A match, a call, a legacy client or a person in a room, to which tokens for this session are bound. When it
    /// ends, these tokens become invalid.
    struct Binding: Equatable, Sendable {
        /// The maximum number of members that may join with these tokens. It is limited because a person could share
        /// their token.
        var places: Int
        /// The call to notify of each join; nil if this is not a call.
        var call: CallID?
        /// The fingerprints of the tokens of removed members. The binding ends before these tokens could be used again.
        var revoked: Set<[UInt8]> = []
        /// The rights of a person in a room, whose role takes precedence over the token's; nil outside rooms.
        var rights: RoomRights?
    }

    let id: SessionID
    /// The API key of the session's project.
    let apiKey: String
    /// The media mode: at first the mode in the session id, and `routed` after a fallback.
    var mediaMode = MediaMode.relayed
    var hasFallenBack = false
    var isRelayedOnly = false
    /// Pairs of members whose media must connect, in the order of their deadlines. Some entries may be outdated. The list
    /// cannot grow without limit, because requests and reconnects, which add the entries, have budgets, and entries are removed
    /// after `Rules.relayedFallback`.
    var waits: Deque<Wait> = []
    /// The members in the order of joining, so that notifications are sent in a deterministic order.
    var order: [ConnectionID] = []
    var members: [ConnectionID: Member] = [:]
    /// The number of members on each other node of the cluster. The media planes of these nodes know all streams.
    var distant: [NodeTag: Int] = [:]
    var lastNumber: UInt64 = 0
    /// For each member who has not been notified of all others yet, the highest number of a member that it was
    /// notified of. The members with higher numbers follow in pages.
    var introduced: [ConnectionID: UInt64] = [:]
    var streams: [StreamID: Published] = [:]
    /// The budget for messages to all members; nil until it is first used.
    var traffic: Budget?
    /// The budget for joins that follow departures; nil until it is first used.
    var arrivals: Budget?
    /// The largest number of members that the session recently had.
    var recentSize = RecentSize()
    /// Streams whose latest properties are not announced yet because the budget was exhausted, and when to announce
    /// them.
    var unannounced: [StreamID] = []
    var announceAt: Timestamp?
    /// Whether a moderator has muted everyone, including future publishers (OpenTok's `forceMuteAll`).
    var isMuted = false
    /// Whether only hosts and cohosts may share screens in this room.
    var hasScreensOnlyOfHosts = false
    /// Whether the session or the server has reached its bandwidth limit on this node. The media plane repeats `full`
    /// while the limit is reached.
    private var isFullHere = false
    /// The other nodes on which the session or the server has reached its limit. Contains only nodes with members: other nodes do not
    /// report that the limit is no longer reached.
    var fullNodes: Set<NodeTag> = []
    /// The archives into which the session is recorded, oldest first.
    var archives: [RunningArchive] = []
    /// The broadcasts of the session, oldest first.
    var broadcasts: [RunningBroadcast] = []
    /// How the session is always recorded; nil if it is recorded only on request.
    var automatic: AutomaticArchive?
    /// When the mute of a session without members ends; nil while there are members, or if there is no mute.
    var muteUntil: Timestamp?
    var bindings: [MatchID: Binding] = [:]
    /// The id that ties a legacy client's token to its connection, while this is that client's home session; otherwise nil.
    private(set) var home: MatchID?
    /// The latest matches in which others could join this home session.
    private(set) var endedMatches = Client.RecentlyEnded()
    var early = EarlyJoins()
    /// The match or call whose chat lines are kept in case of a report; nil if there is none.
    private var match: MatchID?
    private var lines: [ChatLine] = []
    /// The people who may report each other from other nodes. Kept as long as the chat lines; nil if both people are on this node.
    private var reporters: SpanningReporters?
    /// The samples of the cameras in this match, for as long as the chat lines.
    private var samples = SessionSamples()
    /// The tokens of removed members, which cannot be used again: maps each token's fingerprint to its expiry time.
    /// Entries are kept until the tokens expire. They are stored, so they survive a restart. `context` counts them, up to
    /// `Rules.revocationsPerProject`. Tokens that are bound to a match are in its `Binding` instead.
    var revoked: [[UInt8]: Timestamp] = [:]
    /// When to check whether revoked tokens have expired; nil if there are none.
    var revokedCheckAt: Timestamp?
    /// When to delete the chat lines of a match that has ended; nil if there are none to delete. They are kept for a
    /// while in case of a report.
    private var transcriptUntil: Timestamp?

    init(id: SessionID) { (self.id, apiKey) = (id, Project.apiKey(in: id) ?? "") }

    static func make(_ id: SessionID, for event: SessionEvent, _ context: inout Context) -> Session? {
        switch event {
        case .join, .matchOpened, .homeOpened, .room(.place): Session(id: id)
        case .moderated: Project.apiKey(in: id).flatMap { context.projects[$0] } == nil ? nil : Session(id: id)
        default: nil
        }
    }

    static func orphan(_ event: SessionEvent, _ id: SessionID, _ context: inout Context) {
        switch event {
        case .report(let report, let client, let re):
            // The chat lines have already been deleted, so store the report without them.
            context.persist(.report(report))
            context.ok(Request(client, re))
        case .verb(let client, let re, _):
            context.fail(WireError(.notJoined, "Join the session first (session.join)."), Request(client, re))
        case .projectDeleted, .placeLost: return
        case .operated(.archive, let socket): context.answer(socket, .refused(.archiveNotRunning))
        case .operated(.broadcast, let socket): context.answer(socket, .refused(.broadcastNotRunning))
        case .operated(_, let socket): context.answer(socket, .refused(.sessionNotActive))
        // The session's project was deleted, or cannot be read. In the second case, the server sends the event again once
        // the project has been repaired.
        case .moderated, .join, .matchOpened, .matchSpans, .homeOpened, .dropped, .returned, .gone, .matchClosed,
            .homeClosed, .room, .rosterAcknowledged, .lagging, .subscriptionChanged, .streamQuality, .layersWanted,
            .full, .fullElsewhere, .speaking, .archiveStopped, .broadcastStopped, .sampled, .judged:
            return
        }
    }

    /// Whether this node or another node with members has reached its bandwidth limit.
    var isFull: Bool { isFullHere || !fullNodes.isEmpty }

    /// True if no state is left. A later join creates the session again from its id.
    var isOver: Bool {
        members.isEmpty && bindings.isEmpty && transcriptUntil == nil && revoked.isEmpty && muteUntil == nil
            && archives.isEmpty && broadcasts.isEmpty
    }

    var nextTimeout: Timestamp? {
        return [
            transcriptUntil, revokedCheckAt, muteUntil, waits.first?.until, announceAt, automatic?.retryAt,
            early.nextTimeout,
        ].compactMap { $0 }.min()
    }

    mutating func handleTimeout(_ context: inout Context) {
        checkWaits(&context)
        let late = early.takeDue(now: context.now)
        refuse(late, &context)
        announceChanges(&context)
        if let at = automatic?.retryAt, at <= context.now { recordAutomatically(&context) }
        if let at = revokedCheckAt, at <= context.now { forgetExpiredTokens(&context) }
        if let until = muteUntil, until <= context.now { endMute(&context) }
        guard let until = transcriptUntil, until <= context.now else { return }
        transcriptUntil = nil
        (lines, samples, reporters) = ([], SessionSamples(), nil)
    }

    /// Removes all members, and forgets revoked tokens and the mute without changing what is stored.
    private mutating func abandon(_ reason: GoneReason, _ context: inout Context) {
        let everyone = order
        for client in everyone { context.tell(.client(client, .leftSession(id, reason))) }
        remove(everyone, reason, &context)
        forward(.ended, &context)
        setRevoked([:], &context)
        (isMuted, muteUntil) = (false, nil)
    }

    mutating func handle(_ event: SessionEvent, _ context: inout Context) {
        switch event {
        case .join(let client, let identity, let grant, let re):
            join(Request(client, re), identity, grant, &context)
        case .verb(let client, let re, let message):
            guard let member = members[client] else {
                return context.fail(
                    WireError(.notJoined, "Join the session first (session.join)."), Request(client, re))
            }
            perform(message, by: member, re: re, &context)
        case .dropped(let client): setDropped(true, client, &context)
        case .returned(let client):
            setDropped(false, client, &context)
            renewWaits(of: client, context)
        case .gone(let client, let reason):
            early.remove(client)
            remove(client, reason, &context)
        case .rosterAcknowledged(let client): rosterAcknowledged(client, &context)
        case .lagging(let client, let other): lagging(client, behind: other, &context)
        case .matchOpened(let match, let places, let call):
            bindings[match] = Binding(places: places, call: call)
            joinEarly(match, &context)
            // If a match of a legacy client begins late, the client is in another match already, and leaves the late one immediately. So the
            // session keeps the lines of the current match.
            guard self.match == nil else { return }
            self.match = match
            (lines, samples, reporters) = ([], SessionSamples(), nil)
        case .matchSpans(let match, let people):
            if match == self.match { reporters = SpanningReporters(match: match, people: people) }
        case .matchClosed(let match):
            if self.match == match {
                self.match = nil
                transcriptUntil = context.now + context.rules.reportWindow
            }
            close(match, &context)
        case .homeOpened(let home):
            bindings[home] = Binding(places: 1)
            self.home = home
        case .homeClosed(let home):
            self.home = nil
            let unmatched = early.takeAll()
            refuse(unmatched, &context)
            close(home, &context)
        case .room(let event): handle(event, &context)
        case .operated(let operation, let socket): perform(operation, socket, &context)
        // Storage has deleted the mute with the project.
        case .projectDeleted: abandon(.forceDisconnected, &context)
        // The other node has the stored tokens and the mute. Members join again by themselves, and are redirected.
        case .placeLost: abandon(.networkDisconnected, &context)
        case .moderated(let moderation):
            setRevoked(moderation.revoked, &context)
            forgetExpiredTokens(&context)
            isMuted = moderation.isMuted
            muteUntil = isMuted ? context.now + context.rules.muteGrace : nil
        case .report(var report, let client, let re):
            // The report is more important than its evidence, so it is stored without it if space is short.
            report.lines = context.permit == .all ? lines : []
            report.sample = context.permit == .all ? samples[report.against] : nil
            context.persist(.report(report))
            context.ok(Request(client, re))
        case .sampled(let match, let person, let jpeg):
            if match == self.match { samples.keep(jpeg, of: person, at: context.wallNow) }
        case .judged(let match, let person, let verdict):
            if match == self.match { samples.note(verdict, about: person) }
        case .subscriptionChanged(let news, let subscriber): subscriptionChanged(news, to: subscriber, &context)
        case .streamQuality(let quality): streamQuality(quality, &context)
        case .layersWanted(let wanted, let publisher): layersWanted(wanted, publisher, &context)
        case .full(let isFull): isFullHere = isFull
        case .fullElsewhere(let isFull, let node): setFull(isFull, on: node)
        case .speaking(let stream): speaking(stream, &context)
        case .archiveStopped(let archive, let reason): archiveStopped(archive, reason, &context)
        case .broadcastStopped(let broadcast): broadcastStopped(broadcast, &context)
        }
    }

    /// Whether a person on another node may send this report; nil if the chat lines belong to another match.
    func permits(_ report: Report, from node: NodeTag) -> Bool? {
        reporters?.match == report.match ? reporters?.permits(report, from: node) : nil
    }

    // MARK: Leaving

    private mutating func endMute(_ context: inout Context) {
        muteUntil = nil
        setMuted(false, by: .server, &context)
    }

    mutating func remove(_ client: ConnectionID, _ reason: GoneReason, _ context: inout Context) {
        remove([client], reason, &context)
    }

    /// Removes several members. All are removed before anyone is notified, so that they are not notified of each other's
    /// departure.
    mutating func remove(_ clients: [ConnectionID], _ reason: GoneReason, _ context: inout Context) {
        let gone = clients.compactMap { members.removeValue(forKey: $0) }
        guard !gone.isEmpty else { return }
        recentSize.note(order.count, for: context.rules.sessionSizeMemory, now: context.now)
        // Forget the size after the last member has left: the session is then like a new one, as after a restart.
        if members.isEmpty { recentSize = RecentSize() }
        order.removeAll { members.index(forKey: $0) == nil }
        for member in gone { introduced[member.connection.id] = nil }
        for member in gone {
            for stream in member.streams {
                forget(stream, of: member.connection, reason, &context)
                let event = SessionNotice.StreamDestroyed(session: id, stream: stream, reason: reason)
                broadcast(.session(.streamDestroyed(event)), about: member.number, &context)
            }
        }
        for member in gone {
            unsubscribe(member, &context)
            for other in member.pairs.keys { members[other]?.pairs[member.connection.id] = nil }
        }
        for member in gone { leaveNode(of: member.connection.id, &context) }
        for member in gone { forgetConsent(of: member, &context) }
        if members.isEmpty, isMuted { muteUntil = context.now + context.rules.muteGrace }
        if members.isEmpty { automatic = nil }
        for member in gone {
            let event = SessionNotice.ConnectionDestroyed(session: id, connection: member.connection.id, reason: reason)
            broadcast(.session(.connectionDestroyed(event)), about: member.number, &context)
            report(.connectionDestroyed(member.connection, reason), &context)
        }
        context.countConnections(-gone.count, of: apiKey)
        forward(.connections(members.count), &context)
        if members.isEmpty { report(.sessionDestroyed, &context) }
    }

    /// Removes the subscriptions of a member who left. Visits only the streams to which the member subscribed, because a
    /// session may have thousands of streams.
    private mutating func unsubscribe(_ gone: Member, _ context: inout Context) {
        let client = gone.connection.id
        for stream in gone.subscriptions.sorted() {
            guard let former = streams[stream]?.subscribers.removeValue(forKey: client),
                let publisher = streams[stream]?.stream.connection
            else { continue }
            stopRouting(former, by: client, &context)
            let event = SessionNotice.Unsubscribed(session: id, stream: stream, connection: client)
            context.send(.session(.unsubscribed(event)), to: publisher)
        }
    }

    /// Removes a stream of this connection from the session and from its subscribers.
    mutating func forget(
        _ stream: StreamID, of connection: ConnectionInfo, _ reason: GoneReason, _ context: inout Context
    ) {
        guard let published = streams.removeValue(forKey: stream) else { return }
        report(.streamDestroyed(published.stream, of: connection, reason), &context)
        if isRouted { context.media(.unpublish(stream, by: published.stream.connection), andOn: otherNodes) }
        forward(.unpublished(stream), &context)
        for subscriber in published.subscribers.keys {
            members[subscriber]?.subscriptions.remove(stream)
            endWait(published.stream.connection, subscriber)
        }
    }

    /// Ends a match, call, legacy client or place in a room: its tokens become invalid, and the members who joined
    /// with them are removed.
    ///
    /// - Parameter reason: the reason sent to the other members.
    mutating func close(_ match: MatchID, as reason: GoneReason = .forceDisconnected, _ context: inout Context) {
        guard bindings.removeValue(forKey: match) != nil else { return }
        if home != nil { endedMatches.remember(match) }
        let holders = order.filter { members[$0]?.match == match }
        for client in holders { context.tell(.client(client, .leftSession(id, .matchEnded))) }
        // Members who joined with other tokens stay, and must be notified of the departures.
        remove(holders, reason, &context)
    }

    // MARK: Notifying

    /// Reports an event to the application's server, if the project has a webhook.
    func report(_ kind: WebhookEvent.Kind, _ context: inout Context) {
        guard context.projects[apiKey]?.hasWebhook == true else { return }
        context.persist(.webhook(WebhookEvent(project: apiKey, session: id, at: context.wallNow, kind)))
    }

    /// Sends a message to all members.
    func broadcast(_ message: ServerMessage, _ context: inout Context) { broadcast(message, about: 0, &context) }

    /// Keeps a signal if it is a line of a match's text chat. The last `Rules.reportLines` lines are kept in memory,
    /// in case of a report.
    mutating func keepLine(_ signal: SessionVerb.Signal, from identity: IdentityID, _ context: Context) {
        guard match != nil, signal.type == "chat", let text = signal.data, context.rules.reportLines > 0 else { return }
        if lines.count >= context.rules.reportLines { lines.removeFirst() }
        // Limit the number of bytes rather than characters, because a single character can consist of thousands of combining
        // marks.
        let kept = String(decoding: text.utf8.prefix(1000), as: UTF8.self)
        lines.append(ChatLine(from: identity, text: kept, at: context.wallNow))
    }
}
