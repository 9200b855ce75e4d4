import Wire

/// A room that this person is in: its people, its options and its chat. It stays the same when the room is joined again.
struct RoomState: Equatable, Sendable {
    typealias Effect = RoomsMachine.Effect

    /// How many people, and how many who wait, are kept: more than a room has.
    private static let maxPeople = Limits.routedRoom * 2

    private(set) var name: RoomName
    /// Nil if the server sends none.
    private(set) var id: RoomID?
    private(set) var options: RoomOptions
    private(set) var role: RoomRole
    /// Everyone, in the order of joining.
    private(set) var people: [RoomMember]
    /// People who wait, if this person may let them in.
    private(set) var knocks: [RoomKnock] = []
    private(set) var chat = RoomChat()
    /// This person's own connection.
    private(set) var connection: ConnectionID?
    /// What this person needs to send and to download files; nil if the server takes none.
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

    /// Takes the answer to joining again, and tells what has changed since.
    mutating func enter(_ joined: RoomNotice.Joined, as connection: ConnectionID?) -> [Effect] {
        (name, id, self.connection, files) = (joined.name, joined.room, connection, joined.files)
        // The server tells the knocks again.
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
        // Only answers of requests, or about the stay itself.
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

    /// The request to join this room again. If it is gone, it is created as it was, but not locked: everyone else must come in
    /// again, too.
    ///
    /// - Parameters:
    ///   - password: the password with which this person joined; nil for none.
    ///   - token: the application's token with which this person joined; nil for none.
    func request(password: String?, token: String?) -> RoomVerb.Join {
        var changes = RoomChanges()
        // A server refuses a capacity of 0, which it may have told.
        (changes.media, changes.capacity) = (options.media, options.capacity > 0 ? options.capacity : nil)
        (changes.lobby, changes.chat) = (options.lobby, options.chat)
        (changes.share, changes.persistent) = (options.share, options.persistent)
        if options.password {
            changes.password = password
            // Who does not know the password must not open the room to everyone.
            if password == nil { changes.lobby = true }
        }
        let name = people.first { $0.id == connection }?.name ?? ""
        var join = RoomVerb.Join(name: self.name, displayName: name, password: password, options: changes)
        join.token = token
        // Not another room that has taken the name.
        join.room = id
        // The room may be gone, and another one may have its name, to which this person has not agreed.
        if options.media == .routed { join.routedOnly = true }
        return join
    }
}
