import Wire

/// A room that this person is in: its people, its options and its chat. The state is kept when the room is rejoined.
struct RoomState: Equatable, Sendable {
    typealias Effect = RoomsMachine.Effect

    /// The maximum number of entries in `people`, and in `knocks`. No room has that many.
    private static let maxPeople = Limits.routedRoom * 2

    private(set) var name: RoomName
    /// The id of the room; nil if the server sends none.
    private(set) var id: RoomID?
    private(set) var options: RoomOptions
    private(set) var role: RoomRole
    /// Everyone in the room, including this person, in the order of joining.
    private(set) var people: [RoomMember]
    /// People who wait to be admitted; empty unless this person may admit them.
    private(set) var knocks: [RoomKnock] = []
    private(set) var chat = RoomChat()
    /// The id of this person's connection; nil if it is not known.
    private(set) var connection: ConnectionID?
    /// The path, the key and the size limit for files; nil if the server does not accept files.
    private(set) var files: RoomFileAccess?
    var isReconnecting = false
    var isInSession = false
    var hasRaisedHand = false

    init(_ joined: RoomNotice.Joined, as connection: ConnectionID?) {
        (name, id, options, role) = (joined.name, joined.room, joined.options, joined.role)
        (people, self.connection) = (Self.members(of: joined), connection)
        files = joined.files
        _ = chat.catchUp(joined.chat)
    }

    private static func members(of joined: RoomNotice.Joined) -> [RoomMember] {
        joined.people.prefix(maxPeople).map(RoomMember.init)
    }

    /// Updates the state from the answer to a rejoin, and returns an event for each change since the connection was
    /// lost.
    mutating func enter(_ joined: RoomNotice.Joined, as connection: ConnectionID?) -> [Effect] {
        (name, id, self.connection, files) = (joined.name, joined.room, connection, joined.files)
        // Forget the knocks, because the server sends them again.
        knocks = []
        var effects = change(joined.options)
        let (former, now) = (people, Self.members(of: joined))
        people = now
        for var person in former where !now.contains(where: { $0.id == person.id }) {
            person.presence = .left
            effects.append(.tell(.person(person)))
        }
        effects += now.filter { !former.contains($0) }.map { .tell(.person($0)) }
        effects += take(joined.role)
        return effects + chat.catchUp(joined.chat).map { .tell(.said($0)) }
    }

    mutating func receive(_ notice: RoomNotice) -> [Effect] {
        switch notice {
        case .changed(let changed): return change(changed.options)
        case .person(let person): return take(RoomMember(person), person.role)
        case .said(let line):
            chat.add(line)
            return [.tell(.said(line))]
        case .reacted(let reacted): return [.tell(.reacted(reacted.connection, reacted.reaction))]
        case .knock(let knock):
            let knocking = RoomKnock(id: knock.connection, name: knock.displayName)
            knocks.removeAll { $0.id == knocking.id }
            if knock.waiting, knocks.count < Self.maxPeople { knocks.append(knocking) }
            return [.tell(.knock(knocking, waiting: knock.waiting))]
        case .fileRemoved(let removed):
            chat.remove(removed.id)
            return [.tell(.fileRemoved(removed.id))]
        // `RoomsMachine` handles these notices: they answer requests, or concern this person's membership.
        case .joined, .waiting, .refused, .upload, .ended: return []
        }
    }

    private mutating func change(_ options: RoomOptions) -> [Effect] {
        guard options != self.options else { return [] }
        self.options = options
        return [.tell(.settings(options))]
    }

    private mutating func take(_ person: RoomMember, _ role: RoomRole) -> [Effect] {
        if person.presence == .left {
            people.removeAll { $0.id == person.id }
        } else if let index = people.firstIndex(where: { $0.id == person.id }) {
            people[index] = person
        } else if people.count < Self.maxPeople {
            people.append(person)
        }
        let own = person.id == connection && person.presence != .left ? take(role) : []
        return [.tell(.person(person))] + own
    }

    private mutating func take(_ role: RoomRole) -> [Effect] {
        guard role != self.role else { return [] }
        self.role = role
        if role == .guest { knocks = [] }
        return [.tell(.role(role))]
    }

    /// Returns the request to rejoin this room. If the room no longer exists, it is created again with the same
    /// options, but not locked, because everyone else must rejoin too.
    ///
    /// - Parameters:
    ///   - password: the password that this person joined with; nil for none.
    ///   - token: the application's token that this person joined with; nil for none.
    func request(password: String?, token: String?) -> RoomVerb.Join {
        var changes = RoomChanges()
        // A server may report a capacity of 0, but it rejects a request with this value. So request no capacity then.
        (changes.media, changes.capacity) = (options.media, options.capacity > 0 ? options.capacity : nil)
        (changes.lobby, changes.chat) = (options.lobby, options.chat)
        (changes.share, changes.persistent) = (options.share, options.persistent)
        if options.password {
            changes.password = password
            // Require a lobby if this person does not have the password, so that a room that is created again is not
            // open to everyone.
            if password == nil { changes.lobby = true }
        }
        let name = people.first { $0.id == connection }?.name ?? ""
        var join = RoomVerb.Join(name: self.name, displayName: name, password: password, options: changes)
        join.token = token
        // Rejoin only this room, not another one that has taken its name.
        join.room = id
        // If the room is routed, do not join a mesh room instead, because this person has not agreed to reveal their
        // IP address. If the id is nil, the name may now belong to another room, which may be a mesh room.
        if options.media == .routed { join.routedOnly = true }
        return join
    }
}
