import Wire

/// A room: people who know its name see each other in one session.
///
/// Decides who may come in, who is host, and what hosts may do. The session owns streams and media; the room gives each person
/// a place there, with a token that is bound to it.
/// Invariants: while anyone is in the room, someone is host. At most as many people are in it as the capacity was when they
/// joined. Each person came in by the rules of `join` or was admitted. A banned person is never in it, and nobody who left can
/// use their token.
public struct Room: Machine, Equatable, Sendable {
    typealias ID = RoomName

    /// Legal transitions: `new` → `open`; `open` → `empty`, `over`; `empty` → `open`, `over`.
    enum State: Equatable, Sendable {
        case new
        case open
        /// Nobody is in the room, which ends at this time. It wakes up at `checkAt` to see whether it is that late.
        case empty(until: Timestamp, checkAt: Timestamp)
        case over
    }

    let name: RoomName
    private(set) var state = State.new
    private(set) var session = SessionID.unset
    /// The person who always comes in, and is host: who created the room. Nil for a room of the operators, and after another
    /// host removed this person or changed their role.
    var creator: IdentityID?
    var settings: RoomSettings
    var roster = RoomRoster()
    var lobby = RoomLobby()
    var chat = RoomChat()
    /// Oldest ban first.
    private(set) var bans: [IdentityID] = []
    /// The budget for what one person makes the server send to all; nil if it is full.
    private var traffic: Budget?

    private init(_ name: RoomName, _ settings: RoomSettings) { (self.name, self.settings) = (name, settings) }

    static func make(_ id: RoomName, for event: RoomEvent, _ turn: inout Turn) -> Room? {
        if case .open(let settings, _) = event { Room(id, settings) } else { nil }
    }

    static func orphan(_ event: RoomEvent, _ id: RoomName, _ turn: inout Turn) {
        switch event {
        case .join(let application): turn.fail(.noRoom, application.request)
        case .verb(let client, let re, _): turn.fail(.notInRoom, Request(client, re))
        case .open, .away, .gone, .leftSession, .close: return
        }
    }

    var options: RoomOptions { settings.options }
    var isOver: Bool { state == .over }

    // MARK: Time

    /// A timer cannot be canceled, and stays in the hub after its room has ended. A persistent room waits for a year, so it
    /// waits in steps. Otherwise a client that opens and ends many rooms would fill the memory with timers.
    private static let longestTimer: Duration = .seconds(3600)

    var nextTimeout: Timestamp? { if case .empty(_, let checkAt) = state { checkAt } else { nil } }

    mutating func handleTimeout(_ turn: inout Turn) {
        guard case .empty(let until, let checkAt) = state, checkAt <= turn.now else { return }
        if until <= turn.now { end(&turn) } else { waitForPeople(until: until, turn) }
    }

    private mutating func waitForPeople(until: Timestamp, _ turn: Turn) {
        state = .empty(until: until, checkAt: min(until, turn.now + Self.longestTimer))
    }

    /// Notes whether anyone is in the room.
    mutating func updateState(_ turn: Turn) {
        guard state != .over else { return }
        if !roster.isEmpty { return state = .open }
        if case .empty = state { return }
        let time = options.persistent ? turn.rules.roomRetention : turn.rules.roomEmptyGrace
        waitForPeople(until: turn.now + time, turn)
    }

    // MARK: Events

    mutating func handle(_ event: RoomEvent, _ turn: inout Turn) {
        switch event {
        case .open(_, let creator):
            guard state == .new else { return }
            self.creator = creator
            session = turn.project.makeSessionID(
                mediaMode: options.media == .routed ? .routed : .relayed, relayedOnly: options.media == .mesh,
                now: turn.now, using: &turn.random)
            updateState(turn)
        case .join(let application): join(application, &turn)
        case .verb(let client, let re, let verb): perform(verb, Request(client, re), &turn)
        case .away(let client, let isAway):
            lobby.setAway(isAway, client)
            guard roster.setDropped(isAway, client), let member = roster[client] else { return }
            // The client itself too: it may have come in, or seen its own state, while it was away.
            broadcast(.person(member.person), &turn)
        case .gone(let client): leave(client, &turn)
        case .leftSession(let client): remove(client, .removed, &turn)
        case .close: end(&turn)
        }
    }

    // MARK: Leaving

    /// The client left or lost its connection for good.
    mutating func leave(_ client: ConnectionID, _ turn: inout Turn) {
        if let applicant = lobby.remove(client) {
            turn.tell(.client(client, .room(nil)))
            return tellKnock(of: applicant, waiting: false, &turn)
        }
        guard let member = roster.remove(client) else { return }
        gone(member, .clientDisconnected, &turn)
    }

    /// Removes someone who did not leave.
    mutating func remove(_ client: ConnectionID, _ reason: RoomEndReason, _ turn: inout Turn) {
        guard let member = roster.remove(client) else { return }
        // PerchRTC's clients join again by themselves when they lose their connection.
        if member.isPerch, reason == .removed { lobby.sendAway(member.identity, turn) }
        if member.identity == creator, reason != .replaced { creator = nil }
        turn.send(.room(.ended(.init(name: name, reason: reason))), to: client)
        gone(member, reason == .replaced ? .networkDisconnected : .forceDisconnected, &turn)
    }

    /// Takes the place in the session from someone who is no longer in the room, and tells the others.
    private mutating func gone(_ member: RoomRoster.Member, _ reason: GoneReason, _ turn: inout Turn) {
        turn.tell(.client(member.client, .room(nil)))
        turn.tell(.session(session, .room(.placeClosed(member.binding, reason))))
        var person = member.person
        person.state = .left
        broadcast(.person(person), &turn)
        if let host = roster.appointHost() { roleChanged(of: host, &turn) }
        updateState(turn)
        admitWaiting(&turn)
    }

    /// Ends the room for everyone.
    private mutating func end(_ turn: inout Turn) {
        guard state != .over else { return }
        state = .over
        for applicant in lobby.removeAll() { refuse(applicant, .roomEnded, &turn) }
        while let member = roster.members.first {
            _ = roster.remove(member.client)
            turn.send(.room(.ended(.init(name: name, reason: .closed))), to: member.client)
            turn.tell(.client(member.client, .room(nil)))
            turn.tell(.session(session, .room(.placeClosed(member.binding, .forceDisconnected))))
        }
        turn.tell(.roomRegister(.ended(name)))
    }

    mutating func ban(_ identity: IdentityID, _ turn: Turn) {
        guard !bans.contains(identity) else { return }
        bans.append(identity)
        if bans.count > turn.rules.roomBans { bans.removeFirst() }
    }

    // MARK: Telling

    /// Charges a message to everyone in the room to its budget, which is the same as a session's.
    mutating func charge(textSize: Int = 0, _ turn: Turn) throws(WireError) {
        let cost = (256 + textSize) * roster.count
        guard let wait = traffic.take(turn.rules.sessionTraffic, cost: Double(cost), now: turn.now) else { return }
        throw .tooFast(wait)
    }

    func broadcast(_ notice: RoomNotice, except excluded: ConnectionID? = nil, _ turn: inout Turn) {
        let message = BroadcastMessage(.room(notice))
        for member in roster.members where member.client != excluded {
            turn.tell(.client(member.client, .deliverBroadcast(message)))
        }
    }

    /// Tells everyone of a person's new role, the session what it allows, and the person who waits in the lobby.
    func roleChanged(of member: RoomRoster.Member, _ turn: inout Turn) {
        turn.tell(.session(session, .room(.place(member.binding, member.role))))
        broadcast(.person(member.person), &turn)
        if member.role.moderates { sendKnocks(to: member.client, &turn) }
    }

    func tellKnock(of applicant: RoomApplicant, waiting: Bool, _ turn: inout Turn) {
        let knock = RoomNotice.Knock(connection: applicant.client, displayName: applicant.name, waiting: waiting)
        for host in roster.moderators { turn.send(.room(.knock(knock)), to: host) }
    }

    func sendKnocks(to client: ConnectionID, _ turn: inout Turn) {
        for applicant in lobby.waiting {
            let knock = RoomNotice.Knock(connection: applicant.client, displayName: applicant.name, waiting: true)
            turn.send(.room(.knock(knock)), to: client)
        }
    }
}
