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
public struct OriginalClient: Equatable, Sendable {
    let id: ConnectionID
    let identity: IdentityID
    private let socket: SocketID
    private(set) var isGone = false
    /// When to say that nobody is there. Not at once: somebody may be found in the same moment, and then nobody has to wait.
    private var emptyAt: Timestamp?
    /// When to ask again for a client that may not wait now: it has no way to be told why.
    private var askAgainAt: Timestamp?

    /// - Parameter home: the session this client publishes in, for as long as it is here.
    init(
        _ arrival: OriginalArrival, id: ConnectionID, identity: IdentityID, home: Admission,
        into effects: inout [Effect]
    ) {
        self.id = id
        self.identity = identity
        socket = arrival.socket
        effects.append(.transmit(socket, RouletteTokEvent.initial(home).packet))
        effects.tell(
            .person(
                identity, .arrived(id, address: arrival.address, .none, PersonRecord(), home: home.session)
            )
        )
    }

    var nextTimeout: Timestamp? {
        switch (emptyAt, askAgainAt) {
        case (let first?, let second?): min(first, second)
        case (let first, let second): first ?? second
        }
    }

    mutating func handleTimeout(now: Timestamp, into effects: inout [Effect]) {
        if let at = emptyAt, at <= now {
            emptyAt = nil
            transmit(.empty, into: &effects)
        }
        if let at = askAgainAt, at <= now { ask(.next, into: &effects) }
    }

    mutating func handle(_ event: ClientEvent, now: Timestamp, into effects: inout [Effect]) {
        guard !isGone else { return }
        switch event {
        case .asked(let socket, let request):
            if socket == self.socket { ask(request, into: &effects) }
        case .deliver(let message): deliver(message, now: now, into: &effects)
        case .closed(let socket, _):
            if socket == self.socket { depart(into: &effects) }
        case .expel(_, let code):
            effects.append(.close(socket, code, ""))
            depart(into: &effects)
        // What only clients of our own protocol are told or can say.
        case .message, .unreadable, .resume, .joinRefused, .leftSession, .roulette, .call, .connected, .requested:
            return
        }
    }

    private mutating func ask(_ request: RouletteTokRequest, into effects: inout [Effect]) {
        emptyAt = nil
        askAgainAt = nil
        effects.tell(.person(identity, .asked(id, request)))
    }

    private mutating func deliver(_ message: ServerMessage, now: Timestamp, into effects: inout [Effect]) {
        switch message {
        // A penalty is waiting like any other: there is no word for it.
        case .waiting: emptyAt = now
        case .matched(let matched):
            emptyAt = nil
            transmit(.subscribe(matched.subscribe), into: &effects)
        case .ended: transmit(.disconnectPartner, into: &effects)
        case .error(let message):
            if let wait = message.error.retryAfter {
                emptyAt = now
                askAgainAt = now + wait
            } else {
                effects.append(.transmit(socket, SocketIOPacket.error(message.error.code).encode()))
            }
        default: return
        }
    }

    private func transmit(_ event: RouletteTokEvent, into effects: inout [Effect]) {
        effects.append(.transmit(socket, event.packet))
    }

    private mutating func depart(into effects: inout [Effect]) {
        isGone = true
        effects.tell(.person(identity, .departed(id)))
    }
}
