import Wire

/// Everything that has a `ConnectionID`: clients, clients of RouletteTok's wire and resources of WHIP and WHEP, and which
/// sockets they are on.
///
/// Three tables and not one of an enum: the payload of an enum cannot be changed in place, and taking it out would copy a
/// client's replay buffer for every message. Invariant: a connection is in one of the three.
struct Clients: Sendable {
    private var sockets: [SocketID: ConnectionID] = [:]
    private var clients = Machines<Client>()
    private var originals = Machines<OriginalClient>()
    private var resources = Machines<MediaResource>()
    private var register = MediaResourceRegister()

    var resourceCount: Int { resources.count }

    // MARK: Machines

    mutating func deliver(_ event: ClientEvent, to id: ConnectionID, _ turn: inout Turn) -> Timestamp? {
        defer { count(&turn) }
        if !originals.isEmpty, originals.contains(id) { return originals.deliver(event, to: id, &turn).wakeUp }
        if !resources.isEmpty, resources.contains(id) { return settle(resources.deliver(event, to: id, &turn)) }
        return clients.deliver(event, to: id, &turn).wakeUp
    }

    mutating func wake(_ id: ConnectionID, at moment: Timestamp, _ turn: inout Turn) -> Timestamp? {
        defer { count(&turn) }
        if originals.contains(id) { return originals.wake(id, at: moment, &turn).wakeUp }
        if resources.contains(id) { return settle(resources.wake(id, at: moment, &turn)) }
        return clients.wake(id, at: moment, &turn).wakeUp
    }

    private mutating func settle(_ delivered: Delivered<MediaResource>) -> Timestamp? {
        if let resource = delivered.ended {
            sockets[resource.socket] = nil
            register.release(address: resource.address, fingerprint: resource.grant.fingerprint)
        }
        return delivered.wakeUp
    }

    private func count(_ turn: inout Turn) { turn.figures.online = clients.count + originals.count }

    // MARK: Sockets

    /// Nothing happens if the socket has closed meanwhile.
    func tell(_ socket: SocketID, _ event: ClientEvent, _ turn: inout Turn) {
        if let client = sockets[socket] { turn.tell(.client(client, event)) }
    }

    mutating func closed(_ socket: SocketID, leaving: Bool, _ turn: inout Turn) {
        if let client = sockets.removeValue(forKey: socket) {
            turn.tell(.client(client, .closed(socket, leaving: leaving)))
        }
    }

    // MARK: Arrivals

    /// A resume goes to the client it names; all other arrivals are new clients.
    mutating func receive(_ arrival: Arrival, _ turn: inout Turn) {
        guard let claim = arrival.resume else { return turn.tell(.reception(arrival)) }
        guard let client = ResumeSecret.client(of: claim.secret), clients.contains(client) else {
            return turn.tell(.reception(arrival.withoutResume(&turn)))
        }
        sockets[arrival.socket] = client
        turn.tell(.client(client, .resume(arrival)))
    }

    mutating func makeClient(_ arrival: Arrival, _ turn: inout Turn) {
        let id = ConnectionID.random(using: &turn.random)
        sockets[arrival.socket] = id
        _ = clients.insert(Client(arrival, id: id, &turn), id)
        count(&turn)
    }

    /// Clients of RouletteTok's wire are always new. Each gets a session of its own first.
    mutating func makeOriginal(_ arrival: OriginalArrival, _ turn: inout Turn) {
        let id = ConnectionID.random(using: &turn.random)
        sockets[arrival.socket] = id
        _ = originals.insert(OriginalClient(arrival, id: id, &turn), id)
        count(&turn)
    }

    /// - Returns: the resource, and when to wake it; nil if it was refused.
    mutating func makeResource(_ arrival: ResourceArrival, _ turn: inout Turn) -> (
        id: ConnectionID, wakeUp: Timestamp?
    )? {
        do throws(WireError) {
            guard turn.rules.routesMedia else { throw WireError(.mediaUnavailable, "This server routes no media.") }
            try register.admit(arrival, turn.rules)
        } catch {
            turn.reply(arrival.socket, .refused(re: nil, error))
            turn.close(arrival.socket, .normal, "")
            return nil
        }
        let id = ConnectionID.random(using: &turn.random)
        sockets[arrival.socket] = id
        return (id, resources.insert(MediaResource(arrival, id: id, &turn), id))
    }
}
