import Wire

/// A room, in which people who know its name meet in one session.
///
/// Decides who may enter, who is host, and what hosts may do. The session owns streams and media. The room gives each
/// person a place in the session, and a token bound to that place.
///
/// Invariants: while anyone is in the room, someone is host. A person enters only as an owner, or if the room has fewer
/// people than its capacity; and there are never more than `Limits.routedRoom` or `Limits.meshRoom` people. Each person
/// entered under the rules of `join` or was admitted. A banned person is never in the room, and nobody who left can use
/// their token. Actions by stand-ins are undone when the room is empty, and roles that they gave end when an owner
/// enters (`RoomRights`).
public struct Room: Machine, Equatable, Sendable {
    typealias ID = RoomName

    /// Legal transitions: `new` → `empty`; `empty` → `open`, `over`; `open` → `empty`, `over`.
    enum State: Equatable, Sendable {
        case new
        case open
        /// The room is empty. It ends at `until`, or at `keptUntil` if that is set and later. At `checkAt`, the room
        /// checks whether it must end.
        case empty(until: Timestamp, checkAt: Timestamp)
        case over
    }

    let name: RoomName
    private(set) var id = RoomID(high: 0, low: 0)
    /// The ID of an earlier room with this name, if people from that room opened this one after that room had ended;
    /// otherwise nil. Only people who were in the earlier room know its ID, so clients that present it belong here.
    /// These clients may belong to people who had been removed from the earlier room, because the bans of a room that
    /// is not persistent end with the room. This room also has its own ID, so that tokens for the earlier room stay
    /// invalid.
    private(set) var formerID: RoomID?
    /// The ID with which people return. It stays the same when some people open the room again, so that the others,
    /// who know only the earlier room's ID, find them.
    var returnID: RoomID { formerID ?? id }
    private(set) var createdAt = Timestamp(milliseconds: 0)
    var state = State.new
    private(set) var session = SessionID.unset
    /// The person who created the room. They can always enter, and are then host. Nil for a room created by the operators,
    /// after the creator gave up the host role, and after another owner, or a host chosen by an owner, removed them or
    /// changed their role.
    private(set) var creator: IdentityID?
    var settings: RoomSettings
    var roster = RoomRoster()
    /// The address of the owner (`RoomRights`) who entered last; nil if none has entered since the room was created or
    /// the server restarted.
    var ownersAddress: String?
    /// Whether `ownersAddress` is unknown because the server restarted. Addresses are not stored.
    var isOwnersAddressLost = false
    var arrivals = RoomArrivals()
    var lobby = RoomLobby()
    var chat = RoomChat()
    var files = RoomFiles()
    private(set) var bans = RoomBans()
    /// Whether an application created a token for a host. If so, people without a token must wait in the lobby even
    /// while the room is empty.
    private(set) var hasHostTokens = false
    /// When the room was last stored; nil if it is not in storage.
    private(set) var storedAt: Timestamp?
    /// Maximum number of people with separate budgets, twice as many as fit into a room. Budgets are kept when a person leaves,
    /// so that rejoining does not refill them.
    private static let maxBudgets = 2 * Limits.routedRoom

    var talk = BudgetTable<IdentityID>(maxKeys: Self.maxBudgets)
    var gestures = BudgetTable<IdentityID>(maxKeys: Self.maxBudgets)
    /// The wall-clock time at which the retention ends, for a room that has not been used since the server restarted;
    /// nil for any other room. It is needed because the room itself measures how long it has been empty only while the
    /// server runs.
    var keptUntil: Timestamp?
    /// The room's budget for messages that people cause to be sent to everyone; nil until it is first used.
    private var traffic: Budget?
    /// The budget for actions by hosts and cohosts; nil until it is first used. It is separate from `traffic`, so that
    /// busy guests cannot keep a host from removing them.
    private var moderation: Budget?

    private init(_ name: RoomName, _ settings: RoomSettings) { (self.name, self.settings) = (name, settings) }

    static func make(_ id: RoomName, for event: RoomEvent, _ context: inout Context) -> Room? {
        switch event {
        case .open(let settings, _, _, _): Room(id, settings)
        case .restore(let stored): Room(id, RoomSettings(stored))
        default: nil
        }
    }

    static func orphan(_ event: RoomEvent, _ id: RoomName, _ context: inout Context) {
        switch event {
        case .join(let application): context.refuse(application, .noRoom)
        case .verb(let client, let re, _): context.fail(.notInRoom, Request(client, re))
        case .operate(let request): context.answer(request.socket, .refused(.noRoom))
        case .list(let tour): context.pass(tour)
        case .notStored(let stored): if let stored { context.tell(.roomRegistry(.restore(stored))) }
        case .open, .restore, .away, .gone, .leftSession, .close, .personDeleted, .placeLost: return
        }
    }

    var options: RoomOptions { settings.options }
    var isOver: Bool { state == .over }

    // MARK: Time

    var nextTimeout: Timestamp? {
        guard case .empty(_, let checkAt) = state else { return files.nextTimeout }
        return files.nextTimeout.map { min($0, checkAt) } ?? checkAt
    }

    mutating func handleTimeout(_ context: inout Context) {
        expireFiles(&context)
        guard case .empty(let until, let checkAt) = state, checkAt <= context.now else { return }
        let before = (roster.count, lobby.waiting.count)
        endOrWait(until: until, &context)
        count(since: before, &context)
    }

    /// Updates the state when the room becomes empty or occupied.
    mutating func updateState(_ context: inout Context) {
        guard state != .over else { return }
        if roster.isEmpty {
            if case .empty = state { return }
            settings.endTemporary()
            bans.endTemporary()
            beginEmptyTime(context)
        } else {
            if state == .open { return }
            state = .open
        }
        storeUse(&context)
    }

    // MARK: Events

    mutating func handle(_ event: RoomEvent, _ context: inout Context) {
        let before = (roster.count, lobby.waiting.count)
        perform(event, &context)
        count(since: before, &context)
    }

    private func count(since before: (people: Int, waiting: Int), _ context: inout Context) {
        context.figures.rooms.people += roster.count - before.people
        context.figures.rooms.waiting += lobby.waiting.count - before.waiting
    }

    private mutating func perform(_ event: RoomEvent, _ context: inout Context) {
        switch event {
        case .open(_, let id, let creator, let formerID):
            guard state == .new else { return }
            (self.id, self.creator, self.formerID) = (id, creator, formerID)
            open(&context)
        case .restore(let stored): restore(stored, &context)
        case .operate(let request): perform(request, &context)
        case .list(var tour):
            tour.list.rooms.append(summary)
            context.pass(tour)
        case .join(let application): join(application, &context)
        case .verb(let client, let re, let verb): perform(verb, Request(client, re), &context)
        case .away(let client, let isAway): setDropped(isAway, client, &context)
        case .gone(let client): leave(client, &context)
        case .leftSession(let client, let moderator):
            remove(client, .removed, by: moderator.flatMap { roster[$0] }, &context)
        case .close: end(&context)
        case .personDeleted(let person): personDeleted(person, &context)
        case .notStored(let stored): reload(stored, .storageFailed, &context)
        case .placeLost(let error): reload(nil, error, &context)
        }
    }

    private mutating func open(_ context: inout Context) {
        createdAt = context.wallNow
        makeSession(&context)
        updateState(&context)
        store(&context)
    }

    /// Restores the room from storage. People's places in the room are not stored: they ended with the previous server
    /// process.
    private mutating func restore(_ stored: StoredRoom, _ context: inout Context) {
        guard state == .new else { return }
        (id, formerID, createdAt, creator) = (stored.id, stored.formerID, stored.createdAt, stored.creator)
        isOwnersAddressLost = true
        (bans, hasHostTokens, storedAt) = (RoomBans(stored), stored.hasHostTokens, stored.usedAt)
        makeSession(&context)
        continueEmptyTime(lastUse: stored.usedAt, context)
    }

    private mutating func makeSession(_ context: inout Context) {
        session = context.makeSessionID(
            mediaMode: options.media == .routed ? .routed : .relayed, relayedOnly: options.media == .mesh)
    }

    // MARK: Storing

    /// Stores the room if it is persistent, and deletes it from storage if it no longer is.
    mutating func store(_ context: inout Context) {
        if options.persistent, state != .over {
            if storedAt == nil { context.tell(.roomRegistry(.persistence(name, true))) }
            // Never set an earlier time: a clock that is temporarily behind must not make the room look unused.
            let usedAt = max(storedAt ?? context.wallNow, context.wallNow)
            storedAt = usedAt
            context.persist(
                .roomStored(
                    StoredRoom(
                        id: id, formerID: formerID, name: name, options: settings.lasting,
                        password: settings.password, creator: creator, hasHostTokens: hasHostTokens,
                        bans: bans.lasting.people, revokedTokens: bans.lasting.tokens, createdAt: createdAt,
                        usedAt: usedAt)))
        } else if storedAt != nil {
            storedAt = nil
            context.tell(.roomRegistry(.persistence(name, false)))
            context.persist(.roomForgotten(id))
        }
    }

    mutating func noteHostToken(_ context: inout Context) {
        guard !hasHostTokens else { return }
        hasHostTokens = true
        store(&context)
        updateEnd(context)
    }

    mutating func setCreator(_ identity: IdentityID?, _ context: inout Context) {
        creator = identity
        store(&context)
    }

    // MARK: Leaving

    mutating func leave(_ client: ConnectionID, _ context: inout Context) {
        if let applicant = lobby.remove(client) {
            context.tell(.client(client, .room(nil)))
            return sendKnock(of: applicant, waiting: false, &context)
        }
        guard let member = roster.remove(client) else { return }
        gone(member, .clientDisconnected, &context)
    }

    /// Removes a person who did not leave on their own. `moderator` is the person who removed them; nil if no person
    /// did.
    mutating func remove(
        _ client: ConnectionID, _ reason: RoomEndReason, by moderator: RoomRoster.Member? = nil,
        _ context: inout Context
    ) {
        guard let member = roster.remove(client) else { return }
        // A client that cannot ask its user joins again by itself, so make it wait before it can return. Other clients
        // ask their users first.
        if !member.abilities.contains(.prompts), reason == .removed { lobby.sendAway(member.identity, context) }
        if let moderator { withdraw(member, by: moderator, &context) }
        context.send(.room(.ended(.init(name: name, reason: reason))), to: client)
        gone(member, reason == .replaced ? .networkDisconnected : .forceDisconnected, &context)
    }

    /// Withdraws rights of a removed person. They may return, but not as creator, and not with their token. If a
    /// stand-in removed them, only the token is revoked, until the room is empty. Creators who remove one of their own
    /// devices stay creators.
    private mutating func withdraw(
        _ member: RoomRoster.Member, by moderator: RoomRoster.Member, _ context: inout Context
    ) {
        let lasts = moderator.rights.actsForOwners
        if let token = member.token { bans.revoke(token, lasts: lasts, context.rules) }
        guard lasts else { return }
        let losesRoom = member.identity == creator && member.identity != moderator.identity
        if losesRoom { creator = nil } else if member.token == nil { return }
        store(&context)
    }

    /// Closes the session place of a person who is no longer in the room, and notifies the others.
    private mutating func gone(_ member: RoomRoster.Member, _ reason: GoneReason, _ context: inout Context) {
        abandonUploads(of: member.client, &context)
        arrivals.left(roster.count + 1, context)
        context.tell(.client(member.client, .room(nil)))
        context.tell(.session(session, .room(.placeClosed(member.binding, reason))))
        var person = member.person
        person.state = .left
        broadcast(.person(person), &context)
        if let host = roster.appointHost() { roleChanged(of: host, &context) }
        updateState(&context)
        admitWaiting(&context)
    }

    mutating func end(_ context: inout Context) {
        guard state != .over else { return }
        state = .over
        store(&context)
        deleteFiles(&context)
        for applicant in lobby.removeAll() { refuse(applicant, .roomEnded, &context) }
        while let member = roster.members.first {
            _ = roster.remove(member.client)
            context.send(.room(.ended(.init(name: name, reason: .closed))), to: member.client)
            context.tell(.client(member.client, .room(nil)))
            context.tell(.session(session, .room(.placeClosed(member.binding, .forceDisconnected))))
        }
        context.tell(.roomRegistry(.ended(name)))
    }

    /// Reloads the room, because a change could not be stored and storage has a different state. Ends the room in
    /// memory, and restores the stored one if there is one. Disconnects everyone, including the person who made the
    /// change. Their clients reconnect and join again.
    ///
    /// - Parameter error: why the clients are disconnected.
    private mutating func reload(_ stored: StoredRoom?, _ error: WireError, _ context: inout Context) {
        guard state != .over else { return }
        (state, storedAt) = (.over, nil)
        deleteFiles(&context)
        for client in roster.members.map(\.client) + lobby.removeAll().map(\.client) {
            context.tell(.client(client, .room(nil)))
            context.tell(.client(client, .expel(error, .serviceRestart)))
        }
        while let member = roster.members.first {
            _ = roster.remove(member.client)
            context.tell(.session(session, .room(.placeClosed(member.binding, .networkDisconnected))))
        }
        context.tell(.roomRegistry(.ended(name)))
        if let stored { context.tell(.roomRegistry(.restore(stored))) }
    }

    mutating func ban(_ identity: IdentityID, by moderator: RoomRights, _ context: inout Context) {
        let isChanged = bans.ban(identity, lasts: moderator.actsForOwners, context.rules)
        if isChanged, moderator.actsForOwners { store(&context) }
    }

    // MARK: Sending

    /// Charges the room's budget for a message that is sent to everyone in the room. The budget has the same rate as a
    /// session's. Throws if it is exhausted.
    mutating func charge(textSize: Int = 0, _ context: Context) throws(WireError) {
        let cost = Double((256 + textSize) * roster.count)
        if let wait = traffic.take(context.rules.sessionTraffic, cost: cost, now: context.now) { throw .tooFast(wait) }
    }

    /// Charges an action by a host or cohost. The cost includes the people waiting, because a new moderator receives a
    /// knock for each of them. Throws if the budget is exhausted.
    mutating func chargeModeration(_ context: Context) throws(WireError) {
        let cost = Double(256 * (roster.count + lobby.waiting.count))
        if let wait = moderation.take(context.rules.sessionTraffic, cost: cost, now: context.now) {
            throw .tooFast(wait)
        }
    }

    func broadcast(_ notice: RoomNotice, except excluded: ConnectionID? = nil, _ context: inout Context) {
        let clients = roster.members.map(\.client).filter { $0 != excluded }
        context.tell(.clients(clients, BroadcastMessage(.room(notice))))
    }

    /// Sends a person's new role to everyone in the room, and the resulting rights to the session. If the person is now
    /// a moderator, also sends them the list of people waiting in the lobby.
    func roleChanged(of member: RoomRoster.Member, _ context: inout Context) {
        context.tell(.session(session, .room(.place(member.binding, member.rights))))
        broadcast(.person(member.person), &context)
        if member.role.moderates { sendKnocks(to: member.client, &context) }
    }

    func sendKnock(of applicant: RoomApplicant, waiting: Bool, _ context: inout Context) {
        let knock = RoomNotice.Knock(connection: applicant.client, displayName: applicant.name, waiting: waiting)
        for host in roster.moderators { context.send(.room(.knock(knock)), to: host) }
    }

    func sendKnocks(to client: ConnectionID, _ context: inout Context) {
        for applicant in lobby.waiting {
            let knock = RoomNotice.Knock(connection: applicant.client, displayName: applicant.name, waiting: true)
            context.send(.room(.knock(knock)), to: client)
        }
    }
}
