import Wire

/// A legacy client that just connected. Only its address is known.
public struct LegacyArrival: Equatable, Sendable {
    public var socket: SocketID
    /// The remote address in canonical text, for per-address limits.
    public var address: String
    /// How events are written for the client.
    public var framing: RouletteTokFraming

    public init(socket: SocketID, address: String, framing: RouletteTokFraming = .object) {
        (self.socket, self.address, self.framing) = (socket, address, framing)
    }
}

/// A client that uses RouletteTok's protocol, over any version of Socket.IO. Translates between the six events of that
/// protocol and the roulette.
///
/// Owns only the translation. The pool finds partners, and the gateway handles framing and transports. A legacy client's person
/// exists only as long as its socket. The gateway may keep the socket for a while after the connection dropped, so that the
/// client can recover it (`suspended`).
/// Invariant: `subscribe` and `disconnectPartner` alternate, starting with `subscribe`, unless the client requested another
/// partner in between.
public struct LegacyClient: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    let id: ConnectionID
    let identity: IdentityID
    private let socket: SocketID
    private let framing: RouletteTokFraming
    /// The session that the client publishes in.
    private let home: SessionID
    /// The id that ties the client's token to this connection.
    private let binding: MatchID
    private(set) var isOver = false
    /// When to send `empty`, the event for "no partner yet"; nil if it is not due. It is sent only after the current
    /// input has been handled, because handling the input may still find a partner.
    private var emptyAt: Timestamp?
    private var retry = Retry.none

    /// When to repeat the client's request for a partner, after an error that asks to wait. The legacy protocol has no message
    /// that would ask the client to retry.
    private enum Retry: Equatable, Sendable {
        case none
        case at(Timestamp)
        /// When the client recovers. Until then, nobody should be matched with it.
        case recovered
    }

    /// Creates the client, and sends it the session in which it publishes for as long as it is connected. No other
    /// client publishes in that session.
    init(_ arrival: LegacyArrival, id: ConnectionID, _ context: inout Context) {
        self.id = id
        identity = IdentityID.random(using: &context.random)
        (socket, framing) = (arrival.socket, arrival.framing)
        binding = context.newID()
        home = context.makeSessionID(mediaMode: context.rules.matchMediaMode, isPrivate: true)
        context.tell(.session(home, .homeOpened(binding)))
        transmit(.initial(context.admission(to: home, .publisher, match: binding)), &context)
        context.tell(
            .person(identity, .arrived(id, address: arrival.address, .none, PersonRecord(), home: home)))
    }

    var nextTimeout: Timestamp? {
        switch retry {
        case .at(let time): min(emptyAt ?? time, time)
        case .none, .recovered: emptyAt
        }
    }

    mutating func handleTimeout(_ context: inout Context) {
        if let at = emptyAt, at <= context.now {
            emptyAt = nil
            transmit(.empty, &context)
        }
        if case .at(let time) = retry, time <= context.now { ask(.next, &context) }
    }

    mutating func handle(_ event: ClientEvent, _ context: inout Context) {
        guard !isOver else { return }
        switch event {
        case .asked(let socket, let request):
            if socket == self.socket { ask(request, &context) }
        case .deliver(let message): deliver(message, &context)
        case .deliverBroadcast(let broadcast): deliver(broadcast.message, &context)
        case .closed(let socket, _):
            if socket == self.socket { depart(&context) }
        case .suspended:
            if retry != .none { retry = .recovered }
            context.tell(.person(identity, .dropped(id)))
        case .recovered:
            context.tell(.person(identity, .returned(id)))
            if retry == .recovered { ask(.next, &context) }
        case .moved(let address): context.tell(.person(identity, .moved(id, address: address)))
        case .expel(_, let code, _):
            context.close(socket, code, "")
            depart(&context)
        // Ignore events that only other clients use.
        case .message, .unreadable, .perch, .perchSignal, .resume, .joinRefused, .leftSession, .roulette, .call, .room,
            .connected, .requested:
            return
        }
    }

    private mutating func ask(_ request: RouletteTokRequest, _ context: inout Context) {
        emptyAt = nil
        retry = .none
        context.tell(.person(identity, .asked(id, request)))
    }

    private mutating func deliver(_ message: ServerMessage, _ context: inout Context) {
        switch message {
        // Treat a skip penalty like normal waiting, because the legacy protocol has no message for it.
        case .roulette(.waiting): emptyAt = context.now
        case .roulette(.matched(let matched)):
            emptyAt = nil
            transmit(.subscribe(matched.subscribe), &context)
        case .roulette(.ended): transmit(.disconnectPartner, &context)
        case .error(let message):
            if let wait = message.error.retryAfter {
                emptyAt = context.now
                retry = .at(context.now + wait)
            } else {
                transmit(.failed(message.error.code), &context)
            }
        default: return
        }
    }

    private func transmit(_ event: RouletteTokEvent, _ context: inout Context) {
        context.transmit(socket, event.packet(framing))
    }

    private mutating func depart(_ context: inout Context) {
        isOver = true
        context.tell(.person(identity, .departed(id)))
        context.tell(.session(home, .homeClosed(binding)))
    }
}
