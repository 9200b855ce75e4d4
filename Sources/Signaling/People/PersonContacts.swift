import Wire

/// What reaches a person about its contacts.
public enum PersonContactEvent: Equatable, Sendable {
    /// The other of this meeting would like to stay in touch.
    case asked(OfMeeting, by: Counterpart)
    /// Both said so, and it is stored.
    case agreed(OfMeeting, with: Counterpart)
    /// The other does not stay in touch any more.
    case removed(by: IdentityID)
    /// A contact appeared, went, or goes by another name.
    case presence(of: Counterpart)
    /// A contact has come and asks whether this person is here.
    case inquired(by: IdentityID)
}

/// The chats and calls by which people may still agree to keep in touch, and who has said so.
struct Meetings: Equatable, Sendable {
    struct Call: Equatable, Sendable {
        var id: CallID
        var other: IdentityID
        var ended: Timestamp
    }

    struct Wish: Equatable, Sendable {
        var meeting: OfMeeting
        var other: Counterpart?
        var at: Timestamp
        var isMine = false
    }

    /// How long after a call the two may still agree.
    static let period: Duration = .seconds(3600)
    /// Of each kind; nobody talks to more people in an hour, nor answers more wishes.
    private static let most = 30

    private(set) var calls: [Call] = []
    private(set) var wishes: [Wish] = []

    var isEmpty: Bool { calls.isEmpty && wishes.isEmpty }

    mutating func talked(in call: CallID, with other: IdentityID, now: Timestamp) {
        calls.removeAll { now - $0.ended > Self.period }
        calls.append(Call(id: call, other: other, ended: now))
        if calls.count > Self.most { calls.removeFirst() }
    }

    func other(in call: CallID, now: Timestamp) -> IdentityID? {
        calls.first { $0.id == call && now - $0.ended <= Self.period }?.other
    }

    /// Notes that one of the two said it; returns what is known of both by now.
    mutating func wish(_ meeting: OfMeeting, by other: Counterpart?, now: Timestamp) -> Wish {
        wishes.removeAll { now - $0.at > Self.period }
        var wish = Wish(meeting: meeting, at: now)
        if let index = wishes.firstIndex(where: { $0.meeting == meeting }) { wish = wishes.remove(at: index) }
        if let other { wish.other = other } else { wish.isMine = true }
        wishes.append(wish)
        if wishes.count > Self.most { wishes.removeFirst() }
        return wish
    }

    mutating func fulfilled(_ meeting: OfMeeting) { wishes.removeAll { $0.meeting == meeting } }

    mutating func forget(_ other: IdentityID) {
        calls.removeAll { $0.other == other }
        wishes.removeAll { $0.other?.identity == other }
    }
}

/// A person's contacts: agreed on by two who met, told of each other's coming and going, and given up by either.
extension Person {
    mutating func perform(_ verb: ContactVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .keep(let meeting): keep(meeting, request, &turn)
        case .list:
            let people = contacts.map { contact in
                PersonInfo(
                    id: turn.project.personID(of: contact.identity), name: contact.name,
                    online: onlineContacts.contains(contact.identity)
                )
            }
            turn.send(.contact(.list(PeopleList(re: request.re, people: people))), to: request.client)
        case .remove(let verb):
            guard let contact = contacts.first(where: { turn.project.personID(of: $0.identity) == verb.person }) else {
                let error = WireError(.notFound, "This person is not among your contacts.")
                return turn.fail(error, request)
            }
            removeContact(contact.identity, &turn)
            turn.ok(request)
            tellDevices(.removed(verb), except: request.client, &turn)
        }
    }

    mutating func handle(_ event: PersonContactEvent, _ turn: inout Turn) {
        switch event {
        case .asked(let meeting, let other): asked(meeting, by: other, &turn)
        case .agreed(let meeting, let other):
            guard !blockedSet.contains(other.identity), isRoomForContact(other.identity, turn.rules) else {
                return giveUp(other.identity, &turn)
            }
            add(other, meeting, &turn)
        case .removed(let other):
            guard forgetContact(other) else { return }
            tellDevices(.removed(OfPerson(person: turn.project.personID(of: other))), &turn)
        case .presence(let other): heard(of: other, &turn)
        case .inquired(let other):
            guard isSeenOnline, contacts.contains(where: { $0.identity == other }) else { return }
            turn.tell(.person(other, .contact(.presence(of: counterpart))))
        }
    }

    // MARK: Agreeing

    private mutating func keep(_ meeting: OfMeeting, _ request: Request, _ turn: inout Turn) {
        guard let other = whoWasMet(in: meeting, now: turn.now, turn.rules) else {
            let error = WireError(.notFound, "There was no such chat or call, or it was too long ago.")
            return turn.fail(error, request)
        }
        guard !blockedSet.contains(other) else {
            let error = WireError(.notPermitted, "You have blocked this person; unblock them first.")
            return turn.fail(error, request)
        }
        guard isRoomForContact(other, turn.rules) else {
            let error = WireError(
                .notPermitted, "You keep in touch with \(contacts.count) people already; remove somebody first.")
            return turn.fail(error, request)
        }
        turn.ok(request)
        if let asker = meetings.wish(meeting, by: nil, now: turn.now).other {
            agree(with: asker, meeting, &turn)
        } else {
            turn.tell(.person(other, .contact(.asked(meeting, by: acquaintance))))
        }
    }

    private mutating func asked(_ meeting: OfMeeting, by other: Counterpart, _ turn: inout Turn) {
        guard whoWasMet(in: meeting, now: turn.now, turn.rules) == other.identity, !blockedSet.contains(other.identity)
        else {
            return
        }
        let isKnown = meetings.wishes.contains { $0.meeting == meeting && $0.other != nil }
        let wish = meetings.wish(meeting, by: other, now: turn.now)
        if wish.isMine || contacts.contains(where: { $0.identity == other.identity }) {
            agree(with: other, meeting, &turn)
        } else if !isKnown {
            tellDevices(.asked(meeting), &turn)
        }
    }

    private func whoWasMet(in meeting: OfMeeting, now: Timestamp, _ rules: Rules) -> IdentityID? {
        if let match = meeting.match { return chat(match, now: now, rules)?.partner }
        guard let call = meeting.call else { return nil }
        if let part = calls[call], part.acceptedAt != nil { return part.offer.other.identity }
        return meetings.other(in: call, now: now)
    }

    private func isRoomForContact(_ other: IdentityID, _ rules: Rules) -> Bool {
        contacts.count < rules.maxContacts || contacts.contains { $0.identity == other }
    }

    private mutating func agree(with other: Counterpart, _ meeting: OfMeeting, _ turn: inout Turn) {
        let own = acquaintance
        turn.persist(.keptInTouch(id, other.identity, names: [own.name, other.name], at: turn.now))
        add(other, meeting, &turn)
        turn.tell(.person(other.identity, .contact(.agreed(meeting, with: own))))
    }

    private mutating func add(_ other: Counterpart, _ meeting: OfMeeting, _ turn: inout Turn) {
        if !isKnown {
            // Somebody from the roulette: from now on it can be found, by whoever has its id.
            profile.name = acquaintance.name
            isKnown = true
            turn.persist(.profile(id, publicID, profile))
        }
        meetings.fulfilled(meeting)
        contacts.removeAll { $0.identity == other.identity }
        contacts.append(Contact(identity: other.identity, name: other.name))
        if other.isOnline { onlineContacts.insert(other.identity) } else { onlineContacts.remove(other.identity) }
        tellDevices(.added(ContactAdded(person: other.info, meeting: meeting)), &turn)
    }

    /// As somebody met in the roulette knows this person, if it never was anywhere else.
    private var acquaintance: Counterpart {
        var own = counterpart
        guard !isKnown, profile.name.isEmpty, let name = search.flatMap({ PersonName.normalised($0.name) }) else {
            return own
        }
        if !name.isEmpty { own.name = name }
        return own
    }

    // MARK: Giving up

    /// On both sides. Does nothing for somebody who is not among the contacts.
    mutating func removeContact(_ other: IdentityID, _ turn: inout Turn) {
        if forgetContact(other) { giveUp(other, &turn) }
    }

    private func giveUp(_ other: IdentityID, _ turn: inout Turn) {
        turn.persist(.lostTouch(id, other))
        turn.tell(.person(other, .contact(.removed(by: id))))
    }

    private mutating func forgetContact(_ other: IdentityID) -> Bool {
        guard let index = contacts.firstIndex(where: { $0.identity == other }) else { return false }
        contacts.remove(at: index)
        onlineContacts.remove(other)
        return true
    }

    /// This person is deleted, and storage has forgotten its contacts: they are told.
    mutating func loseAllContacts(_ turn: inout Turn) {
        for contact in contacts { turn.tell(.person(contact.identity, .contact(.removed(by: id)))) }
        (contacts, onlineContacts) = ([], [])
    }

    // MARK: Who is here

    /// Whether others may see that this person is here has changed, or its name has.
    func presenceChanged(_ turn: inout Turn) {
        for contact in contacts { turn.tell(.person(contact.identity, .contact(.presence(of: counterpart)))) }
    }

    /// The first device has come: from now on this person knows of its contacts' coming and going.
    func inquireAfterContacts(_ turn: inout Turn) {
        for contact in contacts { turn.tell(.person(contact.identity, .contact(.inquired(by: id)))) }
    }

    private mutating func heard(of other: Counterpart, _ turn: inout Turn) {
        guard let index = contacts.firstIndex(where: { $0.identity == other.identity }) else { return }
        let wasOnline = onlineContacts.contains(other.identity)
        guard wasOnline != other.isOnline || contacts[index].name != other.name else { return }
        contacts[index].name = other.name
        if other.isOnline { onlineContacts.insert(other.identity) } else { onlineContacts.remove(other.identity) }
        let news = ContactChanged(person: other.info)
        for client in presentDevices { turn.send(.contact(.changed(news)), to: client) }
    }

    /// To a device that appears: who would like to keep in touch.
    func tellWishes(to client: ConnectionID, _ turn: inout Turn) {
        for wish in meetings.wishes where wish.other != nil && !wish.isMine {
            turn.send(.contact(.asked(wish.meeting)), to: client)
        }
    }

    /// Whoever chats may not have appeared: all devices hear of it, but those of RouletteTok's wire, which know no such word.
    private func tellDevices(_ news: ContactNews, except excluded: ConnectionID? = nil, _ turn: inout Turn) {
        for client in devices.keys.sorted() where client != excluded && devices[client]?.home == nil {
            turn.send(.contact(news), to: client)
        }
    }
}
