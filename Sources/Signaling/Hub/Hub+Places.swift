import Cluster
import Crypto
import Wire

// What a hub in a cluster adds to delivering letters: a machine that exists once is created only after its place was claimed,
// and requests for machines on other nodes are answered with the node's name. Without a cluster, nothing of this happens.

// MARK: - Letters

/// The machine that a letter needs on this node.
private struct Need {
    var machine: PlacedMachine
    var claims = true
    /// The name of the node that an arriving client asked for.
    var at: String?
}

extension Hub {
    /// Decides whether a letter must wait for a place. Returns true if the letter now waits or was answered.
    mutating func holdsBack(_ letter: Letter) -> Bool {
        let letter = named(letter)
        if places?.condition == .draining, case .person(_, .arrived(let client, _, _, _, _, _, let at, _)) = letter {
            places?.arrived(client, at: at, until: context.now + context.rules.newcomerWait)
        }
        guard let need = need(of: letter) else { return false }
        if case .session(let id) = need.machine, let tag = distant.node(of: id) ?? distantSessions.node(of: id) {
            // The session belongs to a room, match or call on that node, so it has no place of its own.
            refuse(letter, .elsewhere(need.machine, at: tag))
            return true
        }
        let waiting = Places.Waiting(letter: letter, claims: need.claims, at: need.at)
        let project = context.project
        let verdict = places?.admit(waiting, to: need.machine, project.placeKey(of: need.machine), rules: context.rules)
        switch verdict {
        case .here, nil: return false
        case .waits(let key):
            if let key { context.reach(key, need.machine, claims: places?.claims(need.machine) == true) }
        case .crowded: refuse(letter, .placeCrowded)
        }
        return true
    }

    /// Returns the machine that this letter needs, if it is neither here nor on another node for certain; nil if the letter can
    /// be delivered.
    private func need(of letter: Letter) -> Need? {
        switch letter {
        case .person(let id, let event):
            if people.contains(id) { return event.need.map { Need(machine: $0) } }
            guard event.claimsPlace || event.travels || places?.isAsked(.person(id)) == true else { return nil }
            return Need(machine: .person(id), claims: event.claimsPlace, at: event.at)
        case .roomRegistry(.join(let application)):
            return arrival(of: application.applicant.identity) ?? application.join.name.flatMap(need)
        case .roomRegistry(.operate(let request)): return request.room.flatMap(need)
        case .session(let id, .join(_, let identity, let grant, _)):
            if let arrival = arrival(of: identity) { return arrival }
            // A token of a match, a call or a room is only valid on the node of that match, call or room.
            return grant.match == nil ? sessionNeed(id) : nil
        case .session(let id, .operated): return sessionNeed(id)
        case .hall: return Need(machine: .hall)
        default: return nil
        }
    }

    /// A client whose person may be on another node does not join anything before that is known, because it would have to
    /// leave again.
    private func arrival(of identity: IdentityID) -> Need? {
        places?.isAsked(.person(identity)) == true ? Need(machine: .person(identity), claims: false) : nil
    }

    private func need(_ room: RoomName) -> Need? { rooms.contains(room) ? nil : Need(machine: .room(room)) }

    /// A session needs no place on the node that made its id, even if it has no members, or its room, chat or call has ended.
    private func sessionNeed(_ session: SessionID) -> Need? {
        guard !sessions.contains(session) else { return nil }
        let origin = context.project.origin(of: session)
        return origin != nil && origin == context.tag ? nil : Need(machine: .session(session))
    }

    /// Gives a room that has no name yet a random one, because the room needs a place before it exists.
    private mutating func named(_ letter: Letter) -> Letter {
        switch letter {
        case .roomRegistry(.join(var application)) where application.join.name == nil:
            application.join.name = .random(using: &context.random)
            return .roomRegistry(.join(application))
        case .roomRegistry(.operate(var request)):
            guard case .create(var wish) = request.action, wish.name == nil else { return letter }
            wish.name = .random(using: &context.random)
            request.action = .create(wish)
            return .roomRegistry(.operate(request))
        default: return letter
        }
    }

    /// Answers a letter that cannot be delivered, because its machine is on another node or its place is unknown.
    private mutating func refuse(_ letter: Letter, _ error: WireError) {
        switch letter {
        case .person(_, .arrived(let client, _, _, _, _, _, _, _)):
            context.tell(.client(client, .expel(error, .serviceRestart)))
        case .person(_, .verb(let client, let re, _)): context.fail(error, Request(client, re))
        case .roomRegistry(.join(let application)): context.refuse(application, error)
        case .roomRegistry(.operate(let request)): context.answer(request.socket, .refused(error))
        case .session(_, .join(let client, _, _, let re)):
            context.tell(.client(client, .joinRefused(re: re, error, match: nil)))
        case .session(_, .operated(_, let socket)): context.answer(socket, .refused(error))
        case .hall(let person): context.tell(.person(person, .hallIsElsewhere(error)))
        // This would create the machine here. Whatever was asked about the person follows, and finds nobody.
        case .person(_, .lookedUp): break
        // The callee's node is unknown, and the callee may still connect here. So the call keeps ringing.
        case .person(_, .call(.restored)) where error.at == nil: break
        // Nobody waits for an answer, but the person may be on another node, which does not get the letter.
        case .person(_, let event) where event.travels: context.figures.droppedLetters += 1
        // Nobody waits for an answer, or the machine's absence is the answer.
        default: dispatch(letter)
        }
    }
}

extension PersonEvent {
    /// Whether the event creates the person's machine. The machine of a legacy client's person needs no place: its identity is
    /// new with each connection.
    fileprivate var claimsPlace: Bool {
        switch self {
        case .arrived(_, _, _, _, let home, _, _, _): home == nil
        case .lookedUp: true
        default: false
        }
    }

    fileprivate var at: String? { if case .arrived(_, _, _, _, _, _, let at, _) = self { at } else { nil } }

    /// Besides the person, the machine that this request needs on the same node; nil if it needs none.
    fileprivate var need: PlacedMachine? {
        switch self {
        case .verb(_, _, .nearby(.move)), .verb(_, _, .nearby(.watch)): .directory
        case .verb(_, _, .presence(.link)), .verb(_, _, .presence(.useLink)): .deviceCodes
        default: nil
        }
    }
}

extension OperatorRequest {
    /// The room that the request concerns; nil if it concerns none, or several.
    fileprivate var room: RoomName? {
        switch action {
        case .create(let wish): wish.name
        case .describe(let name), .change(let name, _), .close(let name), .token(let name, _), .file(let name, _, _):
            name
        case .check(let application): application.join.name
        case .list, .session: nil
        }
    }
}

extension Project {
    /// Returns the place of this machine. It reveals neither identities nor session ids.
    package func placeKey(of machine: PlacedMachine) -> PlaceKey {
        switch machine {
        case .person(let identity): PlaceKey(.person, personID(of: identity).description)
        case .room(let name): PlaceKey(.room, name.folded)
        case .session(let id):
            PlaceKey(
                .session, PersonID(bytes: SHA256.hash(data: Array(id.text.utf8)))?.description ?? "",
                origin: origin(of: id))
        case .hall: PlaceKey(.hall)
        case .directory: PlaceKey(.directory)
        case .deviceCodes: PlaceKey(.codes)
        }
    }
}

// MARK: - Answers of the registry

extension Hub {
    /// This node has claimed the place. Creates the machine by delivering the letters that waited.
    mutating func claimed(_ key: PlaceKey, _ stored: StoredState) {
        guard let machine = places?.machine(of: key), let waiting = places?.claim(machine) else {
            // The place was claimed for nobody, for example because it was reported as unavailable before. If it is here,
            // it was claimed twice.
            if places?.machine(of: key) == nil { context.releasePlace(key) }
            return
        }
        context.touch(machine)
        switch (stored, machine) {
        case (.room(let room), .room): context.tell(.roomRegistry(.restore(room)))
        case (.session(let moderation), .session(let id)): context.tell(.session(id, .moderated(moderation)))
        default: break
        }
        for waiting in waiting { context.tell(waiting.letter.renewed(stored)) }
    }

    /// The machine is on another node.
    mutating func placed(_ key: PlaceKey, at tag: NodeTag) {
        guard let machine = places?.machine(of: key), places?.isAsked(machine) == true else { return }
        if places?.waitsOn(machine, heldBy: tag, rules: context.rules, now: context.now) == true { return }
        let hasMoved = places?.hasMoved(machine) == true
        for waiting in places?.giveUp(machine) ?? [] {
            if waiting.letter.travels {
                context.post(waiting.letter, to: tag)
            } else if !crosses(waiting.letter, to: tag) {
                refuse(waiting.letter, refusal(of: waiting, machine, at: tag, hasMoved: hasMoved))
            }
        }
    }

    private func refusal(
        of waiting: Places.Waiting, _ machine: PlacedMachine, at tag: NodeTag, hasMoved: Bool
    ) -> WireError {
        switch waiting.at {
        case nil: .elsewhere(machine, at: tag)
        case places?.tag.nodeName: .heldElsewhere(at: tag)
        // The client has just tried to reach that node, and it has not begun another life since.
        case tag.nodeName where !hasMoved: .placesUnavailable
        default: .elsewhere(machine, at: tag)
        }
    }

    /// The machine is nowhere.
    mutating func unplaced(_ key: PlaceKey) {
        guard let machine = places?.machine(of: key), let result = places?.unplaced(machine) else { return }
        for waiting in result.letters {
            // Nobody answers the question, so the answer is that the person is nowhere.
            if case .person(let absent, .contact(.queried(let asker))) = waiting.letter, people.contains(asker) {
                context.tell(.person(asker, .contact(.absent(absent))))
                continue
            }
            // Only what is for this machine knows all it needs. A client that waited for its person may now need the place of a room.
            if waiting.letter.isFor(machine) { dispatch(waiting.letter) } else { context.tell(waiting.letter) }
        }
        guard let key = result.asks else { return }
        guard places?.claims(machine) == false else { return context.reach(key, machine, claims: true) }
        for waiting in places?.giveUp(machine) ?? [] { refuse(waiting.letter, .elsewhere(machine, at: nil)) }
    }

    /// The registry does not answer. Letters that can be posted wait until it does.
    mutating func placesUnavailable(_ key: PlaceKey) {
        guard let machine = places?.machine(of: key), places?.isAsked(machine) == true else { return }
        for waiting in places?.postpone(machine, now: context.now) ?? [] { refuse(waiting.letter, .placesUnavailable) }
    }

    /// Another node has this place now, because the registry had forgotten that it is here. Gives the machine up: its clients
    /// find the other one when they come again.
    mutating func lostPlace(_ key: PlaceKey) {
        guard let machine = places?.machine(of: key), places?.isHere(machine) == true else { return }
        _ = places?.release(machine)
        let error = WireError.elsewhere(machine, at: nil)
        switch machine {
        case .person(let id): context.tell(.person(id, .placeLost(error)))
        case .room(let name): context.tell(.room(name, .placeLost(error)))
        case .session(let id): context.tell(.session(id, .placeLost))
        case .hall:
            for person in pool.machine.waitingIdentities where people.contains(person) {
                context.tell(.person(person, .hallIsElsewhere(error)))
            }
            closeHall()
        case .directory:
            directory = Slot(Directory(rules: context.rules, project: context.project))
            for person in people.ids(where: { $0.usesDirectory }).sorted() {
                context.tell(.person(person, .presence(.directoryLost(error))))
            }
        case .deviceCodes: deviceCodes = Slot(DeviceCodes())
        }
    }

    /// The life of a node is over, so its places are void.
    mutating func nodeLost(_ tag: NodeTag) {
        places?.hurry(now: context.now)
        reachAgain()
        contactsLost(on: tag, isOver: true)
        // The registry may still answer that a room is there.
        context.mediaNodes?.remove(tag)
        distantSessions.ended(tag)
        distantLost(tag, isOver: true)
    }
}

// MARK: - Draining

extension Hub {
    /// If this node is about to stop, releases the hall, the directory and the device codes, and sends idle clients away. Rooms, calls and
    /// chats continue.
    mutating func changeService(to condition: NodeCondition) {
        guard places != nil else { return }
        places?.change(to: condition)
        guard places?.isDraining == true else { return }
        if places?.isHere(.hall) == true { closeHall() }
        for machine in [PlacedMachine.directory, .deviceCodes] {
            guard let key = places?.key(of: machine) else { continue }
            lostPlace(key)
            context.releasePlace(key)
        }
        if condition == .drained { closeEmptyRooms() }
        let newcomers = places?.idleNewcomers(now: context.now) ?? []
        // Other nodes would redirect people with a call back to this one, even if the call is still ringing.
        let inCalls = Set(people.ids { !$0.calls.isEmpty })
        for client in clients.idle(except: inCalls) where !newcomers.contains(client) {
            context.tell(.client(client, .expel(.serverStops, .serviceRestart)))
        }
    }

    /// Ends the rooms whose people this node has disconnected, so that they can open on other nodes at once. Persistent rooms stay in
    /// storage.
    private mutating func closeEmptyRooms() {
        for room in rooms.ids(where: { $0.roster.isEmpty }).sorted() {
            context.tell(.room(room, .placeLost(.serverStops)))
        }
    }
}

extension Letter {
    /// Whether this machine receives the letter.
    fileprivate func isFor(_ machine: PlacedMachine) -> Bool {
        if case .person(let id, _) = self { machine == .person(id) } else { false }
    }

    /// Returns this letter with the record that storage had after the place was claimed.
    fileprivate func renewed(_ stored: StoredState) -> Letter {
        switch (self, stored) {
        case (
            .person(
                let id, .arrived(let client, let address, let name, _, let home, let device, let at, let showsWarnings)
            ),
            .person(let record)
        ):
            .person(
                id,
                .arrived(
                    client, address: address, name, record, home: home, device: device, at: at,
                    showsWarnings: showsWarnings))
        case (.person(let id, .lookedUp), .person(let record)): .person(id, .lookedUp(record))
        default: self
        }
    }
}

// MARK: - After each event

extension Hub {
    /// Releases the places of machines that have ended, after all letters were delivered.
    mutating func settlePlaces() {
        guard places != nil else { return }
        for machine in context.takeTouched() where !exists(machine) {
            if let key = places?.release(machine) { context.releasePlace(key) }
        }
        settleHall()
        timers.schedule(.places, places?.wakeUp())
    }

    private func exists(_ machine: PlacedMachine) -> Bool {
        switch machine {
        case .person(let id): people.contains(id)
        case .room(let name): rooms.contains(name)
        case .session(let id): sessions.contains(id)
        case .hall, .directory, .deviceCodes: true
        }
    }

    /// Releases the hall's place some time after the last stranger has stopped waiting. If it were released at once, a stranger
    /// who was just redirected to this node could be redirected again.
    private mutating func settleHall() {
        guard places?.isHere(.hall) == true else { return }
        guard pool.machine.waitingCount == 0, places?.isDraining == false else {
            if places?.isDraining == true { releaseHall() } else { places?.hallUntil = nil }
            return
        }
        let until = places?.hallUntil ?? context.now + context.rules.hallLinger
        places?.hallUntil = until
        if until <= context.now { releaseHall() }
    }

    private mutating func releaseHall() {
        if let key = places?.release(.hall) { context.releasePlace(key) }
    }

    /// Asks again about the places for which it is time.
    mutating func reachAgain() {
        for due in places?.takeDue(now: context.now) ?? [] {
            context.reach(due.key, due.machine, claims: due.claims)
        }
    }

    mutating func wakePlaces(at moment: Timestamp) { if places?.woke(at: moment) == true { reachAgain() } }
}
