import Wire

/// A chat or call, and whom this person met there.
struct Encounter: Equatable, Sendable {
    var meeting: MeetingReference
    /// Nil if there was no such meeting, or it was too long ago.
    var other: IdentityID?
}

/// A person's contacts: agreed on by two who met, told of each other's coming and going, and given up by either.
struct ContactBook: Equatable, Sendable {
    private var contacts: [Contact]
    /// Those of them that are here, as others may know it.
    private var online: Set<IdentityID> = []
    private var meetings = Meetings()

    init(_ record: PersonRecord) { contacts = record.contacts }

    /// True while a recent partner may still ask to keep in touch.
    var isWorthRemembering: Bool { !meetings.isEmpty }

    func contains(_ other: IdentityID) -> Bool { contacts.contains { $0.identity == other } }

    /// Adds the names by which the person remembers its contacts.
    func addingNames(to names: [IdentityID: String]) -> [IdentityID: String] {
        var names = names
        for contact in contacts { names[contact.identity] = contact.name }
        return names
    }

    // MARK: Meetings

    mutating func talked(in call: CallDesk.Part, _ now: Timestamp) {
        meetings.talked(in: call.id, with: call.offer.other.identity, now: now)
    }

    func other(in call: CallID, _ now: Timestamp) -> IdentityID? { meetings.other(in: call, now: now) }

    mutating func forgetMeetings(with other: IdentityID) { meetings.forget(other) }

    /// Tells a device that appears who would like to keep in touch.
    func tellWishes(to client: ConnectionID, _ turn: inout Turn) {
        for wish in meetings.wishes where wish.other != nil && !wish.isMine {
            turn.send(.contact(.asked(wish.meeting)), to: client)
        }
    }

    // MARK: Agreeing

    /// This person would like to keep in touch.
    ///
    /// - Returns: the other, if it said so before: the two agree.
    mutating func keep(
        _ encounter: Encounter, _ request: Request, _ facts: Facts, _ turn: inout Turn
    ) -> Counterpart? {
        do throws(WireError) {
            let other = try permitted(encounter, facts, turn)
            turn.ok(request)
            if let asker = meetings.wish(encounter.meeting, by: nil, now: turn.now).other { return asker }
            turn.tell(.person(other, .contact(.asked(encounter.meeting, by: facts.acquaintance))))
        } catch {
            turn.fail(error, request)
        }
        return nil
    }

    private func permitted(
        _ encounter: Encounter, _ facts: Facts, _ turn: Turn
    ) throws(WireError) -> IdentityID {
        guard let other = encounter.other else {
            throw WireError(.notFound, "There was no such chat or call, or it was too long ago.")
        }
        guard !facts.blocks.contains(other) else {
            throw WireError(.notPermitted, "You have blocked this person; unblock them first.")
        }
        guard hasRoom(for: other, turn) else {
            throw WireError(
                .notPermitted, "You keep in touch with \(contacts.count) people already; remove somebody first.")
        }
        return other
    }

    private func hasRoom(for other: IdentityID, _ turn: Turn) -> Bool {
        contacts.count < turn.rules.maxContacts || contains(other)
    }

    /// The other would like to keep in touch.
    ///
    /// - Returns: whether this person said so before: the two agree.
    mutating func asked(
        _ encounter: Encounter, by other: Counterpart, _ facts: Facts, _ turn: inout Turn
    ) -> Bool {
        let meeting = encounter.meeting
        guard encounter.other == other.identity, !facts.blocks.contains(other.identity) else { return false }
        let isKnown = meetings.wishes.contains { $0.meeting == meeting && $0.other != nil }
        let wish = meetings.wish(meeting, by: other, now: turn.now)
        if wish.isMine || contains(other.identity) { return true }
        if !isKnown { tell(facts.devices, .asked(meeting), &turn) }
        return false
    }

    /// Both said so, and the other has stored it.
    ///
    /// - Returns: whether this person still agrees. Otherwise the contact is given up.
    func accepts(_ other: Counterpart, _ facts: Facts, _ turn: inout Turn) -> Bool {
        if !facts.blocks.contains(other.identity), hasRoom(for: other.identity, turn) { return true }
        giveUp(other.identity, facts.id, &turn)
        return false
    }

    mutating func add(_ other: Counterpart, _ meeting: MeetingReference, _ devices: DeviceList, _ turn: inout Turn) {
        meetings.fulfilled(meeting)
        contacts.removeAll { $0.identity == other.identity }
        contacts.append(Contact(identity: other.identity, name: other.name))
        note(other)
        tell(devices, .added(.init(person: other.info, meeting: meeting)), &turn)
    }

    private mutating func note(_ other: Counterpart) {
        if other.isOnline { online.insert(other.identity) } else { online.remove(other.identity) }
    }

    // MARK: Listing

    func list(_ request: Request, _ turn: inout Turn) {
        let project = turn.project
        let people = contacts.map { contact in
            PersonInfo(
                id: project.personID(of: contact.identity), name: contact.name,
                online: online.contains(contact.identity)
            )
        }
        turn.send(.contact(.list(PeopleList(re: request.re, people: people))), to: request.client)
    }

    // MARK: Giving up

    mutating func remove(_ verb: PersonReference, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        let project = turn.project
        guard let contact = contacts.first(where: { project.personID(of: $0.identity) == verb.person }) else {
            let error = WireError(.notFound, "This person is not among your contacts.")
            return turn.fail(error, request)
        }
        remove(contact.identity, of: facts.id, &turn)
        turn.ok(request)
        tell(facts.devices, .removed(verb), except: request.client, &turn)
    }

    /// On both sides. Does nothing for somebody who is not among the contacts.
    mutating func remove(_ other: IdentityID, of id: IdentityID, _ turn: inout Turn) {
        if forget(other) { giveUp(other, id, &turn) }
    }

    /// The other does not stay in touch any more.
    mutating func removed(by other: IdentityID, _ facts: Facts, _ turn: inout Turn) {
        guard forget(other) else { return }
        tell(facts.devices, .removed(.init(person: turn.project.personID(of: other))), &turn)
    }

    private func giveUp(_ other: IdentityID, _ id: IdentityID, _ turn: inout Turn) {
        turn.persist(.lostTouch(id, other))
        turn.tell(.person(other, .contact(.removed(by: id))))
    }

    private mutating func forget(_ other: IdentityID) -> Bool {
        guard let index = contacts.firstIndex(where: { $0.identity == other }) else { return false }
        contacts.remove(at: index)
        online.remove(other)
        return true
    }

    /// The person is deleted, and storage has forgotten its contacts: they are told.
    mutating func loseAll(of id: IdentityID, _ turn: inout Turn) {
        for contact in contacts { turn.tell(.person(contact.identity, .contact(.removed(by: id)))) }
        (contacts, online) = ([], [])
    }

    // MARK: Who is here

    /// Whether others may see that this person is here has changed, or its name has.
    func tellPresence(_ facts: Facts, _ turn: inout Turn) {
        for contact in contacts {
            turn.tell(.person(contact.identity, .contact(.presence(of: facts.counterpart))))
        }
    }

    /// The first device has come: from now on this person knows of its contacts' coming and going.
    func inquire(for id: IdentityID, _ turn: inout Turn) {
        for contact in contacts { turn.tell(.person(contact.identity, .contact(.inquired(by: id)))) }
    }

    /// A contact asks whether this person is here.
    func inquired(by other: IdentityID, _ facts: Facts, _ turn: inout Turn) {
        guard facts.isSeenOnline, contains(other) else { return }
        turn.tell(.person(other, .contact(.presence(of: facts.counterpart))))
    }

    mutating func heard(of other: Counterpart, _ devices: DeviceList, _ turn: inout Turn) {
        guard let index = contacts.firstIndex(where: { $0.identity == other.identity }) else { return }
        let wasOnline = online.contains(other.identity)
        guard wasOnline != other.isOnline || contacts[index].name != other.name else { return }
        contacts[index].name = other.name
        note(other)
        let news = ContactNotice.Changed(person: other.info)
        for client in devices.present { turn.send(.contact(.changed(news)), to: client) }
    }

    /// Tells all devices, since a partner in a chat need not have appeared. RouletteTok's wire has no such message.
    private func tell(
        _ devices: DeviceList, _ news: ContactNotice, except excluded: ConnectionID? = nil, _ turn: inout Turn
    ) {
        for client in devices.clients where client != excluded && devices[client]?.home == nil {
            turn.send(.contact(news), to: client)
        }
    }
}
