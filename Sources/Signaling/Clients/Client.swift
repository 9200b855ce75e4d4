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
    var presence: Presence
    var link: Link
    private var secret: String
    /// The resume secret before the current one. It is accepted until the first message on the new socket, because the
    /// `welcome` with the new secret can be lost; nil after that message.
    private var previousSecret: String?
    var sessions: [SessionID] = []
    /// The room that the client is in or waits for; nil if there is none.
    var room: RoomSeat?
    /// The number of the request to join a room that is not answered yet; nil if there is none. In a cluster, the answer may take a while. The
    /// client must not enter two rooms meanwhile.
    var entering: UInt64?
    /// The number of a request to leave the room that arrived before the join in `entering` was answered; nil if there is none.
    var leaving: UInt64?
    private var roulette = Snapshot.Roulette()
    private var call: Snapshot.Call?
    /// Whether the media plane has received an offer from this client.
    private(set) var usesMedia = false
    var recentlyEnded = RecentlyEnded()
    private var verbs: Budget
    private var negotiations: Budget
    private var malformed: Budget
    private var refusals: Budget
    private var messages: Budget
    private var joins: Budget
    var pages = RosterPages()

    var isOver: Bool { presence == .gone }
    var isBusy: Bool { room != nil || !sessions.isEmpty || roulette.state == .matched || call != nil }
    var isOnLinkedDevice: Bool { device != identity }
    /// The client's socket; nil if the socket was lost or the client is gone.
    var socket: SocketID? { if case .live(let socket) = presence { socket } else { nil } }

    /// Creates the client connection for a new client, or for one that could not resume.
    init(_ arrival: Arrival, id: ConnectionID, _ context: inout Context) {
        self.id = id
        identity = arrival.identity.id
        device = arrival.device
        origin = Origin(address: arrival.address, vouchedName: arrival.identity.name)
        presence = .live(arrival.socket)
        link = Link(bounds: context.rules.replay)
        secret = ResumeSecret.make(for: id, using: &context.random)
        verbs = Budget(context.rules.verbs, now: context.now)
        negotiations = Budget(context.rules.negotiations, now: context.now)
        malformed = Budget(Self.malformedRate(context), now: context.now)
        refusals = Budget(context.rules.refusals, now: context.now)
        messages = Budget(context.rules.messages, now: context.now)
        joins = Budget(context.rules.joins, now: context.now)
        var welcome = welcome(context)
        welcome.identity = arrival.newIdentitySecret
        context.transmit(arrival.socket, ServerMessage.welcome(welcome).encode())
        context.tell(.person(identity, arrival.event(for: id)))
    }

    static func orphan(_ event: ClientEvent, _ id: ConnectionID, _ context: inout Context) {
        // The client disconnected while the answer to its join of a session or room was in transit. Leave the session
        // or room again.
        switch event {
        case .deliver(.session(.joined(let joined))):
            context.tell(.session(joined.session, .gone(id, .clientDisconnected)))
        case .room(let seat?): context.tell(.room(seat.name, .gone(id)))
        default: return
        }
    }

    private static func malformedRate(_ context: Context) -> Budget.Rate {
        let perMinute = Double(context.rules.malformedPerMinute)
        return Budget.Rate(perSecond: perMinute / 60, burst: perMinute)
    }

    private func welcome(_ context: Context) -> Welcome {
        var welcome = Welcome()
        welcome.server = context.version
        welcome.at = context.nodeName
        welcome.connection = id
        welcome.received = link.received
        welcome.resume = .init(secret: secret, grace: context.rules.resumeGrace)
        welcome.ping = context.rules.pingInterval
        welcome.ice = context.ice.configuration(for: id, now: context.wallNow)
        welcome.media = context.rules.routesMedia ? Welcome.Media(roulette: context.rules.matchMediaMode) : nil
        welcome.limits.message = context.rules.messageSize
        welcome.limits.description = context.rules.descriptionSize
        welcome.limits.interests = context.rules.maxInterests
        welcome.limits.streamTimeout = context.rules.streamTimeout
        welcome.push = context.vapidKey.map { Welcome.Push(vapidKey: $0) }
        welcome.sampling = context.rules.checksSamples ? Welcome.Sampling(interval: context.rules.sampleInterval) : nil
        welcome.state = Snapshot(sessions: sessions, roulette: roulette, call: call)
        return welcome
    }

    var nextTimeout: Timestamp? {
        if case .dropped(let until) = presence { until } else { nil }
    }

    mutating func handleTimeout(_ context: inout Context) {
        guard case .dropped(let until) = presence, until <= context.now else { return }
        depart(.networkDisconnected, &context)
    }

    mutating func handle(_ event: ClientEvent, _ context: inout Context) {
        switch event {
        case .message(let socket, let envelope):
            guard presence == .live(socket) else { return }
            if hasBudget(&context) { receive(envelope, &context) }
        case .unreadable(let socket, let message):
            guard presence == .live(socket) else { return }
            if hasBudget(&context) { receive(message, &context) }
        case .closed(let socket, let leaving):
            guard presence == .live(socket) else { return }
            lost(leaving: leaving, &context)
        case .asked, .suspended, .recovered, .perch, .perchSignal, .moved, .connected, .requested: return
        case .resume(let arrival): resume(arrival, &context)
        case .deliver(let message): deliver(message, &context)
        case .deliverBroadcast(let broadcast):
            if !withhold(broadcast.message, &context) {
                send(&context) { seq, ack in broadcast.encode(seq: seq, ack: ack) }
            }
        case .joinRefused(let re, let error, let match):
            refuseJoin(re: re, error, match: match, &context)
        case .leftSession(let session, let reason, let moderator):
            forget(session)
            deliver(.session(.left(.init(session: session, reason: reason))), &context)
            leaveRoom(of: session, by: moderator, &context)
        case .roulette(let state):
            roulette = state
            if let match = state.match { recentlyEnded.remember(match) }
        case .call(let state):
            call = state
            if let state { recentlyEnded.remember(state.id.binding) }
        case .room(let seat): setRoom(seat)
        case .expel(let error, let code, let re):
            expel(error, code, re: re, &context)
        }
    }

    // MARK: Sending

    private mutating func deliver(_ message: ServerMessage, _ context: inout Context) {
        pass(message, &context)
        if let request = entering, message.re == request { joinAnswered(&context) }
    }

    private mutating func pass(_ message: ServerMessage, _ context: inout Context) {
        guard presence != .gone, !isStale(message) else { return }
        send(&context) { seq, ack in message.encode(seq: seq, ack: ack) }
        guard case .session(let notice) = message else { return }
        pages.sent(notice, as: link.sent)
        if case .joined(let joined) = notice, !sessions.contains(joined.session) { sessions.append(joined.session) }
    }

    private mutating func send(_ context: inout Context, _ encode: (UInt64, UInt64) -> [UInt8]) {
        guard presence != .gone else { return }
        let bytes = link.send(encode)
        if case .live(let socket) = presence { context.transmit(socket, bytes) }
    }

    mutating func fail(_ error: WireError, re: UInt64?, _ context: inout Context) {
        deliver(.error(.init(error, re: re)), &context)
    }

    /// Ends the client. If it has a socket, sends an unnumbered error and closes the socket. The error also answers
    /// the request `re`, if set.
    mutating func expel(_ error: WireError, _ code: CloseCode, re: UInt64? = nil, _ context: inout Context) {
        if case .live(let socket) = presence {
            context.transmit(socket, ServerMessage.error(.init(error, re: re)).encode())
            context.close(socket, code, error.code.rawValue)
        }
        depart(.forceDisconnected, &context)
    }

    // MARK: Resuming

    private mutating func resume(_ arrival: Arrival, _ context: inout Context) {
        let next = ResumeSecret.make(for: id, using: &context.random)
        guard presence != .gone, let claim = arrival.resume, matches(claim.secret),
            let missing = link.replay(after: claim.received)
        else {
            // If the secret is correct, messages that the client has not received were dropped from the replay buffer.
            // End this client connection, because the client can no longer receive them.
            if let claim = arrival.resume, matches(claim.secret) {
                if case .live(let old) = presence { replace(old, &context) }
                depart(.networkDisconnected, &context)
            }
            return context.admitWithoutResume(arrival)
        }
        let wasDropped = if case .dropped = presence { true } else { false }
        if case .live(let old) = presence { replace(old, &context) }
        previousSecret = secret == claim.secret ? claim.secret : previousSecret
        secret = next
        presence = .live(arrival.socket)
        origin.address = arrival.address
        var welcome = welcome(context)
        welcome.resumed = true
        context.transmit(arrival.socket, ServerMessage.welcome(welcome).encode())
        for bytes in missing { context.transmit(arrival.socket, bytes) }
        acknowledged(upTo: claim.received, &context)
        context.tell(.person(identity, .moved(id, address: arrival.address)))
        if wasDropped { returned(&context) }
    }

    /// Closes the old socket after the client resumed on a new socket.
    private func replace(_ old: SocketID, _ context: inout Context) {
        let error = WireError(.replaced, "This connection was resumed on another socket. Use that one.")
        context.transmit(old, ServerMessage.error(.init(error)).encode())
        context.close(old, .replaced, error.code.rawValue)
    }

    private func matches(_ claim: String) -> Bool {
        let claim = Array(claim.utf8)
        return constantTimeEquals(Array(secret.utf8), claim)
            || previousSecret.map { constantTimeEquals(Array($0.utf8), claim) } ?? false
    }

    // MARK: Receiving

    private mutating func receive(_ message: UnreadableMessage, _ context: inout Context) {
        if let ack = message.ack { acknowledged(upTo: ack, &context) }
        if let seq = message.seq, !accept(seq, &context) { return }
        if message.error.code == .malformed {
            guard malformed.take(Self.malformedRate(context), now: context.now) == nil else {
                return expel(message.error, .malformed, re: message.seq, &context)
            }
        } else {
            // An unknown verb may come from a newer client, so it does not count as malformed. It costs as much as a known
            // verb.
            let wait = verbs.take(context.rules.verbs, now: context.now)
            guard withinBudget(wait, re: message.seq, &context) else { return }
        }
        fail(message.error, re: message.seq, &context)
    }

    /// Returns true if the message with this number should be handled: it is not a duplicate, and all messages before
    /// it have arrived. If messages are missing, removes the client.
    private mutating func accept(_ seq: UInt64, _ context: inout Context) -> Bool {
        switch link.receive(seq: seq) {
        case .deliver: return true
        case .duplicate: return false
        case .gap:
            let error = WireError(
                .outOfOrder, "Received message \(seq) after \(link.received). Number messages without gaps."
            )
            expel(error, .malformed, &context)
            return false
        }
    }

    private mutating func receive(_ envelope: Envelope<ClientMessage>, _ context: inout Context) {
        previousSecret = nil
        if let ack = envelope.ack { acknowledged(upTo: ack, &context) }
        switch envelope.message {
        case .ack: return
        case .ping:
            if case .live(let socket) = presence {
                context.transmit(socket, ServerMessage.pong.encode(ack: link.acknowledge()))
            }
            return
        case .bye:
            if case .live(let socket) = presence { context.close(socket, .normal, "bye") }
            return depart(.clientDisconnected, &context)
        default: break
        }
        guard let seq = envelope.seq else {
            let error = WireError(.malformed, "\(envelope.message.type) requires a \"seq\". Number messages from 1.")
            return receive(UnreadableMessage(error: error), &context)
        }
        guard accept(seq, &context) else { return }
        let wait = budget(envelope.message, context)
        guard withinBudget(wait, re: seq, &context) else { return }
        perform(envelope.message, re: seq, &context)
    }

    private mutating func budget(_ message: ClientMessage, _ context: Context) -> Duration? {
        switch message {
        case .session(.join), .room(.join):
            if let wait = joins.take(context.rules.joins, now: context.now) { return wait }
        default: break
        }
        guard let size = message.negotiationSize else { return verbs.take(context.rules.verbs, now: context.now) }
        let cost = Double(1 + size / context.rules.bytesPerNegotiation)
        return negotiations.take(context.rules.negotiations, cost: cost, now: context.now)
    }

    /// Charges one message to the budget for all messages. If the budget is exhausted, removes the client and returns false.
    private mutating func hasBudget(_ context: inout Context) -> Bool {
        guard messages.take(context.rules.messages, now: context.now) != nil else { return true }
        let error = WireError(
            .rateLimited, "Too many messages. Reconnect, and send messages more slowly.", retryable: true)
        expel(error, .tooMany, &context)
        return false
    }

    private mutating func withinBudget(_ wait: Duration?, re: UInt64?, _ context: inout Context) -> Bool {
        guard let wait else { return true }
        let error = WireError(
            .rateLimited, "Too many messages. Try again in \(wait.roundedText).", retryable: true, retryAfter: wait
        )
        if refusals.take(context.rules.refusals, now: context.now) != nil {
            expel(error, .tooMany, re: re, &context)
        } else {
            fail(error, re: re, &context)
        }
        return false
    }

    private mutating func perform(_ message: ClientMessage, re: UInt64, _ context: inout Context) {
        if let error = context.permit.refusal(of: message.storageUse) { return fail(error, re: re, &context) }
        switch message {
        case .hello:
            fail(WireError(.malformed, "hello was already sent on this connection."), re: re, &context)
        case .session(let verb): perform(verb, re: re, &context)
        case .iceServers:
            let ice = context.ice.configuration(for: id, now: context.wallNow)
            deliver(.iceServers(.init(re: re, ice: ice)), &context)
        case .media(.offer(let offer)):
            guard context.rules.routesMedia else {
                let error = WireError(
                    .mediaUnavailable, "This server does not route media. Use a relayed session.")
                return fail(error, re: re, &context)
            }
            usesMedia = true
            context.media(.offer(id, in: sessions.last ?? room?.place?.session, re: re, offer.side, sdp: offer.sdp))
        case .media(.close(let close)):
            if usesMedia { context.media(.close(id, close.side)) }
            deliver(.ok(.init(re: re)), &context)
        case .media(.estimate):
            // The media plane does not know a client that has sent no offer. Answer directly that nothing limits the
            // bitrate.
            guard usesMedia else { return deliver(.media(.estimate(.init(re: re, bitrate: nil))), &context) }
            context.media(.estimate(id, re: re))
        case .room(let verb): perform(verb, re: re, &context)
        case .roulette, .presence, .nearby, .call, .contact, .push:
            context.tell(.person(identity, .verb(id, re: re, message)))
        // These messages have no number. `receive` has already handled them.
        case .ack, .ping, .bye: break
        }
    }

    private mutating func perform(_ verb: SessionVerb, re: UInt64, _ context: inout Context) {
        if case .join(let join) = verb { return self.join(join, re: re, &context) }
        let session = verb.session
        guard sessions.contains(session) else {
            return fail(WireError(.notJoined, "Join the session first (session.join)."), re: re, &context)
        }
        guard case .leave = verb else { return context.tell(.session(session, .verb(id, re: re, verb))) }
        forget(session)
        context.tell(.session(session, .gone(id, .clientDisconnected)))
        deliver(.ok(.init(re: re)), &context)
    }
}
