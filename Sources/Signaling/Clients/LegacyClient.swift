import Wire

/// A legacy client that just connected. Only its address is known.
public struct LegacyArrival: Equatable, Sendable {
    public var socket: SocketID
    /// The remote address in canonical text, for per-address limits.
    public var address: String

    public init(socket: SocketID, address: String) { (self.socket, self.address) = (socket, address) }
}

/// A client that uses RouletteTok's protocol. Translates between the six events of that protocol and the roulette.
///
/// Owns only the translation. The pool finds partners, and the gateway handles framing and transports. A legacy client's person
/// exists only as long as its socket.
/// Invariant: `subscribe` and `disconnectPartner` alternate, starting with `subscribe`, unless the client requested another
/// partner in between.
public struct LegacyClient: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    let id: ConnectionID
    let identity: IdentityID
    private let socket: SocketID
    /// The session that the client publishes in. `binding` is the id that ties the client's token to this connection.
    private let home: SessionID
    private let binding: MatchID
    private(set) var isOver = false
    /// When to send `empty`. The event is delayed, because a partner may be found at the same moment.
    private var emptyAt: Timestamp?
    /// When to retry the search for a client that must wait. The legacy protocol has no message that says so.
    private var retryAt: Timestamp?

    /// Sends the client its own session, in which it publishes for as long as it is connected.
    init(_ arrival: LegacyArrival, id: ConnectionID, _ turn: inout Turn) {
        self.id = id
        identity = IdentityID.random(using: &turn.random)
        socket = arrival.socket
        binding = MatchID.random(using: &turn.random)
        home = turn.project.makeSessionID(
            mediaMode: turn.rules.matchMediaMode, now: turn.wallNow, using: &turn.random)
        turn.tell(.session(home, .homeOpened(binding)))
        transmit(.initial(turn.admission(to: home, .publisher, match: binding)), &turn)
        turn.tell(
            .person(identity, .arrived(id, address: arrival.address, .none, PersonRecord(), home: home)))
    }

    var nextTimeout: Timestamp? {
        switch (emptyAt, retryAt) {
        case (let first?, let second?): min(first, second)
        case (let first, let second): first ?? second
        }
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        if let at = emptyAt, at <= turn.now {
            emptyAt = nil
            transmit(.empty, &turn)
        }
        if let at = retryAt, at <= turn.now { ask(.next, &turn) }
    }

    mutating func handle(_ event: ClientEvent, _ turn: inout Turn) {
        guard !isOver else { return }
        switch event {
        case .asked(let socket, let request):
            if socket == self.socket { ask(request, &turn) }
        case .deliver(let message): deliver(message, &turn)
        case .deliverBroadcast(let broadcast): deliver(broadcast.message, &turn)
        case .closed(let socket, _):
            if socket == self.socket { depart(&turn) }
        case .moved(let address): turn.tell(.person(identity, .moved(id, address: address)))
        case .expel(_, let code, _):
            turn.close(socket, code, "")
            depart(&turn)
        // Events that only native clients use.
        case .message, .unreadable, .perch, .perchSignal, .resume, .joinRefused, .leftSession, .roulette, .call, .room,
            .connected, .requested:
            return
        }
    }

    private mutating func ask(_ request: RouletteTokRequest, _ turn: inout Turn) {
        emptyAt = nil
        retryAt = nil
        turn.tell(.person(identity, .asked(id, request)))
    }

    private mutating func deliver(_ message: ServerMessage, _ turn: inout Turn) {
        switch message {
        // A skip penalty looks like normal waiting: the legacy protocol has no message for it.
        case .roulette(.waiting): emptyAt = turn.now
        case .roulette(.matched(let matched)):
            emptyAt = nil
            transmit(.subscribe(matched.subscribe), &turn)
        case .roulette(.ended): transmit(.disconnectPartner, &turn)
        case .error(let message):
            if let wait = message.error.retryAfter {
                emptyAt = turn.now
                retryAt = turn.now + wait
            } else {
                turn.transmit(socket, SocketIOPacket.error(message.error.code).encode())
            }
        default: return
        }
    }

    private func transmit(_ event: RouletteTokEvent, _ turn: inout Turn) {
        turn.transmit(socket, event.packet)
    }

    private mutating func depart(_ turn: inout Turn) {
        isOver = true
        turn.tell(.person(identity, .departed(id)))
        turn.tell(.session(home, .homeClosed(binding)))
    }
}
