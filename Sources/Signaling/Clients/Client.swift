import Wire

public enum ClientEvent: Equatable, Sendable {
    /// A message from the socket that this client is on.
    case message(SocketID, Envelope<ClientMessage>)
    case unreadable(SocketID, UnreadableMessage)
    /// On RouletteTok's wire.
    case asked(SocketID, RouletteTokRequest)
    case closed(SocketID, leaving: Bool)
    /// Somebody claims to be this client, back on another socket.
    case resume(Arrival)
    /// From other machines.
    case deliver(ServerMessage)
    case joinRefused(re: UInt64, WireError, match: MatchID?)
    case leftSession(SessionID, GoneReason)
    case roulette(Snapshot.Roulette)
    /// The call that this device holds now, if any.
    case call(Snapshot.Call?)
    /// Whether media can flow over its connection with the server; of use to who cannot say so himself.
    case connected(Bool)
    /// Of a resource of WHIP or WHEP.
    case requested(ResourceRequest)
    /// A ban: no way back with this identity.
    case expel(WireError, CloseCode)
}

/// One client connection: its socket or the wait for the next one, its numbering, its budgets, and which sessions it is in.
///
/// It owns what is true of one device's line to us; it knows neither who else is in a session nor whom its person is
/// paired with. Invariant: what is handed to `deliver` reaches the client exactly once and in order, or the client is told
/// `resume_failed`.
public struct Client: Equatable, Sendable {
    /// Legal next states: `live` → `live` (resume elsewhere), `dropped`, `gone`; `dropped` → `live`, `gone`; `gone` → none.
    enum Presence: Equatable, Sendable {
        case live(SocketID)
        case dropped(until: Timestamp)
        case gone
    }

    let id: ConnectionID
    let identity: IdentityID
    private(set) var presence: Presence
    private var link: Link
    private var secret: String
    /// Good until the first message on the new socket: a welcome can be lost as well.
    private var previousSecret: String?
    var sessions: [SessionID] = []
    private var roulette = Snapshot.Roulette()
    private var call: Snapshot.Call?
    /// Whether the media plane ever heard of this client.
    private var usesMedia = false
    var crossings = Crossings()
    private var verbs: Budget
    private var negotiations: Budget
    private var malformed: Budget
    private var refusals: Budget
    private var messages: Budget

    var isGone: Bool { presence == .gone }

    /// Lets somebody in who is new, or who could not resume.
    init(
        _ arrival: Arrival, id: ConnectionID, secret: String, now: Timestamp, in surroundings: Surroundings,
        into effects: inout [Effect]
    ) {
        let rules = surroundings.rules
        self.id = id
        identity = arrival.identity.id
        presence = .live(arrival.socket)
        link = Link(bounds: rules.replay)
        self.secret = secret
        verbs = Budget(rules.verbs, now: now)
        negotiations = Budget(rules.negotiations, now: now)
        malformed = Budget(Self.malformedRate(rules), now: now)
        refusals = Budget(rules.refusals, now: now)
        messages = Budget(rules.messages, now: now)
        var welcome = welcome(now: now, surroundings)
        welcome.identity = arrival.newIdentitySecret
        effects.append(.transmit(arrival.socket, ServerMessage.welcome(welcome).encode()))
        effects.tell(.person(identity, arrival.event(for: id)))
    }

    private static func malformedRate(_ rules: Rules) -> Budget.Rate {
        Budget.Rate(perSecond: Double(rules.malformedPerMinute) / 60, burst: Double(rules.malformedPerMinute))
    }

    private func welcome(now: Timestamp, _ surroundings: Surroundings) -> Welcome {
        var welcome = Welcome()
        let rules = surroundings.rules
        welcome.server = surroundings.version
        welcome.connection = id
        welcome.received = link.received
        welcome.resume = .init(secret: secret, grace: rules.resumeGrace)
        welcome.ping = rules.pingInterval
        welcome.ice = surroundings.ice.configuration(for: id, now: now)
        welcome.media = rules.routesMedia ? Welcome.Media(roulette: rules.matchMediaMode) : nil
        welcome.limits.message = rules.messageSize
        welcome.limits.description = rules.descriptionSize
        welcome.limits.interests = rules.maxInterests
        welcome.limits.streamTimeout = rules.streamTimeout
        welcome.push = surroundings.vapidKey.map { Welcome.Push(vapidKey: $0) }
        welcome.state = Snapshot(sessions: sessions, roulette: roulette, call: call)
        return welcome
    }

    var nextTimeout: Timestamp? {
        if case .dropped(let until) = presence { until } else { nil }
    }

    mutating func handleTimeout(now: Timestamp, into effects: inout [Effect]) {
        guard case .dropped(let until) = presence, until <= now else { return }
        depart(.networkDisconnected, into: &effects)
    }

    mutating func handle(
        _ event: ClientEvent, now: Timestamp, in surroundings: Surroundings, newSecret: () -> String,
        into effects: inout [Effect]
    ) {
        switch event {
        case .message(let socket, let envelope):
            guard presence == .live(socket) else { return }
            if hasBudget(now: now, surroundings.rules, into: &effects) {
                receive(envelope, now: now, surroundings, into: &effects)
            }
        case .unreadable(let socket, let message):
            guard presence == .live(socket) else { return }
            if hasBudget(now: now, surroundings.rules, into: &effects) {
                receive(message, now: now, surroundings.rules, into: &effects)
            }
        case .closed(let socket, let leaving):
            guard presence == .live(socket) else { return }
            if leaving {
                depart(.clientDisconnected, into: &effects)
            } else {
                drop(until: now + surroundings.rules.resumeGrace, into: &effects)
            }
        case .asked, .connected, .requested: return
        case .resume(let arrival):
            resume(arrival, now: now, surroundings, newSecret: newSecret, into: &effects)
        case .deliver(let message):
            deliver(message, into: &effects)
        case .joinRefused(let re, let error, let match):
            refuseJoin(re: re, error, match: match, into: &effects)
        case .leftSession(let session, let reason):
            sessions.removeAll { $0 == session }
            deliver(.left(Left(session: session, reason: reason)), into: &effects)
        case .roulette(let state):
            roulette = state
            if let match = state.match { crossings.remember(match) }
        case .call(let state):
            call = state
            if let state { crossings.remember(state.id.binding) }
        case .expel(let error, let code):
            expel(error, code, into: &effects)
        }
    }

    // MARK: Sending

    private mutating func deliver(_ message: ServerMessage, into effects: inout [Effect]) {
        guard presence != .gone else { return }
        let bytes = link.send { seq, ack in message.encode(seq: seq, ack: ack) }
        if case .live(let socket) = presence { effects.append(.transmit(socket, bytes)) }
        if case .joined(let joined) = message, !sessions.contains(joined.session) { sessions.append(joined.session) }
    }

    mutating func fail(_ error: WireError, re: UInt64?, into effects: inout [Effect]) {
        deliver(.error(ErrorMessage(error, re: re)), into: &effects)
    }

    /// Says why, unnumbered, closes, and is gone. The last request is answered even so.
    mutating func expel(
        _ error: WireError, _ code: CloseCode, re: UInt64? = nil, into effects: inout [Effect]
    ) {
        if case .live(let socket) = presence {
            effects.append(.transmit(socket, ServerMessage.error(ErrorMessage(error, re: re)).encode()))
            effects.append(.close(socket, code, error.code.rawValue))
        }
        depart(.forceDisconnected, into: &effects)
    }

    // MARK: Coming and going

    private mutating func drop(until: Timestamp, into effects: inout [Effect]) {
        presence = .dropped(until: until)
        for session in sessions { effects.tell(.session(session, .dropped(id))) }
        effects.tell(.person(identity, .dropped(id)))
    }

    private mutating func depart(_ reason: GoneReason, into effects: inout [Effect]) {
        guard presence != .gone else { return }
        presence = .gone
        // The person first: a match that ends closes its session before the session misses anybody.
        effects.tell(.person(identity, .departed(id)))
        for session in sessions { effects.tell(.session(session, .gone(id, reason))) }
        if usesMedia { effects.tell(.media(.leave(id))) }
    }

    private mutating func resume(
        _ arrival: Arrival, now: Timestamp, _ surroundings: Surroundings, newSecret: () -> String,
        into effects: inout [Effect]
    ) {
        guard presence != .gone, let claim = arrival.resume, matches(claim.secret),
            let missing = link.replay(after: claim.received)
        else {
            // A right secret with a buffer that overran ends this client: its state cannot be told any more.
            if let claim = arrival.resume, matches(claim.secret) {
                if case .live(let old) = presence { replace(old, into: &effects) }
                depart(.networkDisconnected, into: &effects)
            }
            return effects.tell(.reception(arrival.withoutResume(failed: true, into: &effects)))
        }
        let wasDropped = if case .dropped = presence { true } else { false }
        if case .live(let old) = presence { replace(old, into: &effects) }
        previousSecret = secret == claim.secret ? claim.secret : previousSecret
        secret = newSecret()
        presence = .live(arrival.socket)
        var welcome = welcome(now: now, surroundings)
        welcome.resumed = true
        effects.append(.transmit(arrival.socket, ServerMessage.welcome(welcome).encode()))
        for bytes in missing { effects.append(.transmit(arrival.socket, bytes)) }
        guard wasDropped else { return }
        for session in sessions { effects.tell(.session(session, .returned(id))) }
        effects.tell(.person(identity, .returned(id)))
    }

    /// The same client came on another socket.
    private func replace(_ old: SocketID, into effects: inout [Effect]) {
        let error = WireError(.replaced, "This connection went on elsewhere.")
        effects.append(.transmit(old, ServerMessage.error(ErrorMessage(error)).encode()))
        effects.append(.close(old, .replaced, error.code.rawValue))
    }

    private func matches(_ claim: String) -> Bool {
        let claim = Array(claim.utf8)
        return constantTimeEquals(Array(secret.utf8), claim)
            || previousSecret.map { constantTimeEquals(Array($0.utf8), claim) } ?? false
    }

    // MARK: Receiving

    private mutating func receive(
        _ message: UnreadableMessage, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        if let ack = message.ack { link.acknowledged(upTo: ack) }
        if let seq = message.seq, !accept(seq, into: &effects) { return }
        if message.error.code == .malformed {
            guard malformed.take(Self.malformedRate(rules), now: now) == nil else {
                return expel(message.error, .malformed, re: message.seq, into: &effects)
            }
        } else {
            // A verb that this server is too old for is no fault of the client's; it costs what any verb costs.
            let wait = verbs.take(rules.verbs, now: now)
            guard withinBudget(wait, re: message.seq, now: now, rules, into: &effects) else { return }
        }
        fail(message.error, re: message.seq, into: &effects)
    }

    /// Whether the message with this number is to be handled: not a repetition, and nothing before it is missing.
    private mutating func accept(_ seq: UInt64, into effects: inout [Effect]) -> Bool {
        switch link.receive(seq: seq) {
        case .deliver: return true
        case .duplicate: return false
        case .gap:
            let error = WireError(
                .outOfOrder, "Message \(seq) came after \(link.received); number messages without gaps."
            )
            expel(error, .malformed, into: &effects)
            return false
        }
    }

    private mutating func receive(
        _ envelope: Envelope<ClientMessage>, now: Timestamp, _ surroundings: Surroundings, into effects: inout [Effect]
    ) {
        previousSecret = nil
        if let ack = envelope.ack { link.acknowledged(upTo: ack) }
        switch envelope.message {
        case .ack: return
        case .ping:
            if case .live(let socket) = presence {
                effects.append(.transmit(socket, ServerMessage.pong.encode(ack: link.acknowledge())))
            }
            return
        case .bye:
            if case .live(let socket) = presence { effects.append(.close(socket, .normal, "bye")) }
            return depart(.clientDisconnected, into: &effects)
        default: break
        }
        guard let seq = envelope.seq else {
            let error = WireError(.malformed, "A \(envelope.message.type) needs a \"seq\", counted from 1.")
            return receive(UnreadableMessage(error: error), now: now, surroundings.rules, into: &effects)
        }
        guard accept(seq, into: &effects) else { return }
        let wait = budget(envelope.message, now: now, surroundings.rules)
        guard withinBudget(wait, re: seq, now: now, surroundings.rules, into: &effects) else { return }
        perform(envelope.message, re: seq, now: now, surroundings, into: &effects)
    }

    private mutating func budget(_ message: ClientMessage, now: Timestamp, _ rules: Rules) -> Duration? {
        guard let size = message.negotiationSize else { return verbs.take(rules.verbs, now: now) }
        let cost = Double(1 + size / rules.bytesPerNegotiation)
        return negotiations.take(rules.negotiations, cost: cost, now: now)
    }

    /// Whether one more message of any kind is within reason; otherwise this client is gone.
    private mutating func hasBudget(now: Timestamp, _ rules: Rules, into effects: inout [Effect]) -> Bool {
        guard messages.take(rules.messages, now: now) != nil else { return true }
        expel(WireError(.rateLimited, "Far too many messages.", retryable: true), .tooMany, into: &effects)
        return false
    }

    private mutating func withinBudget(
        _ wait: Duration?, re: UInt64?, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) -> Bool {
        guard let wait else { return true }
        let error = WireError(
            .rateLimited, "Too many messages; wait \(wait) and try again.", retryable: true, retryAfter: wait
        )
        if refusals.take(rules.refusals, now: now) != nil {
            expel(error, .tooMany, re: re, into: &effects)
        } else {
            fail(error, re: re, into: &effects)
        }
        return false
    }

    private mutating func perform(
        _ message: ClientMessage, re: UInt64, now: Timestamp, _ surroundings: Surroundings, into effects: inout [Effect]
    ) {
        switch message {
        case .hello:
            fail(WireError(.malformed, "The hello was said already."), re: re, into: &effects)
        case .join(let join):
            self.join(join, re: re, now: now, surroundings, into: &effects)
        case .leave(let leave):
            guard sessions.contains(leave.session) else { return notJoined(re, into: &effects) }
            sessions.removeAll { $0 == leave.session }
            effects.tell(.session(leave.session, .gone(id, .clientDisconnected)))
            deliver(.ok(Answer(re: re)), into: &effects)
        case .iceServers:
            let ice = surroundings.ice.configuration(for: id, now: now)
            deliver(.iceServers(ICEAnswer(re: re, ice: ice)), into: &effects)
        case .mediaOffer(let offer):
            guard surroundings.rules.routesMedia else {
                return fail(WireError(.mediaUnavailable, "This server routes no media."), re: re, into: &effects)
            }
            usesMedia = true
            effects.append(.media(.offer(id, re: re, offer.side, sdp: offer.sdp)))
        case .mediaClose(let close):
            if usesMedia { effects.append(.media(.close(id, close.side))) }
            deliver(.ok(Answer(re: re)), into: &effects)
        case .start, .next, .stop, .report, .block, .presence, .nearby, .call, .contact:
            effects.tell(.person(identity, .verb(id, re: re, message)))
        case .count:
            effects.tell(.pool(.count(id, re: re)))
        case .push(let verb):
            effects.append(.inquire(Question(identity: identity, client: id, re: re, verb.inquiry)))
        default:
            guard let session = message.session, sessions.contains(session) else {
                return notJoined(re, into: &effects)
            }
            effects.tell(.session(session, .verb(id, re: re, message)))
        }
    }

    private mutating func notJoined(_ re: UInt64, into effects: inout [Effect]) {
        fail(WireError(.notJoined, "Join this session first."), re: re, into: &effects)
    }
}
