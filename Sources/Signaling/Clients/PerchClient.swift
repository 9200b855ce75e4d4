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
        /// Waiting for the room to decide.
        case entering
        /// Admitted to the room, and joining its session.
        case joining(SessionID)
        case inside(SessionID)
        case over
    }

    /// The request numbers that identify this client's requests. Answers repeat them. Only errors of the first three
    /// matter.
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
    /// The display names of the people in the room.
    private var names: [ConnectionID: String] = [:]
    /// The stream that the device publishes.
    var stream: StreamID?
    var users: PerchUsers
    var pairs: [ConnectionID: PerchPair] = [:]
    private var messages: Budget
    private var negotiations: Budget
    private var malformed: Budget

    /// Requests to join the room, or to create it as a mesh room.
    init(_ arrival: PerchArrival, id: ConnectionID, _ turn: inout Turn) {
        self.id = id
        identity = turn.project.perchIdentity(user: arrival.place.user, address: arrival.address)
        (socket, place) = (arrival.socket, arrival.place)
        users = PerchUsers(own: arrival.place.user)
        messages = Budget(turn.rules.messages, now: turn.now)
        negotiations = Budget(turn.rules.negotiations, now: turn.now)
        malformed = Budget(Self.malformedRate(turn), now: turn.now)
        guard let name = RoomName(arrival.place.room) else {
            refuse(.perchRoomName, .forbidden, &turn)
            return
        }
        var options = RoomChanges()
        options.media = .mesh
        let shown = PersonName.vouched(arrival.place.user)
        let applicant = RoomApplicant(
            client: id, identity: identity, address: arrival.address,
            name: shown.isEmpty ? PersonName.generated(turn.project.personID(of: identity)) : shown, isPerch: true)
        let join = RoomVerb.Join(name: name, displayName: applicant.name, options: options)
        turn.tell(.roomRegister(.join(RoomApplication(applicant: applicant, re: Step.room.rawValue, join: join))))
    }

    private static func malformedRate(_ turn: Turn) -> Budget.Rate {
        Budget.Rate(perMinute: turn.rules.malformedPerMinute)
    }

    var isOver: Bool { state == .over }
    var nextTimeout: Timestamp? { pairs.values.compactMap(\.dueAt).min() }

    /// The room's session, while this client is in it.
    var session: SessionID? { if case .inside(let session) = state { session } else { nil } }

    mutating func handleTimeout(_ turn: inout Turn) {
        for member in pairs.keys.sorted() {
            guard let pair = pairs[member], let due = pair.dueAt, due <= turn.now else { continue }
            beginNegotiation(with: member, &turn)
        }
    }

    mutating func handle(_ event: ClientEvent, _ turn: inout Turn) {
        guard state != .over else { return }
        switch event {
        case .perch(let socket, let request): if socket == self.socket { receive(request, &turn) }
        case .perchSignal(let member, let signal): receive(signal, from: member, &turn)
        case .deliver(let message): deliver(message, &turn)
        case .deliverBroadcast(let broadcast): deliver(broadcast.message, &turn)
        case .room(let seat): room = seat
        case .joinRefused(_, let error, _): refuse(error, .forbidden, &turn)
        // The room then sends the client the reason.
        case .leftSession(_, _, let moderator):
            if let room { turn.tell(.room(room.name, .leftSession(id, by: moderator))) }
        case .closed(let socket, let leaving):
            if socket == self.socket { depart(leaving ? .clientDisconnected : .networkDisconnected, &turn) }
        case .expel(let error, let code, _): refuse(error, code, &turn)
        // Events that only other clients use.
        case .message, .unreadable, .asked, .moved, .resume, .roulette, .call, .connected, .requested: return
        }
    }

    // MARK: From the client

    private mutating func receive(_ request: PerchRequest, _ turn: inout Turn) {
        guard messages.take(turn.rules.messages, now: turn.now) == nil else {
            return refuse(.perchFlood, .tooMany, &turn)
        }
        switch request {
        case .ping: return
        case .unreadable:
            guard malformed.take(Self.malformedRate(turn), now: turn.now) != nil else { return }
            refuse(WireError(.malformed, "Too many malformed messages. Send valid ones."), .malformed, &turn)
        case .signal(let signal, to: let user):
            let cost = Double(1 + signal.size / turn.rules.bytesPerNegotiation)
            guard negotiations.take(turn.rules.negotiations, cost: cost, now: turn.now) == nil else {
                return refuse(.perchFlood, .tooMany, &turn)
            }
            // The user has left in the meantime.
            guard let member = users.member(user) else { return }
            pass(signal, to: member, &turn)
        }
    }

    // MARK: From the room and its session

    private mutating func deliver(_ message: ServerMessage, _ turn: inout Turn) {
        switch message {
        case .room(let notice): deliver(notice, &turn)
        case .session(let notice): deliver(notice, &turn)
        case .error(let failure):
            if let re = failure.re, re < Step.other.rawValue { refuse(failure.error, .forbidden, &turn) }
        default: return
        }
    }

    private mutating func deliver(_ notice: RoomNotice, _ turn: inout Turn) {
        switch notice {
        case .joined(let joined):
            for person in joined.people { names[person.connection] = person.displayName }
            join(joined.admission, &turn)
        case .person(let person): names[person.connection] = person.state == .left ? nil : person.displayName
        case .ended(let ended): refuse(.perchEnded(ended.reason), .forbidden, &turn)
        case .refused(let refused): refuse(WireError(refused.code, refused.message), .forbidden, &turn)
        case .waiting, .knock, .changed, .said, .reacted, .upload, .fileRemoved: return
        }
    }

    private mutating func join(_ admission: Admission, _ turn: inout Turn) {
        do throws(WireError) {
            let grant = try turn.project.verifySessionToken(admission.token, for: admission.session, now: turn.wallNow)
            state = .joining(admission.session)
            turn.tell(.session(admission.session, .join(id, identity, grant, re: Step.session.rawValue)))
        } catch {
            refuse(error, .forbidden, &turn)
        }
    }

    private mutating func deliver(_ notice: SessionNotice, _ turn: inout Turn) {
        switch notice {
        case .joined(let joined): joinedSession(joined, &turn)
        case .published(let published): stream = published.stream.id
        case .connectionCreated(let created): meet(created.connection.id, isNewcomer: true, &turn)
        case .connectionDestroyed(let gone): part(from: gone.connection, &turn)
        case .streamCreated(let created): streamCreated(created.stream, &turn)
        case .streamDestroyed(let ended): streamDestroyed(ended.stream, &turn)
        case .subscribed(let subscribed): pairs[subscribed.connection]?.begin(now: turn.now)
        case .negotiate(let negotiate): receive(negotiate, &turn)
        default: return
        }
    }

    private mutating func joinedSession(_ joined: SessionNotice.Joined, _ turn: inout Turn) {
        state = .inside(joined.session)
        var publish = SessionVerb.Publish()
        (publish.session, publish.name, publish.videoType) = (joined.session, names[id], .camera)
        ask(.publish(publish), .publish, &turn)
        for connection in joined.connections { meet(connection.id, isNewcomer: false, &turn) }
        // Include only the members whose offers the client must wait for. The others follow as `peer_connected`.
        let waitsFor = joined.connections.compactMap { pairs[$0.id] }.filter { !$0.offers }
        transmit(.peers(waitsFor.map(\.user)), &turn)
        for stream in joined.streams { streamCreated(stream, &turn) }
    }

    /// - Parameter isNewcomer: whether the other member joined after this client.
    private mutating func meet(_ member: ConnectionID, isNewcomer: Bool, _ turn: inout Turn) {
        guard member != id, pairs[member] == nil else { return }
        let user = users.add(member, named: names[member] ?? "")
        var pair = PerchPair(user: user, isPerch: member.isPerch, offers: !member.isPerch || isNewcomer)
        if member.isPerch { pair.begin(now: turn.now) }
        pairs[member] = pair
    }

    private mutating func part(from member: ConnectionID, _ turn: inout Turn) {
        guard let pair = pairs.removeValue(forKey: member) else { return }
        // PerchRTC keeps a working media connection if it only receives `peer_removed`.
        if let connection = pair.connection {
            transmit(.signal(.init(connection: connection, .bye), from: pair.user), &turn)
        }
        if pair.wasTold || !pair.offers { transmit(.removed(pair.user), &turn) }
        users.remove(member)
    }

    // MARK: Sending

    private func ask(_ verb: SessionVerb, _ step: Step, _ turn: inout Turn) {
        if let session { turn.tell(.session(session, .verb(id, re: step.rawValue, verb))) }
    }

    /// Sends a request whose answer is ignored.
    func ask(_ verb: SessionVerb, _ turn: inout Turn) { ask(verb, .other, &turn) }

    func transmit(_ notice: PerchNotice, _ turn: inout Turn) { turn.transmit(socket, notice.encode(for: place)) }

    // MARK: Leaving

    /// Sends the client the reason why it cannot be in the room, and closes its socket.
    private mutating func refuse(_ error: WireError, _ code: CloseCode, _ turn: inout Turn) {
        transmit(.refused(error), &turn)
        turn.close(socket, code, error.message)
        depart(.forceDisconnected, &turn)
    }

    private mutating func depart(_ reason: GoneReason, _ turn: inout Turn) {
        if let session { turn.tell(.session(session, .gone(id, reason))) }
        if let room { turn.tell(.room(room.name, .gone(id))) }
        pairs = [:]
        state = .over
    }
}

extension Project {
    /// Returns the identity for a device that only states its name, so that a ban still applies when it reconnects. The
    /// identity proves nothing, because another device with the same name on the same network gets the same one. It
    /// therefore grants no rights.
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
    /// Size of the content in bytes, for budgets.
    fileprivate var size: Int {
        switch content {
        case .offer(let sdp), .answer(let sdp): sdp.utf8.count
        case .candidate(let candidate): candidate.candidate.utf8.count
        case .bye: 0
        }
    }
}
