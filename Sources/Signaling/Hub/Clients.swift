import Wire

/// Everything that has a `ConnectionID`: clients, legacy clients, clients of PerchRTC's protocol, and WHIP and WHEP
/// resources. Also maps each socket to its connection.
///
/// There are four tables rather than one table of enum values, because an enum's payload cannot be mutated in place. Taking
/// the payload out of the enum would copy a client's replay buffer for every message.
/// Invariant: a connection is in exactly one of the four tables.
struct Clients: Sendable {
    private var sockets: [SocketID: ConnectionID] = [:]
    private var clients = Machines<Client>()
    private var legacyClients = Machines<LegacyClient>()
    private var perchClients = Machines<PerchClient>()
    /// The number of the latest client of PerchRTC's protocol.
    private var lastPerch: UInt64 = 0
    private var resources = Machines<MediaResource>()
    private var register = MediaResourceRegister()
    /// The clients on linked devices, keyed by the device's own identity, which differs from the identity of the
    /// person to whom the device belongs.
    private(set) var linked: [IdentityID: Set<ConnectionID>] = [:]

    /// The number of clients that are connected or can still resume, without WHIP and WHEP resources.
    var count: Int { clients.count + legacyClients.count + perchClients.count }
    var resourceCount: Int { resources.count }

    func contains(_ id: ConnectionID) -> Bool {
        clients.contains(id) || resources.contains(id) || legacyClients.contains(id) || perchClients.contains(id)
    }

    /// Returns the native clients that are in no room, session, chat or call, in a fixed order. Leaves out all clients of a person who has
    /// a client in one of these, because all devices of a person are on one node.
    ///
    /// - Parameter staying: other people whose clients are left out.
    func idle(except staying: Set<IdentityID>) -> [ConnectionID] {
        var staying = staying
        clients.forEach { if $0.isBusy { staying.insert($0.identity) } }
        return clients.ids { !staying.contains($0.identity) }.sorted()
    }

    /// The sockets whose clients may have media: all but those of native clients that are in no room, session, chat or call.
    var socketsWithMedia: Set<SocketID> {
        Set(sockets.filter { clients.read($0.value) { $0.isBusy } ?? true }.keys)
    }

    // MARK: Machines

    mutating func deliver(_ event: ClientEvent, to id: ConnectionID, _ context: inout Context) -> Timestamp? {
        if !legacyClients.isEmpty, legacyClients.contains(id) {
            return legacyClients.deliver(event, to: id, &context).wakeUp
        }
        if id.isPerch, perchClients.contains(id) { return perchClients.deliver(event, to: id, &context).wakeUp }
        if !resources.isEmpty, resources.contains(id) { return settle(resources.deliver(event, to: id, &context)) }
        return settle(clients.deliver(event, to: id, &context))
    }

    mutating func wake(_ id: ConnectionID, at moment: Timestamp, _ context: inout Context) -> Timestamp? {
        if legacyClients.contains(id) { return legacyClients.wake(id, at: moment, &context).wakeUp }
        if id.isPerch, perchClients.contains(id) { return perchClients.wake(id, at: moment, &context).wakeUp }
        if resources.contains(id) { return settle(resources.wake(id, at: moment, &context)) }
        return settle(clients.wake(id, at: moment, &context))
    }

    private mutating func settle(_ delivered: Delivered<MediaResource>) -> Timestamp? {
        if let resource = delivered.ended {
            sockets[resource.socket] = nil
            register.release(resource)
        }
        return delivered.wakeUp
    }

    private mutating func settle(_ delivered: Delivered<Client>) -> Timestamp? {
        if let client = delivered.ended, client.isOnLinkedDevice {
            linked[client.device]?.remove(client.id)
            if linked[client.device]?.isEmpty == true { linked[client.device] = nil }
        }
        return delivered.wakeUp
    }

    // MARK: Sockets

    /// Sends an event to the client that uses this socket. Does nothing if the socket has already closed.
    func tell(_ socket: SocketID, _ event: ClientEvent, _ context: inout Context) {
        if let client = sockets[socket] { context.tell(.client(client, event)) }
    }

    mutating func closed(_ socket: SocketID, leaving: Bool, _ context: inout Context) {
        if let client = sockets.removeValue(forKey: socket) {
            context.tell(.client(client, .closed(socket, leaving: leaving)))
        }
    }

    /// The person whose client uses this socket; nil if there is none, and for legacy clients, clients of PerchRTC's
    /// protocol, and WHIP and WHEP resources.
    func person(on socket: SocketID) -> IdentityID? {
        sockets[socket].flatMap { id in clients.read(id) { $0.identity } }
    }

    /// The socket of this client; nil if the client has dropped or is gone, and for legacy clients, clients of
    /// PerchRTC's protocol, and WHIP and WHEP resources.
    func socket(of client: ConnectionID) -> SocketID? { clients.read(client) { $0.socket } ?? nil }

    // MARK: Arrivals

    /// Forwards a resume request to the client connection that it names. Any other arrival becomes a new client.
    mutating func receive(_ arrival: Arrival, _ context: inout Context) {
        guard let claim = arrival.resume else { return context.tell(.reception(arrival)) }
        guard let client = ResumeSecret.client(of: claim.secret), clients.contains(client) else {
            return context.admitWithoutResume(arrival)
        }
        sockets[arrival.socket] = client
        context.tell(.client(client, .resume(arrival)))
    }

    mutating func makeClient(_ arrival: Arrival, _ context: inout Context) {
        let id: ConnectionID = context.newID()
        sockets[arrival.socket] = id
        let client = Client(arrival, id: id, &context)
        if client.isOnLinkedDevice { linked[client.device, default: []].insert(id) }
        _ = clients.insert(client, id)
    }

    /// Creates a legacy client, which cannot resume. The first message to the client contains the session in which it
    /// publishes.
    mutating func makeLegacy(_ arrival: LegacyArrival, _ context: inout Context) {
        let id: ConnectionID = context.newID()
        sockets[arrival.socket] = id
        _ = legacyClients.insert(LegacyClient(arrival, id: id, &context), id)
    }

    /// Creates a client of PerchRTC's protocol. It cannot resume.
    mutating func makePerch(_ arrival: PerchArrival, _ context: inout Context) {
        var id: ConnectionID
        repeat {
            lastPerch &+= 1
            id = .perch(at: context.tag, number: lastPerch, using: &context.random)
        } while perchClients.contains(id)
        sockets[arrival.socket] = id
        _ = perchClients.insert(PerchClient(arrival, id: id, &context), id)
    }

    /// Creates a WHIP or WHEP resource. If it is rejected, answers the POST with the error.
    ///
    /// - Returns: the resource's id and when to wake it, or nil if it was rejected.
    mutating func makeResource(_ arrival: ResourceArrival, _ context: inout Context) -> (
        id: ConnectionID, wakeUp: Timestamp?
    )? {
        do throws(WireError) {
            guard context.rules.routesMedia else {
                throw WireError(.mediaUnavailable, "WHIP and WHEP are not available: this server does not route media.")
            }
            try register.admit(arrival, context)
        } catch {
            context.reply(arrival.socket, .refused(re: nil, error))
            context.close(arrival.socket, .normal, "")
            return nil
        }
        let id: ConnectionID = context.newID()
        sockets[arrival.socket] = id
        return (id, resources.insert(MediaResource(arrival, id: id, &context), id))
    }
}
