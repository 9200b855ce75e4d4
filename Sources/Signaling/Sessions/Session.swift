import DequeModule
import Wire

public enum SessionEvent: Equatable, Sendable {
    case join(ConnectionID, IdentityID, SessionGrant, re: UInt64)
    case verb(ConnectionID, re: UInt64, SessionVerb)
    case dropped(ConnectionID)
    case returned(ConnectionID)
    case gone(ConnectionID, GoneReason)
    /// This session serves a match from now on; tokens bound to it let in so many. A call is told who has come in.
    case matchOpened(MatchID, places: Int, of: CallID? = nil)
    /// The match is over: its holders are put out and its tokens are dead.
    case matchClosed(MatchID)
    /// A complaint, to be stored with the chat that led to it.
    case report(Report, by: ConnectionID, re: UInt64)
    // From the media plane.
    case videoPaused(StreamID, ConnectionID, Bool, PauseReason)
    case layersWanted(StreamID, ConnectionID, [String])
    case speaking(StreamID?)
}

/// A place where connections publish and subscribe to streams and send each other signals.
///
/// It owns who is here and what they publish; it does not verify tokens (the client's machine did), carries no media, and
/// knows nothing of who was paired with whom. Invariant: everybody in the session has been told of everybody else and of
/// every stream, exactly once, and nobody is here by the token of a match that has ended.
public struct Session: Machine, Equatable, Sendable {
    struct Member: Equatable, Sendable {
        var connection: ConnectionInfo
        var identity: IdentityID
        var capabilities: Capabilities
        var match: MatchID?
        var token: Token
        var isDropped = false
        var streams: [StreamID] = []
        /// Streams of others that this member subscribes to.
        var subscriptions: Set<StreamID> = []
        /// Relayed media with those whom this member ever subscribed to, or who ever subscribed to it.
        var pairs: [ConnectionID: Pair] = [:]
    }

    /// By which somebody came in.
    struct Token: Equatable, Sendable {
        var fingerprint: [UInt8]
        var expiresAt: Timestamp
    }

    struct Published: Equatable, Sendable {
        var stream: StreamInfo
        /// Which transceivers carry it; none in a relayed session.
        var mids = MediaMids()
        /// Who subscribes, and to what.
        var subscribers: [ConnectionID: SessionVerb.Subscribe] = [:]
    }

    let id: SessionID
    /// What the id says, until relayed media does not get through.
    var mediaMode = MediaMode.relayed
    var hasFallenBack = false
    private(set) var isRelayedOnly = false
    /// For relayed pairs to connect, the first to end first; some are over already. Each was caused by a verb or a
    /// return, both of which have budgets, and is gone after `Rules.relayedFallback`.
    var waits: Deque<Wait> = []
    /// In the order of joining, so that announcements are the same on every run.
    var order: [ConnectionID] = []
    var members: [ConnectionID: Member] = [:]
    var streams: [StreamID: Published] = [:]
    /// Future publishers are muted too (OpenTok's `forceMuteAll`).
    var isMuted = false
    private var match: MatchID?
    private var call: CallID?
    /// For holders of the match's tokens.
    private var places = 0
    private var lines: [ChatLine] = []
    /// Whose holders were put out; until they expire, and only so many. Forgotten in a restart.
    private var revoked: [Token] = []
    private static let mostRevoked = 256
    /// Until when the chat of a closed match is kept for a report.
    private var transcriptUntil: Timestamp?

    init(id: SessionID) { self.id = id }

    static func make(_ id: SessionID, for event: SessionEvent, _ turn: inout Turn) -> Session? {
        switch event {
        case .join, .matchOpened: Session(id: id)
        default: nil
        }
    }

    static func orphan(_ event: SessionEvent, _ id: SessionID, _ turn: inout Turn) {
        switch event {
        case .report(let report, let client, let re):
            // Its chat is forgotten, the complaint is not.
            turn.persist(.report(report))
            turn.ok(Request(client, re))
        case .verb(let client, let re, _):
            turn.fail(WireError(.notJoined, "Join this session first."), Request(client, re))
        case .join, .matchOpened, .dropped, .returned, .gone, .matchClosed, .videoPaused, .layersWanted, .speaking:
            return
        }
    }

    /// Nothing to remember: the id alone is the session again when somebody joins.
    var isOver: Bool { members.isEmpty && match == nil && transcriptUntil == nil && revoked.isEmpty }

    var nextTimeout: Timestamp? {
        let expiry = revoked.lazy.map(\.expiresAt).min()
        return [transcriptUntil, expiry, waits.first?.until].compactMap { $0 }.min()
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        checkWaits(&turn)
        revoked.removeAll { $0.expiresAt <= turn.now }
        guard let until = transcriptUntil, until <= turn.now else { return }
        transcriptUntil = nil
        lines = []
    }

    mutating func handle(_ event: SessionEvent, _ turn: inout Turn) {
        switch event {
        case .join(let client, let identity, let grant, let re):
            join(Request(client, re), identity, grant, &turn)
        case .verb(let client, let re, let message):
            guard let member = members[client] else {
                return turn.fail(WireError(.notJoined, "Join this session first."), Request(client, re))
            }
            perform(message, by: member, re: re, &turn)
        case .dropped(let client): setDropped(true, client, &turn)
        case .returned(let client):
            setDropped(false, client, &turn)
            renewWaits(of: client, turn)
        case .gone(let client, let reason): remove(client, reason, &turn)
        case .matchOpened(let match, let places, let call):
            (self.match, self.call) = (match, call)
            self.places = places
            lines = []
        case .matchClosed(let match): close(match, until: turn.now + turn.rules.reportWindow, &turn)
        case .report(var report, let client, let re):
            report.lines = lines
            turn.persist(.report(report))
            turn.ok(Request(client, re))
        case .videoPaused(let stream, let subscriber, let isPaused, let reason):
            let news = SessionNotice.SubscriptionChanged(
                session: id, stream: stream, videoPaused: isPaused, reason: reason)
            subscriptionChanged(news, to: subscriber, &turn)
        case .layersWanted(let stream, let publisher, let rids):
            layersWanted(stream, publisher, rids, &turn)
        case .speaking(let stream): speaking(stream, &turn)
        }
    }

    // MARK: Coming and going

    /// Whether this token lets its holder in now. Says why not.
    private func admits(_ grant: SessionGrant, _ request: Request, _ turn: inout Turn) -> Bool {
        let (client, re) = (request.client, request.re)
        if let match = grant.match, match != self.match {
            let error = WireError(.tokenMatchEnded, "The match this token was given for is over.")
            turn.tell(.client(client, .joinRefused(re: re, error, match: match)))
            return false
        }
        guard !revoked.contains(where: { $0.fingerprint == grant.fingerprint }) else {
            let error = WireError(.tokenRevoked, "The holder of this token was put out of the session.")
            turn.tell(.client(client, .joinRefused(re: re, error, match: nil)))
            return false
        }
        guard members[client] == nil else {
            turn.fail(WireError(.alreadyJoined, "This connection is in the session already."), request)
            return false
        }
        // A match is of two, however many hold its tokens: one of them may have been passed on.
        if grant.match != nil, members.values.count(where: { $0.match == grant.match }) >= places {
            let error = WireError(.sessionFull, "The places of this match are taken.")
            turn.fail(error, request)
            return false
        }
        guard members.count < turn.rules.connectionsPerSession else {
            let error = WireError(
                .sessionFull, "This session is full; try again when somebody has left.", retryable: true)
            turn.fail(error, request)
            return false
        }
        return true
    }

    private mutating func join(
        _ request: Request, _ identity: IdentityID, _ grant: SessionGrant, _ turn: inout Turn
    ) {
        guard admits(grant, request, &turn) else { return }
        let client = request.client
        mediaMode = hasFallenBack ? .routed : grant.mediaMode
        isRelayedOnly = grant.isRelayedOnly
        let connection = ConnectionInfo(id: client, createdAt: turn.now, data: grant.data)
        var joined = SessionNotice.Joined()
        joined.re = request.re
        joined.session = id
        joined.connection = connection
        joined.mediaMode = mediaMode
        joined.capabilities = Capabilities(grant.role)
        joined.connections = order.compactMap { members[$0]?.connection }
        joined.streams = order.flatMap { members[$0]?.streams ?? [] }.compactMap { streams[$0]?.stream }
        joined.muted = isMuted
        turn.send(.session(.joined(joined)), to: client)
        broadcast(
            .session(.connectionCreated(.init(session: id, connection: connection))), &turn)
        order.append(client)
        members[client] = Member(
            connection: connection, identity: identity, capabilities: Capabilities(grant.role), match: grant.match,
            token: Token(fingerprint: grant.fingerprint, expiresAt: grant.expiresAt)
        )
        if grant.match != nil, let call { turn.tell(.call(call, .joined(identity))) }
    }

    /// A member's token lets nobody in any more.
    mutating func revoke(_ member: Member) {
        revoked.append(member.token)
        if revoked.count > Self.mostRevoked { revoked.removeFirst() }
    }

    private mutating func setDropped(_ isDropped: Bool, _ client: ConnectionID, _ turn: inout Turn) {
        guard let member = members[client], member.isDropped != isDropped else { return }
        members[client]?.isDropped = isDropped
        let event = SessionNotice.ConnectionReference(session: id, connection: client)
        broadcast(
            isDropped ? .session(.connectionReconnecting(event)) : .session(.connectionReconnected(event)),
            except: client, &turn)
    }

    mutating func remove(_ client: ConnectionID, _ reason: GoneReason, _ turn: inout Turn) {
        remove([client], reason, &turn)
    }

    /// Several at once are all out before anybody is told: they need not hear of each other's going one by one.
    private mutating func remove(_ clients: [ConnectionID], _ reason: GoneReason, _ turn: inout Turn) {
        let gone = clients.compactMap { members.removeValue(forKey: $0) }
        guard !gone.isEmpty else { return }
        order.removeAll { members[$0] == nil }
        for stream in gone.flatMap(\.streams) {
            forget(stream, &turn)
            broadcast(
                .session(.streamDestroyed(.init(session: id, stream: stream, reason: reason))),
                &turn)
        }
        for member in gone {
            unsubscribe(member, &turn)
            for other in member.pairs.keys { members[other]?.pairs[member.connection.id] = nil }
        }
        for member in gone {
            let event = SessionNotice.ConnectionDestroyed(session: id, connection: member.connection.id, reason: reason)
            broadcast(.session(.connectionDestroyed(event)), &turn)
        }
    }

    /// Looks only at what the member watched: a session may have thousands of streams.
    private mutating func unsubscribe(_ gone: Member, _ turn: inout Turn) {
        let client = gone.connection.id
        for stream in gone.subscriptions.sorted() {
            guard let former = streams[stream]?.subscribers.removeValue(forKey: client),
                let publisher = streams[stream]?.stream.connection
            else { continue }
            stopRouting(former, by: client, &turn)
            let event = SessionNotice.Unsubscribed(session: id, stream: stream, connection: client)
            turn.send(.session(.unsubscribed(event)), to: publisher)
        }
    }

    /// Takes a stream away from whoever watched it.
    mutating func forget(_ stream: StreamID, _ turn: inout Turn) {
        guard let published = streams.removeValue(forKey: stream) else { return }
        if isRouted { turn.media(.unpublish(stream)) }
        for subscriber in published.subscribers.keys {
            members[subscriber]?.subscriptions.remove(stream)
            endWait(published.stream.connection, subscriber)
        }
    }

    private mutating func close(_ match: MatchID, until: Timestamp, _ turn: inout Turn) {
        guard self.match == match else { return }
        (self.match, call) = (nil, nil)
        transcriptUntil = until
        let holders = order.filter { members[$0]?.match == match }
        for client in holders { turn.tell(.client(client, .leftSession(id, .matchEnded))) }
        // Whoever is here with a token of his own stays, and must not be left with ghosts.
        remove(holders, .forceDisconnected, &turn)
    }

    // MARK: Telling

    func broadcast(_ message: ServerMessage, except excluded: ConnectionID? = nil, _ turn: inout Turn) {
        for client in order where client != excluded { turn.send(message, to: client) }
    }

    /// Keeps the last lines of a match's chat, in memory, for a report.
    mutating func keepLine(_ signal: SessionVerb.Signal, from identity: IdentityID, _ turn: Turn) {
        guard match != nil, signal.type == "chat", let text = signal.data, turn.rules.reportLines > 0 else { return }
        if lines.count >= turn.rules.reportLines { lines.removeFirst() }
        // Bytes, not characters: one character can be made of thousands of marks.
        let kept = String(decoding: text.utf8.prefix(1000), as: UTF8.self)
        lines.append(ChatLine(from: identity, text: kept, at: turn.now))
    }
}
