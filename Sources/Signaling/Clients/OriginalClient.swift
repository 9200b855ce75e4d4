import Wire

/// Somebody who speaks RouletteTok's wire, at the door: nothing is known of him but where he comes from.
public struct OriginalArrival: Equatable, Sendable {
    public var socket: SocketID
    /// The remote address in canonical text, for the limits per address.
    public var address: String

    public init(socket: SocketID, address: String) { (self.socket, self.address) = (socket, address) }
}

/// A client of RouletteTok: its six events on our roulette.
///
/// It owns the translation and nothing else: whom its person meets is the pool's business, framing and transports are the
/// gateway's. The socket is the identity: when it is gone, so is the person. Invariant: `subscribe` and `disconnectPartner`
/// alternate, beginning with `subscribe`, unless the client itself asked for another partner in between.
public struct OriginalClient: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    let id: ConnectionID
    let identity: IdentityID
    private let socket: SocketID
    private(set) var isOver = false
    /// When to say that nobody is there. Not at once: somebody may be found in the same moment, and then nobody has to wait.
    private var emptyAt: Timestamp?
    /// When to ask again for a client that may not wait now: it has no way to be told why.
    private var askAgainAt: Timestamp?

    /// It publishes in one session for as long as it is here, and is told which.
    init(_ arrival: OriginalArrival, id: ConnectionID, _ turn: inout Turn) {
        self.id = id
        identity = IdentityID.random(using: &turn.random)
        socket = arrival.socket
        let home = turn.project.makeSessionID(
            mediaMode: turn.rules.matchMediaMode, now: turn.now, using: &turn.random)
        transmit(.initial(turn.admission(to: home, .publisher, match: nil)), &turn)
        turn.tell(
            .person(identity, .arrived(id, address: arrival.address, .none, PersonRecord(), home: home)))
    }

    var nextTimeout: Timestamp? {
        switch (emptyAt, askAgainAt) {
        case (let first?, let second?): min(first, second)
        case (let first, let second): first ?? second
        }
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        if let at = emptyAt, at <= turn.now {
            emptyAt = nil
            transmit(.empty, &turn)
        }
        if let at = askAgainAt, at <= turn.now { ask(.next, &turn) }
    }

    mutating func handle(_ event: ClientEvent, _ turn: inout Turn) {
        guard !isOver else { return }
        switch event {
        case .asked(let socket, let request):
            if socket == self.socket { ask(request, &turn) }
        case .deliver(let message): deliver(message, &turn)
        case .closed(let socket, _):
            if socket == self.socket { depart(&turn) }
        case .expel(_, let code):
            turn.close(socket, code, "")
            depart(&turn)
        // What only clients of our own protocol are told or can say.
        case .message, .unreadable, .resume, .joinRefused, .leftSession, .roulette, .call, .connected, .requested:
            return
        }
    }

    private mutating func ask(_ request: RouletteTokRequest, _ turn: inout Turn) {
        emptyAt = nil
        askAgainAt = nil
        turn.tell(.person(identity, .asked(id, request)))
    }

    private mutating func deliver(_ message: ServerMessage, _ turn: inout Turn) {
        switch message {
        // A penalty is waiting like any other: there is no word for it.
        case .roulette(.waiting): emptyAt = turn.now
        case .roulette(.matched(let matched)):
            emptyAt = nil
            transmit(.subscribe(matched.subscribe), &turn)
        case .roulette(.ended): transmit(.disconnectPartner, &turn)
        case .error(let message):
            if let wait = message.error.retryAfter {
                emptyAt = turn.now
                askAgainAt = turn.now + wait
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
    }
}
