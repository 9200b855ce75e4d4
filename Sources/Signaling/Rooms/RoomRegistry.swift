import Wire

/// Tracks which rooms exist. Decides who may create one, and how often an address may try passwords.
///
/// Owns the names and the limits. The rooms own everything else.
struct RoomRegistry: Machine {
    /// What the registry keeps about a room, for the limits and for the list of rooms.
    private struct Entry: Sendable {
        let cursor: RoomCursor
        /// The person who created the room. Nil for a room that operators created, and after a restart for a room
        /// without a creator.
        var identity: IdentityID?
        /// The address from which the room was created. Nil for a room that operators created, and after a restart,
        /// because addresses are not stored.
        var address: String?
        var isPersistent = false
    }

    /// Maximum number of addresses with a separate budget for passwords. Further addresses share one budget.
    private static let maxAddresses = 10_000

    private var rooms: [RoomName: Entry] = [:]
    private var perPerson: [IdentityID: Int] = [:]
    private var perAddress: [String: Int] = [:]
    /// The number of persistent rooms created by people, in total and per address.
    private var persistent = 0
    private var persistentPerAddress: [String: Int] = [:]
    private var guesses = BudgetTable<String>(maxKeys: Self.maxAddresses)

    /// The pause before deleting a stored room whose name another room has taken. Storage has just failed, so the
    /// deletion is not tried immediately.
    private static let deletionPause: Duration = .seconds(10)
    /// When to delete each stored room whose name another room has taken. Each of these rooms was once a persistent
    /// room, so the limits on persistent rooms also limit their number.
    private var leftovers: [RoomID: Timestamp] = [:]

    init() {}

    var nextTimeout: Timestamp? { leftovers.values.min() }

    mutating func handleTimeout(_ context: inout Context) {
        for id in leftovers.filter({ $0.value <= context.now }).keys.sorted() {
            leftovers[id] = nil
            context.persist(.roomForgotten(id))
        }
    }

    mutating func handle(_ event: RoomRegistryEvent, _ context: inout Context) {
        switch event {
        case .join(let application):
            do throws(WireError) {
                try join(application, &context)
            } catch {
                context.refuse(application, error)
            }
        case .operate(let request):
            do throws(WireError) {
                try operate(request, &context)
            } catch {
                context.answer(request.socket, .refused(error))
            }
        case .restore(let stored): restore(stored, &context)
        case .wrongPassword(let address):
            _ = guesses.take(address, context.rules.roomPasswordGuesses, now: context.now)
        case .keep(let client, let re, let name, let change):
            do throws(WireError) {
                if let room = rooms[name], room.identity != nil, !room.isPersistent {
                    try permitPersistent(room.address, context)
                }
            } catch {
                return context.fail(error, Request(client, re))
            }
            context.tell(.room(name, .verb(client, re: re, .set(change))))
        case .persistence(let name, let isPersistent): setPersistent(isPersistent, name)
        case .ended(let name): forget(name)
        case .personDeleted(let person):
            for name in rooms.filter({ $0.value.identity == person }).keys.sorted() {
                context.tell(.room(name, .personDeleted(person)))
            }
        case .notStored(let ids, let stored): reload(ids, stored, &context)
        }
    }

    private mutating func restore(_ stored: StoredRoom, _ context: inout Context) {
        // The room's deletion was not stored, and its name has been taken since. Delete the old room again later;
        // otherwise it would have the name again after a restart.
        guard rooms[stored.name] == nil else { return leftovers[stored.id] = context.now + Self.deletionPause }
        let cursor = RoomCursor(createdAt: stored.createdAt, id: stored.id)
        add(stored.name, Entry(cursor: cursor, identity: stored.creator))
        setPersistent(true, stored.name)
        context.tell(.room(stored.name, .restore(stored)))
    }

    /// Resets rooms in memory to their stored state, because their changes could not be stored.
    private mutating func reload(_ ids: Set<RoomID>, _ stored: [StoredRoom], _ context: inout Context) {
        let affected = rooms.filter { ids.contains($0.value.cursor.id) }
        let names = Dictionary(uniqueKeysWithValues: affected.map { ($0.value.cursor.id, $0.key) })
        for id in ids.sorted() {
            let kept = stored.first { $0.id == id }
            // If a room's deletion could not be stored, the room is no longer in memory. The registry then restores
            // it, unless another room has its name. In a cluster, the next person to join does that, on any node.
            if let name = names[id] {
                context.tell(.room(name, .notStored(kept)))
            } else if let kept, context.tag == nil {
                restore(kept, &context)
            }
        }
    }

    private mutating func join(_ application: RoomApplication, _ context: inout Context) throws(WireError) {
        if let name = application.join.name, rooms[name] != nil {
            try permitPassword(application, context)
            return context.tell(.room(name, .join(application)))
        }
        // Refuse a client with a token: a token is for an existing room, not for creating one.
        guard context.rules.roomCreation == .everyone, application.applicant.grant == nil else {
            throw WireError(.roomNotFound, "There is no room with this name. Ask for a new link.")
        }
        let applicant = application.applicant
        guard !application.join.missesPassword else { throw .noRoomWithPassword }
        try permitRoom(applicant, context)
        if application.join.options?.persistent == true {
            if let error = context.permit.refusal(of: .optional) { throw error }
            try permitPersistent(applicant.address, context)
        }
        let settings = try settings(application.join.options, &context)
        try application.permitMesh(settings.options)
        let name = application.join.name ?? unusedName(&context)
        let cursor = cursor(&context)
        add(name, Entry(cursor: cursor, identity: applicant.identity, address: applicant.address))
        let creator = applicant.abilities.contains(.hosting) ? applicant.identity : nil
        context.tell(.room(name, .open(settings, cursor.id, creator: creator, formerID: application.join.room)))
        context.tell(.room(name, .join(application)))
    }

    /// Creates an ID for a new room, and returns it together with the room's position in the list of rooms.
    private func cursor(_ context: inout Context) -> RoomCursor {
        RoomCursor(createdAt: context.wallNow, id: .random(using: &context.random))
    }

    /// Returns the settings of a new room: the defaults with these changes. Throws if the server does not route media
    /// and a routed room is requested, or if the changes are not permitted.
    private func settings(_ changes: RoomChanges?, _ context: inout Context) throws(WireError) -> RoomSettings {
        let rules = context.rules
        let media = changes?.media ?? (rules.routesMedia ? .routed : .mesh)
        guard rules.routesMedia || media == .mesh else {
            throw WireError(.mediaUnavailable, "This server does not route media. Create a mesh room.")
        }
        let capacity = media == .routed ? rules.roomCapacity : rules.meshRoomCapacity
        var settings = RoomSettings(media: media, capacity: capacity)
        if let changes { try settings.apply(changes, password: context.password(in: changes), lasts: true) }
        return settings
    }

    private mutating func add(_ name: RoomName, _ entry: Entry) {
        rooms[name] = entry
        if let identity = entry.identity { perPerson[identity, default: 0] += 1 }
        if let address = entry.address { perAddress[address, default: 0] += 1 }
    }

    // MARK: Operators and applications

    private mutating func operate(_ request: OperatorRequest, _ context: inout Context) throws(WireError) {
        let name: RoomName
        switch request.action {
        case .create(let wish): name = try create(wish, &context)
        case .file(let room, _, let action):
            guard rooms[room] != nil else { throw action.missing }
            name = room
        case .describe(let room), .change(let room, _), .close(let room), .token(let room, _):
            guard rooms[room] != nil else { throw WireError(.roomNotFound, "No room has this name. Check the name.") }
            name = room
        case .check(let application):
            guard let room = application.join.name else { throw .perchRoomName }
            guard rooms[room] != nil else {
                guard context.rules.roomCreation == .everyone else {
                    throw WireError(.roomNotFound, "There is no room with this name. Check the name.")
                }
                return context.answer(request.socket, .admissible)
            }
            name = room
        // The hub sends operations on sessions to the session instead.
        case .session: return
        case .list(let cursor, let limit): return list(after: cursor, limit: limit, request.socket, &context)
        }
        context.tell(.room(name, .operate(request)))
    }

    /// Creates a room without a creator, and returns its name. The room is persistent by default, because it could
    /// otherwise end before the first person enters.
    private mutating func create(_ wish: RoomCreationRequest, _ context: inout Context) throws(WireError) -> RoomName {
        if let name = wish.name, rooms[name] != nil {
            throw WireError(.roomExists, "This room already exists. Change or close it, or use another name.")
        }
        guard rooms.count < context.rules.maxRooms else {
            throw WireError(
                .rateLimited, "The limit rooms.maxRooms is reached: there are \(rooms.count) rooms. Close some.",
                retryable: true, retryAfter: context.rules.roomEmptyGrace)
        }
        var options = wish.options ?? RoomChanges()
        options.persistent = options.persistent ?? true
        let settings = try settings(options, &context)
        let name = wish.name ?? unusedName(&context)
        let cursor = cursor(&context)
        add(name, Entry(cursor: cursor))
        context.tell(.room(name, .open(settings, cursor.id, creator: nil)))
        return name
    }

    private func list(after cursor: RoomCursor?, limit: Int, _ socket: SocketID, _ context: inout Context) {
        let found = rooms.filter { room in cursor.map { $0 < room.value.cursor } ?? true }
            .sorted { $0.value.cursor < $1.value.cursor }
        let page = found.prefix(max(1, min(limit, Limits.roomsPage)))
        var tour = RoomTour(socket: socket, rest: page.reversed().map(\.key))
        tour.list.next = found.count > page.count ? page.last?.value.cursor.text : nil
        context.pass(tour)
    }

    // MARK: Limits

    private func permitPassword(_ application: RoomApplication, _ context: Context) throws(WireError) {
        guard application.join.password != nil else { return }
        let wait = guesses.wait(application.applicant.address, context.rules.roomPasswordGuesses, now: context.now)
        guard let wait else { return }
        throw WireError(
            .rateLimited, "Too many wrong passwords from your network. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }

    private func permitRoom(_ applicant: RoomApplicant, _ context: Context) throws(WireError) {
        guard perPerson[applicant.identity] ?? 0 < context.rules.roomsPerPerson else {
            throw WireError(
                .rateLimited, "You already have \(context.rules.roomsPerPerson) rooms, the maximum. Use one of them.",
                retryable: true, retryAfter: context.rules.roomEmptyGrace)
        }
        guard perAddress[applicant.address] ?? 0 < context.rules.roomsPerAddress, rooms.count < context.rules.maxRooms
        else {
            throw WireError(
                .rateLimited,
                "Too many rooms on this server or from your network. Join an existing room, or try again later.",
                retryable: true, retryAfter: context.rules.roomEmptyGrace)
        }
    }

    /// Throws if the limit on persistent rooms is reached, in total or for this address. Such rooms may exist for a
    /// year. Only part of the server's capacity is available for them, and only a small part of that for each address.
    /// Otherwise they could fill the server, and nobody else could create a room.
    private func permitPersistent(_ address: String?, _ context: Context) throws(WireError) {
        let fromAddress = address.flatMap { persistentPerAddress[$0] } ?? 0
        // Limit persistent rooms to half of all rooms, even if an operator has changed only `maxRooms`.
        let most = min(context.rules.maxPersistentRooms, context.rules.maxRooms / 2)
        guard fromAddress < context.rules.persistentRoomsPerAddress, persistent < most else {
            throw WireError(
                .rateLimited,
                "Too many persistent rooms on this server or from your network. Create a room that is not persistent.",
                retryable: true, retryAfter: context.rules.roomEmptyGrace)
        }
    }

    /// Records whether a room is persistent, for the limits on such rooms. Rooms that operators created are not
    /// counted.
    private mutating func setPersistent(_ isPersistent: Bool, _ name: RoomName) {
        guard let room = rooms[name], room.identity != nil, room.isPersistent != isPersistent else { return }
        rooms[name]?.isPersistent = isPersistent
        persistent += isPersistent ? 1 : -1
        guard let address = room.address else { return }
        if isPersistent {
            persistentPerAddress[address, default: 0] += 1
        } else {
            Self.release(address, in: &persistentPerAddress)
        }
    }

    private func unusedName(_ context: inout Context) -> RoomName {
        var name = RoomName.random(using: &context.random)
        while rooms[name] != nil { name = RoomName.random(using: &context.random) }
        return name
    }

    private mutating func forget(_ name: RoomName) {
        setPersistent(false, name)
        guard let entry = rooms.removeValue(forKey: name) else { return }
        if let identity = entry.identity { Self.release(identity, in: &perPerson) }
        if let address = entry.address { Self.release(address, in: &perAddress) }
    }

    private static func release<Key: Hashable>(_ key: Key, in counts: inout [Key: Int]) {
        let count = (counts[key] ?? 1) - 1
        counts[key] = count > 0 ? count : nil
    }
}

extension RoomVerb.Join {
    /// Whether the person expects a room with a password, and would now create one without a password, because the
    /// expected room has ended. False for people who return: they may have a password that a host has since removed.
    fileprivate var missesPassword: Bool {
        room == nil && !(password ?? "").isEmpty && (options?.password ?? "").isEmpty
    }
}

extension WireError {
    fileprivate static let noRoomWithPassword = WireError(
        .roomNoPassword,
        "No password-protected room has this name. It may have ended. To create a room with this name, join without a "
            + "password.")
}
