import Wire

/// A client of PerchRTC's protocol that has just connected, with a token that names the room and the device.
public struct PerchArrival: Equatable, Sendable {
    public var socket: SocketID
    /// The remote address in canonical text, for per-address limits.
    public var address: String
    public var place: PerchPlace

    public init(socket: SocketID, address: String, place: PerchPlace) {
        (self.socket, self.address, self.place) = (socket, address, place)
    }
}

/// A client of PerchRTC's protocol. It is in a mesh room for as long as its socket is open.
///
/// Owns only the translation: the room decides whether to admit the client, and the session relays its negotiations.
/// The client publishes one stream, and subscribes to one camera of each native client. Native clients need not support
/// the protocol.
/// Invariants: for each pair of members, only messages about the current peer connection are relayed, in both
/// directions. The client sees each other member under exactly one user ID, which differs from its own.
public struct PerchClient: Machine, Equatable, Sendable {
    typealias ID = ConnectionID

    /// Legal transitions: `entering` → `joining`, `over`; `joining` → `inside`, `over`; `inside` → `over`.
    enum State: Equatable, Sendable {
        /// Waiting for the room to admit or refuse the client.
        case entering
        /// Admitted to the room, and joining its session.
        case joining(SessionID)
        case inside(SessionID)
        case over
    }

    /// The numbers of this client's requests. An answer repeats the number of its request, and so shows which request
    /// it belongs to. An error in reply to `room`, `session` or `publish` disconnects the client. Other errors are
    /// ignored.
    private enum Step: UInt64 {
        case room = 1
        case session, publish
        case other
    }

    let id: ConnectionID
    let identity: IdentityID
    let socket: SocketID
    let place: PerchPlace
    private(set) var state = State.entering
    private var room: RoomSeat?
    /// The display names of the people in the room, keyed by connection.
    private var names: [ConnectionID: String] = [:]
    /// The stream that this client publishes; nil until the session has accepted it.
    var stream: StreamID?
    var users: PerchUsers
    var pairs: [ConnectionID: PerchPair] = [:]
    private var messages: Budget
    private var negotiations: Budget
    private var malformed: Budget

    /// Creates the client, and requests to join the room. If there is no such room, this creates it as a mesh room.
    /// Refuses the client if the room's name is invalid.
    init(_ arrival: PerchArrival, id: ConnectionID, _ context: inout Context) {
        let application = Self.application(arrival.place, address: arrival.address, client: id, context.project)
        (self.id, identity) = (id, application.applicant.identity)
        (socket, place) = (arrival.socket, arrival.place)
        users = PerchUsers(own: arrival.place.user)
        messages = Budget(context.rules.messages, now: context.now)
        negotiations = Budget(context.rules.negotiations, now: context.now)
        malformed = Budget(Self.malformedRate(context), now: context.now)
        if application.join.name == nil {
            refuse(.perchRoomName, .forbidden, &context)
        } else {
            context.tell(.roomRegistry(.join(application)))
        }
    }

    private static func malformedRate(_ context: Context) -> Budget.Rate {
        Budget.Rate(perMinute: context.rules.malformedPerMinute)
    }

    var isOver: Bool { state == .over }
    var nextTimeout: Timestamp? { pairs.values.compactMap(\.dueAt).min() }

    /// The room's session; nil unless this client is in it.
    var session: SessionID? { if case .inside(let session) = state { session } else { nil } }

    mutating func handleTimeout(_ context: inout Context) {
        for member in pairs.keys.sorted() {
            guard let pair = pairs[member], let due = pair.dueAt, due <= context.now else { continue }
            beginNegotiation(with: member, &context)
        }
    }

    mutating func handle(_ event: ClientEvent, _ context: inout Context) {
        guard state != .over else { return }
        switch event {
        case .perch(let socket, let request): if socket == self.socket { receive(request, &context) }
        case .perchSignal(let member, let signal): receive(signal, from: member, &context)
        case .deliver(let message): deliver(message, &context)
        case .deliverBroadcast(let broadcast): deliver(broadcast.message, &context)
        case .room(let seat): room = seat
        case .joinRefused(_, let error, _): refuse(error, .forbidden, &context)
        // The client is no longer in the session, so leave the room too. The room then sends the client the reason.
        case .leftSession(_, _, let moderator):
            if let room { context.tell(.room(room.name, .leftSession(id, by: moderator))) }
        case .closed(let socket, let leaving):
            if socket == self.socket { depart(leaving ? .clientDisconnected : .networkDisconnected, &context) }
        case .expel(let error, let code, _): refuse(error, code, &context)
        // Ignore events that only other clients use.
        case .message, .unreadable, .asked, .suspended, .recovered, .moved, .resume, .roulette, .call, .connected,
            .requested:
            return
        }
    }

    // MARK: From the client

    private mutating func receive(_ request: PerchRequest, _ context: inout Context) {
        guard messages.take(context.rules.messages, now: context.now) == nil else {
            return refuse(.perchFlood, .tooMany, &context)
        }
        switch request {
        case .ping: return
        case .unreadable:
            guard malformed.take(Self.malformedRate(context), now: context.now) != nil else { return }
            refuse(WireError(.malformed, "Too many malformed messages. Send valid ones."), .malformed, &context)
        case .signal(let signal, to: let user):
            let cost = Double(1 + signal.size / context.rules.bytesPerNegotiation)
            guard negotiations.take(context.rules.negotiations, cost: cost, now: context.now) == nil else {
                return refuse(.perchFlood, .tooMany, &context)
            }
            // Ignore a message to a user who has left in the meantime.
            guard let member = users.member(user) else { return }
            pass(signal, to: member, &context)
        }
    }

    // MARK: From the room and its session

    private mutating func deliver(_ message: ServerMessage, _ context: inout Context) {
        switch message {
        case .room(let notice): deliver(notice, &context)
        case .session(let notice): deliver(notice, &context)
        case .error(let failure):
            if let re = failure.re, re < Step.other.rawValue { refuse(failure.error, .forbidden, &context) }
        default: return
        }
    }

    private mutating func deliver(_ notice: RoomNotice, _ context: inout Context) {
        switch notice {
        case .joined(let joined):
            for person in joined.people { names[person.connection] = person.displayName }
            join(joined.admission, &context)
        case .person(let person): names[person.connection] = person.state == .left ? nil : person.displayName
        case .ended(let ended): refuse(.perchEnded(ended.reason), .forbidden, &context)
        case .refused(let refused): refuse(WireError(refused.code, refused.message), .forbidden, &context)
        case .waiting, .knock, .changed, .said, .reacted, .upload, .fileRemoved: return
        }
    }

    private mutating func join(_ admission: Admission, _ context: inout Context) {
        do throws(WireError) {
            let grant = try context.project.verifySessionToken(
                admission.token, for: admission.session, now: context.wallNow)
            state = .joining(admission.session)
            context.tell(.session(admission.session, .join(id, identity, grant, re: Step.session.rawValue)))
        } catch {
            refuse(error, .forbidden, &context)
        }
    }

    private mutating func deliver(_ notice: SessionNotice, _ context: inout Context) {
        switch notice {
        case .joined(let joined): joinedSession(joined, &context)
        case .published(let published): stream = published.stream.id
        case .connectionCreated(let created): meet(created.connection.id, isNewcomer: true, &context)
        case .connectionDestroyed(let gone): part(from: gone.connection, &context)
        case .streamCreated(let created): streamCreated(created.stream, &context)
        case .streamDestroyed(let ended): streamDestroyed(ended.stream, &context)
        case .subscribed(let subscribed): pairs[subscribed.connection]?.begin(now: context.now)
        case .negotiate(let negotiate): receive(negotiate, &context)
        default: return
        }
    }

    private mutating func joinedSession(_ joined: SessionNotice.Joined, _ context: inout Context) {
        state = .inside(joined.session)
        var publish = SessionVerb.Publish()
        (publish.session, publish.name, publish.videoType) = (joined.session, names[id], .camera)
        ask(.publish(publish), .publish, &context)
        for connection in joined.connections { meet(connection.id, isNewcomer: false, &context) }
        // List only the members whose offers the client must wait for. For each of the other members, the client later
        // receives `peer_connected`, which asks it to make an offer.
        let waitsFor = joined.connections.compactMap { pairs[$0.id] }.filter { !$0.offers }
        transmit(.peers(waitsFor.map(\.user)), &context)
        for stream in joined.streams { streamCreated(stream, &context) }
    }

    /// Adds another member of the session. Schedules the negotiation with it if it uses PerchRTC's protocol and this
    /// client makes the offers.
    ///
    /// - Parameter isNewcomer: whether the other member joined after this client.
    private mutating func meet(_ member: ConnectionID, isNewcomer: Bool, _ context: inout Context) {
        guard member != id, pairs[member] == nil else { return }
        let user = users.add(member, named: names[member] ?? "")
        var pair = PerchPair(user: user, isPerch: member.isPerch, offers: !member.isPerch || isNewcomer)
        if member.isPerch { pair.begin(now: context.now) }
        pairs[member] = pair
    }

    private mutating func part(from member: ConnectionID, _ context: inout Context) {
        guard let pair = pairs.removeValue(forKey: member) else { return }
        // Send a bye too, because PerchRTC keeps a working media connection if it only receives `peer_removed`.
        if let connection = pair.connection {
            transmit(.signal(.init(connection: connection, .bye), from: pair.user), &context)
        }
        if pair.isAnnounced || !pair.offers { transmit(.removed(pair.user), &context) }
        users.remove(member)
    }

    // MARK: Sending

    private func ask(_ verb: SessionVerb, _ step: Step, _ context: inout Context) {
        if let session { context.tell(.session(session, .verb(id, re: step.rawValue, verb))) }
    }

    /// Sends a request whose answer is ignored.
    func ask(_ verb: SessionVerb, _ context: inout Context) { ask(verb, .other, &context) }

    func transmit(_ notice: PerchNotice, _ context: inout Context) {
        context.transmit(socket, notice.encode(for: place))
    }

    // MARK: Leaving

    /// Sends the client the reason why it cannot be in the room, and closes its socket.
    private mutating func refuse(_ error: WireError, _ code: CloseCode, _ context: inout Context) {
        transmit(.refused(error), &context)
        context.close(socket, code, error.message)
        depart(.forceDisconnected, &context)
    }

    private mutating func depart(_ reason: GoneReason, _ context: inout Context) {
        if let session { context.tell(.session(session, .gone(id, reason))) }
        if let room { context.tell(.room(room.name, .gone(id))) }
        pairs = [:]
        state = .over
    }
}

extension PerchClient {
    /// Returns the request to join the room, which is created as a mesh room if it does not exist. The request has no
    /// room name if the one in `place` is invalid.
    ///
    /// - Parameter client: the client's id. Omit it to only check whether the client could join.
    package static func application(
        _ place: PerchPlace, address: String, client: ConnectionID = ConnectionID(high: 0, low: 0), _ project: Project
    ) -> RoomApplication {
        var options = RoomChanges()
        options.media = .mesh
        let identity = project.perchIdentity(user: place.user, address: address)
        let name = PersonName.vouched(place.user)
        // The client has no abilities, because the protocol has no routed media, passwords, lobbies, files, or requests
        // from hosts.
        let applicant = RoomApplicant(
            client: client, identity: identity, address: address,
            name: name.isEmpty ? PersonName.generated(project.personID(of: identity)) : name, abilities: [])
        let join = RoomVerb.Join(name: RoomName(place.room), displayName: applicant.name, options: options)
        return RoomApplication(applicant: applicant, re: Step.room.rawValue, join: join)
    }
}

extension Project {
    /// Returns the identity for a device that only states its name. A device that reconnects from the same address
    /// gets the same identity, so a ban still applies. The identity proves nothing and grants no rights, because
    /// another device with the same name and address gets it too.
    func perchIdentity(user: String, address: String) -> IdentityID {
        let code = serverKey.authenticationCode(Array("confab perch\n\(address)\n\(user)".utf8))
        return IdentityID(bytes: code) ?? IdentityID(high: 0, low: 0)
    }
}

extension WireError {
    static let perchRoomName = WireError(.invalidName, "Invalid room name. Choose another one.")
    fileprivate static let perchFlood = WireError(
        .rateLimited, "Too many messages. Send them more slowly.", retryable: true)

    fileprivate static func perchEnded(_ reason: RoomEndReason) -> WireError {
        switch reason {
        case .removed: WireError(.roomRefused, "A host removed you from this room. Ask a host before you join again.")
        case .banned: .roomBanned
        case .closed: WireError(.roomNotFound, "This room was closed. Join another room.")
        case .replaced: WireError(.replaced, "You joined this room on another connection. Use that one.")
        }
    }
}

extension PerchSignal {
    /// The size in bytes of the session description or candidate, for budgets; 0 for a bye.
    fileprivate var size: Int {
        switch content {
        case .offer(let sdp), .answer(let sdp): sdp.utf8.count
        case .candidate(let candidate): candidate.candidate.utf8.count
        case .bye: 0
        }
    }
}
