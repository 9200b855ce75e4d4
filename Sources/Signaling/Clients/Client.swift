import Wire

/// One client connection: its current socket (or the wait for a new one), message numbers, budgets, and joined sessions.
///
/// Owns the state of one device's connection. It does not know the other members of its sessions or the current roulette
/// partner. Invariant: messages passed to `deliver` reach the client exactly once and in order, or the client receives
/// `resume_failed`.
public struct Client: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    /// Legal transitions: `live` → `live` (resumed on another socket), `dropped`, `gone`; `dropped` → `live`, `gone`. `gone` is
    /// final.
    enum Presence: Equatable, Sendable {
        case live(SocketID)
        case dropped(until: Timestamp)
        case gone
    }

    let id: ConnectionID
    let identity: IdentityID
    /// The identity whose secret the client presented. Differs from `identity` on a linked device.
    let device: IdentityID
    private(set) var origin: Origin
    private(set) var presence: Presence
    var link: Link
    private var secret: String
    /// The resume secret before the current one. It is accepted until the first message on the new socket, because the
    /// `welcome` with the new secret can be lost.
    private var previousSecret: String?
    var sessions: [SessionID] = []
    /// The room that the client is in or waits for.
    var room: RoomSeat?
    private var roulette = Snapshot.Roulette()
    private var call: Snapshot.Call?
    /// Whether the media plane has received an offer from this client.
    private var usesMedia = false
    var crossings = Crossings()
    private var verbs: Budget
    private var negotiations: Budget
    private var malformed: Budget
    private var refusals: Budget
    private var messages: Budget
    private var joins: Budget
    var pages = RosterPages()

    var isOver: Bool { presence == .gone }
    var isOnLinkedDevice: Bool { device != identity }
    /// Nil while the client has dropped.
    var socket: SocketID? { if case .live(let socket) = presence { socket } else { nil } }

    /// Creates the client connection for a new client, or for one that could not resume.
    init(_ arrival: Arrival, id: ConnectionID, _ turn: inout Turn) {
        self.id = id
        identity = arrival.identity.id
        device = arrival.device
        origin = Origin(address: arrival.address, vouchedName: arrival.identity.name)
        presence = .live(arrival.socket)
        link = Link(bounds: turn.rules.replay)
        secret = ResumeSecret.make(for: id, using: &turn.random)
        verbs = Budget(turn.rules.verbs, now: turn.now)
        negotiations = Budget(turn.rules.negotiations, now: turn.now)
        malformed = Budget(Self.malformedRate(turn), now: turn.now)
        refusals = Budget(turn.rules.refusals, now: turn.now)
        messages = Budget(turn.rules.messages, now: turn.now)
        joins = Budget(turn.rules.joins, now: turn.now)
        var welcome = welcome(turn)
        welcome.identity = arrival.newIdentitySecret
        turn.transmit(arrival.socket, ServerMessage.welcome(welcome).encode())
        turn.tell(.person(identity, arrival.event(for: id)))
    }

    static func orphan(_ event: ClientEvent, _ id: ConnectionID, _ turn: inout Turn) {
        // The client disconnected while the answer to its join of a session or room was in transit.
        switch event {
        case .deliver(.session(.joined(let joined))):
            turn.tell(.session(joined.session, .gone(id, .clientDisconnected)))
        case .room(let seat?): turn.tell(.room(seat.name, .gone(id)))
        default: return
        }
    }

    private static func malformedRate(_ turn: Turn) -> Budget.Rate {
        let perMinute = Double(turn.rules.malformedPerMinute)
        return Budget.Rate(perSecond: perMinute / 60, burst: perMinute)
    }

    private func welcome(_ turn: Turn) -> Welcome {
        var welcome = Welcome()
        welcome.server = turn.version
        welcome.connection = id
        welcome.received = link.received
        welcome.resume = .init(secret: secret, grace: turn.rules.resumeGrace)
        welcome.ping = turn.rules.pingInterval
        welcome.ice = turn.ice.configuration(for: id, now: turn.wallNow)
        welcome.media = turn.rules.routesMedia ? Welcome.Media(roulette: turn.rules.matchMediaMode) : nil
        welcome.limits.message = turn.rules.messageSize
        welcome.limits.description = turn.rules.descriptionSize
        welcome.limits.interests = turn.rules.maxInterests
        welcome.limits.streamTimeout = turn.rules.streamTimeout
        welcome.push = turn.vapidKey.map { Welcome.Push(vapidKey: $0) }
        welcome.state = Snapshot(sessions: sessions, roulette: roulette, call: call)
        return welcome
    }

    var nextTimeout: Timestamp? {
        if case .dropped(let until) = presence { until } else { nil }
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        guard case .dropped(let until) = presence, until <= turn.now else { return }
        depart(.networkDisconnected, &turn)
    }

    mutating func handle(_ event: ClientEvent, _ turn: inout Turn) {
        switch event {
        case .message(let socket, let envelope):
            guard presence == .live(socket) else { return }
            if hasBudget(&turn) { receive(envelope, &turn) }
        case .unreadable(let socket, let message):
            guard presence == .live(socket) else { return }
            if hasBudget(&turn) { receive(message, &turn) }
        case .closed(let socket, let leaving):
            guard presence == .live(socket) else { return }
            if leaving {
                depart(.clientDisconnected, &turn)
            } else {
                drop(until: turn.now + turn.rules.resumeGrace, &turn)
            }
        case .asked, .perch, .perchSignal, .moved, .connected, .requested: return
        case .resume(let arrival): resume(arrival, &turn)
        case .deliver(let message): deliver(message, &turn)
        case .deliverBroadcast(let broadcast):
            if !withhold(broadcast.message, &turn) { send(&turn) { seq, ack in broadcast.encode(seq: seq, ack: ack) } }
        case .joinRefused(let re, let error, let match):
            refuseJoin(re: re, error, match: match, &turn)
        case .leftSession(let session, let reason, let moderator):
            forget(session)
            deliver(.session(.left(.init(session: session, reason: reason))), &turn)
            leaveRoom(of: session, by: moderator, &turn)
        case .roulette(let state):
            roulette = state
            if let match = state.match { crossings.remember(match) }
        case .call(let state):
            call = state
            if let state { crossings.remember(state.id.binding) }
        case .room(let seat): setRoom(seat)
        case .expel(let error, let code, let re):
            expel(error, code, re: re, &turn)
        }
    }

    // MARK: Sending

    private mutating func deliver(_ message: ServerMessage, _ turn: inout Turn) {
        guard presence != .gone, !isStale(message) else { return }
        send(&turn) { seq, ack in message.encode(seq: seq, ack: ack) }
        guard case .session(let notice) = message else { return }
        pages.sent(notice, as: link.sent)
        if case .joined(let joined) = notice, !sessions.contains(joined.session) { sessions.append(joined.session) }
    }

    private mutating func send(_ turn: inout Turn, _ encode: (UInt64, UInt64) -> [UInt8]) {
        guard presence != .gone else { return }
        let bytes = link.send(encode)
        if case .live(let socket) = presence { turn.transmit(socket, bytes) }
    }

    mutating func fail(_ error: WireError, re: UInt64?, _ turn: inout Turn) {
        deliver(.error(.init(error, re: re)), &turn)
    }

    /// Sends an unnumbered error, closes the socket and ends the client. The error also answers the request `re`, if set.
    mutating func expel(_ error: WireError, _ code: CloseCode, re: UInt64? = nil, _ turn: inout Turn) {
        if case .live(let socket) = presence {
            turn.transmit(socket, ServerMessage.error(.init(error, re: re)).encode())
            turn.close(socket, code, error.code.rawValue)
        }
        depart(.forceDisconnected, &turn)
    }

    // MARK: Connecting and disconnecting

    private mutating func drop(until: Timestamp, _ turn: inout Turn) {
        presence = .dropped(until: until)
        for session in sessions { turn.tell(.session(session, .dropped(id))) }
        if let room { turn.tell(.room(room.name, .away(id, true))) }
        turn.tell(.person(identity, .dropped(id)))
    }

    private mutating func depart(_ reason: GoneReason, _ turn: inout Turn) {
        guard presence != .gone else { return }
        presence = .gone
        // Notify the person before the sessions. The person then ends the match, which closes the match's session before that
        // session notices a missing member.
        turn.tell(.person(identity, .departed(id)))
        for session in sessions { turn.tell(.session(session, .gone(id, reason))) }
        // The room closes the client's place in the session, which already knows the reason.
        if let room { turn.tell(.room(room.name, .gone(id))) }
        if usesMedia { turn.tell(.media(.leave(id))) }
    }

    private mutating func resume(_ arrival: Arrival, _ turn: inout Turn) {
        let next = ResumeSecret.make(for: id, using: &turn.random)
        guard presence != .gone, let claim = arrival.resume, matches(claim.secret),
            let missing = link.replay(after: claim.received)
        else {
            // The secret is correct, but messages were dropped from the replay buffer. End this client connection, because the
            // client cannot receive the missing messages.
            if let claim = arrival.resume, matches(claim.secret) {
                if case .live(let old) = presence { replace(old, &turn) }
                depart(.networkDisconnected, &turn)
            }
            return turn.tell(.reception(arrival.withoutResume(&turn)))
        }
        let wasDropped = if case .dropped = presence { true } else { false }
        if case .live(let old) = presence { replace(old, &turn) }
        previousSecret = secret == claim.secret ? claim.secret : previousSecret
        secret = next
        presence = .live(arrival.socket)
        origin.address = arrival.address
        var welcome = welcome(turn)
        welcome.resumed = true
        turn.transmit(arrival.socket, ServerMessage.welcome(welcome).encode())
        for bytes in missing { turn.transmit(arrival.socket, bytes) }
        acknowledged(upTo: claim.received, &turn)
        turn.tell(.person(identity, .moved(id, address: arrival.address)))
        guard wasDropped else { return }
        for session in sessions { turn.tell(.session(session, .returned(id))) }
        if let room { turn.tell(.room(room.name, .away(id, false))) }
        turn.tell(.person(identity, .returned(id)))
    }

    /// Closes the old socket after the client resumed on a new socket.
    private func replace(_ old: SocketID, _ turn: inout Turn) {
        let error = WireError(.replaced, "This connection was resumed on another socket. Use that one.")
        turn.transmit(old, ServerMessage.error(.init(error)).encode())
        turn.close(old, .replaced, error.code.rawValue)
    }

    private func matches(_ claim: String) -> Bool {
        let claim = Array(claim.utf8)
        return constantTimeEquals(Array(secret.utf8), claim)
            || previousSecret.map { constantTimeEquals(Array($0.utf8), claim) } ?? false
    }

    // MARK: Receiving

    private mutating func receive(_ message: UnreadableMessage, _ turn: inout Turn) {
        if let ack = message.ack { acknowledged(upTo: ack, &turn) }
        if let seq = message.seq, !accept(seq, &turn) { return }
        if message.error.code == .malformed {
            guard malformed.take(Self.malformedRate(turn), now: turn.now) == nil else {
                return expel(message.error, .malformed, re: message.seq, &turn)
            }
        } else {
            // An unknown verb may come from a newer client, so it does not count as malformed. It costs as much as a known
            // verb.
            let wait = verbs.take(turn.rules.verbs, now: turn.now)
            guard withinBudget(wait, re: message.seq, &turn) else { return }
        }
        fail(message.error, re: message.seq, &turn)
    }

    /// Returns true if the message with this number should be handled: it is not a duplicate, and all messages before it have
    /// arrived.
    private mutating func accept(_ seq: UInt64, _ turn: inout Turn) -> Bool {
        switch link.receive(seq: seq) {
        case .deliver: return true
        case .duplicate: return false
        case .gap:
            let error = WireError(
                .outOfOrder, "Received message \(seq) after \(link.received). Number messages without gaps."
            )
            expel(error, .malformed, &turn)
            return false
        }
    }

    private mutating func receive(_ envelope: Envelope<ClientMessage>, _ turn: inout Turn) {
        previousSecret = nil
        if let ack = envelope.ack { acknowledged(upTo: ack, &turn) }
        switch envelope.message {
        case .ack: return
        case .ping:
            if case .live(let socket) = presence {
                turn.transmit(socket, ServerMessage.pong.encode(ack: link.acknowledge()))
            }
            return
        case .bye:
            if case .live(let socket) = presence { turn.close(socket, .normal, "bye") }
            return depart(.clientDisconnected, &turn)
        default: break
        }
        guard let seq = envelope.seq else {
            let error = WireError(.malformed, "\(envelope.message.type) requires a \"seq\". Number messages from 1.")
            return receive(UnreadableMessage(error: error), &turn)
        }
        guard accept(seq, &turn) else { return }
        let wait = budget(envelope.message, turn)
        guard withinBudget(wait, re: seq, &turn) else { return }
        perform(envelope.message, re: seq, &turn)
    }

    private mutating func budget(_ message: ClientMessage, _ turn: Turn) -> Duration? {
        switch message {
        case .session(.join), .room(.join): if let wait = joins.take(turn.rules.joins, now: turn.now) { return wait }
        default: break
        }
        guard let size = message.negotiationSize else { return verbs.take(turn.rules.verbs, now: turn.now) }
        let cost = Double(1 + size / turn.rules.bytesPerNegotiation)
        return negotiations.take(turn.rules.negotiations, cost: cost, now: turn.now)
    }

    /// Charges one message to the budget for all messages. If the budget is exhausted, removes the client and returns false.
    private mutating func hasBudget(_ turn: inout Turn) -> Bool {
        guard messages.take(turn.rules.messages, now: turn.now) != nil else { return true }
        let error = WireError(
            .rateLimited, "Too many messages. Reconnect, and send messages more slowly.", retryable: true)
        expel(error, .tooMany, &turn)
        return false
    }

    private mutating func withinBudget(_ wait: Duration?, re: UInt64?, _ turn: inout Turn) -> Bool {
        guard let wait else { return true }
        let error = WireError(
            .rateLimited, "Too many messages. Try again in \(wait.roundedText).", retryable: true, retryAfter: wait
        )
        if refusals.take(turn.rules.refusals, now: turn.now) != nil {
            expel(error, .tooMany, re: re, &turn)
        } else {
            fail(error, re: re, &turn)
        }
        return false
    }

    private mutating func perform(_ message: ClientMessage, re: UInt64, _ turn: inout Turn) {
        if let error = turn.permit.refusal(of: message.storageUse) { return fail(error, re: re, &turn) }
        switch message {
        case .hello:
            fail(WireError(.malformed, "hello was already sent on this connection."), re: re, &turn)
        case .session(let verb): perform(verb, re: re, &turn)
        case .iceServers:
            let ice = turn.ice.configuration(for: id, now: turn.wallNow)
            deliver(.iceServers(.init(re: re, ice: ice)), &turn)
        case .media(.offer(let offer)):
            guard turn.rules.routesMedia else {
                let error = WireError(
                    .mediaUnavailable, "This server does not route media. Use a relayed session.")
                return fail(error, re: re, &turn)
            }
            usesMedia = true
            turn.media(.offer(id, re: re, offer.side, sdp: offer.sdp))
        case .media(.close(let close)):
            if usesMedia { turn.media(.close(id, close.side)) }
            deliver(.ok(.init(re: re)), &turn)
        case .media(.estimate):
            // A client without peer connections is unknown to the media plane.
            guard usesMedia else { return deliver(.media(.estimate(.init(re: re, bitrate: nil))), &turn) }
            turn.media(.estimate(id, re: re))
        case .room(let verb): perform(verb, re: re, &turn)
        case .roulette, .presence, .nearby, .call, .contact, .push:
            turn.tell(.person(identity, .verb(id, re: re, message)))
        // These messages have no number and were handled earlier.
        case .ack, .ping, .bye: break
        }
    }

    private mutating func perform(_ verb: SessionVerb, re: UInt64, _ turn: inout Turn) {
        if case .join(let join) = verb { return self.join(join, re: re, &turn) }
        let session = verb.session
        guard sessions.contains(session) else {
            return fail(WireError(.notJoined, "Join the session first (session.join)."), re: re, &turn)
        }
        guard case .leave = verb else { return turn.tell(.session(session, .verb(id, re: re, verb))) }
        forget(session)
        turn.tell(.session(session, .gone(id, .clientDisconnected)))
        deliver(.ok(.init(re: re)), &turn)
    }
}
