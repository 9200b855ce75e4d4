import Wire

/// Looking somebody up, and seeing nothing more of somebody.
extension Person {
    /// Of the blocked who are told at once: 500 with long names are below the 64 KiB that are kept for a resume.
    private static let mostListed = 500

    /// It is known now whom `presence.find` or `block` named.
    mutating func introduced(
        to other: IdentityID, for verb: PresenceVerb, by client: ConnectionID, re: UInt64, now: Timestamp,
        _ surroundings: Surroundings, into effects: inout [Effect]
    ) {
        switch verb {
        case .find where blockedSet.contains(other): notFound(re, client, into: &effects)
        case .find: effects.tell(.person(other, .presence(.sought(by: id, client, re: re))))
        case .block where other == id:
            effects.fail(WireError(.notPermitted, "This is yourself."), re: re, to: client)
        case .block:
            block(other, now: now, surroundings.rules, into: &effects)
            effects.send(.ok(Answer(re: re)), to: client)
            leaveChat(with: other, now: now, surroundings.rules, into: &effects)
        default: notFound(re, client, into: &effects)
        }
    }

    /// To the client of somebody who asks who this is.
    func tell(_ other: IdentityID, _ client: ConnectionID, _ re: UInt64, into effects: inout [Effect]) {
        // Somebody blocked is told what he would be told of somebody who is not there, here and when he calls.
        let isOnline = isSeenOnline && !blockedSet.contains(other)
        let info = PersonInfo(id: publicID, name: shownName, online: isOnline)
        effects.send(.presence(.person(FoundPerson(re: re, person: info))), to: client)
    }

    // MARK: Blocking

    /// From the roulette, from a list or from a call: what is between the two is over, and nothing will be.
    mutating func block(_ other: IdentityID, now: Timestamp, _ rules: Rules, into effects: inout [Effect]) {
        if shut(out: other, rules, into: &effects) {
            effects.append(.persist(.block(owner: id, blocked: other, at: now)))
        }
        dropBlocked(other, now: now, into: &effects)
    }

    /// The two do not meet any more, in lists or in the queue.
    ///
    /// - Returns: whether that is new.
    mutating func shut(
        out other: IdentityID, _ rules: Rules, into effects: inout [Effect]
    ) -> Bool {
        guard blockedSet.insert(other).inserted else { return false }
        blocked.append(other)
        if blocked.count > rules.maxBlocks { blockedSet.remove(blocked.removeFirst()) }
        effects.tell(.pool(.exclude(id, other)))
        return true
    }

    private mutating func leaveChat(
        with other: IdentityID, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) {
        guard case .chatting(let search, let chat) = activity, chat.partner == other else { return }
        leave(chat, .blocked, now: now, rules, into: &effects)
        effects.send(.ended(Ended(match: chat.match, reason: .blocked)), to: search.client)
        resumeSearch(search, re: nil, now: now, into: &effects)
    }

    mutating func unblock(
        _ person: PersonID, _ client: ConnectionID, _ re: UInt64, _ project: Project, into effects: inout [Effect]
    ) {
        // Not by asking who that is: whoever was deleted can be taken from the list as well.
        let named = blocked.firstIndex {
            project.blockedID(of: $0, by: id) == person || project.personID(of: $0) == person
        }
        guard let index = named else {
            let error = WireError(.notFound, "You blocked nobody of this id; ask for presence.blocked again.")
            return effects.fail(error, re: re, to: client)
        }
        let other = blocked.remove(at: index)
        blockedSet.remove(other)
        effects.append(.persist(.unblock(owner: id, blocked: other)))
        effects.send(.ok(Answer(re: re)), to: client)
    }

    /// The newest first, under the names by which they are remembered.
    func listBlocked(_ client: ConnectionID, _ re: UInt64, _ project: Project, into effects: inout [Effect]) {
        var names: [IdentityID: String] = [:]
        for record in unseenCalls { names[record.other] = record.otherName }
        for contact in contacts { names[contact.identity] = contact.name }
        let people = blocked.reversed().prefix(Self.mostListed).map { other in
            let person = project.blockedID(of: other, by: id)
            return PersonInfo(id: person, name: names[other] ?? PersonName.pleasant(person), online: false)
        }
        effects.send(.presence(.blocked(PeopleList(re: re, people: people))), to: client)
    }
}
