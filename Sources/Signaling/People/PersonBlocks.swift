import Wire

/// Looking somebody up, and seeing nothing more of somebody.
extension Person {
    /// Of the blocked who are told at once: 500 with long names are below the 64 KiB that are kept for a resume.
    private static let mostListed = 500

    /// It is known now whom `presence.find` or `block` named.
    mutating func introduced(to other: IdentityID, for verb: PresenceVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .find where blockedSet.contains(other): notFound(request, &turn)
        case .find: turn.tell(.person(other, .presence(.sought(by: id, request.client, re: request.re))))
        case .block where other == id:
            turn.fail(WireError(.notPermitted, "This is yourself."), request)
        case .block:
            block(other, &turn)
            turn.ok(request)
            leaveChat(with: other, &turn)
        default: notFound(request, &turn)
        }
    }

    /// To the client of somebody who asks who this is.
    func tell(_ other: IdentityID, _ request: Request, _ turn: inout Turn) {
        // Somebody blocked is told what he would be told of somebody who is not there, here and when he calls.
        let isOnline = isSeenOnline && !blockedSet.contains(other)
        let info = PersonInfo(id: publicID, name: shownName, online: isOnline)
        turn.send(.presence(.person(FoundPerson(re: request.re, person: info))), to: request.client)
    }

    // MARK: Blocking

    /// From the roulette, from a list or from a call: what is between the two is over, and nothing will be.
    mutating func block(_ other: IdentityID, _ turn: inout Turn) {
        if shut(out: other, &turn) {
            turn.persist(.block(owner: id, blocked: other, at: turn.now))
        }
        dropBlocked(other, &turn)
    }

    /// The two do not meet any more, in lists or in the queue.
    ///
    /// - Returns: whether that is new.
    mutating func shut(out other: IdentityID, _ turn: inout Turn) -> Bool {
        guard blockedSet.insert(other).inserted else { return false }
        blocked.append(other)
        if blocked.count > turn.rules.maxBlocks { blockedSet.remove(blocked.removeFirst()) }
        turn.tell(.pool(.exclude(id, other)))
        return true
    }

    private mutating func leaveChat(with other: IdentityID, _ turn: inout Turn) {
        guard case .chatting(let search, let chat) = activity, chat.partner == other else { return }
        leave(chat, .blocked, &turn)
        turn.send(.ended(Ended(match: chat.match, reason: .blocked)), to: search.client)
        resumeSearch(search, re: nil, &turn)
    }

    mutating func unblock(_ person: PersonID, _ request: Request, _ turn: inout Turn) {
        // Not by asking who that is: whoever was deleted can be taken from the list as well.
        let named = blocked.firstIndex {
            turn.project.blockedID(of: $0, by: id) == person || turn.project.personID(of: $0) == person
        }
        guard let index = named else {
            let error = WireError(.notFound, "You blocked nobody of this id; ask for presence.blocked again.")
            return turn.fail(error, request)
        }
        let other = blocked.remove(at: index)
        blockedSet.remove(other)
        turn.persist(.unblock(owner: id, blocked: other))
        turn.ok(request)
    }

    /// The newest first, under the names by which they are remembered.
    func listBlocked(_ request: Request, _ turn: inout Turn) {
        var names: [IdentityID: String] = [:]
        for record in unseenCalls { names[record.other] = record.otherName }
        for contact in contacts { names[contact.identity] = contact.name }
        let people = blocked.reversed().prefix(Self.mostListed).map { other in
            let person = turn.project.blockedID(of: other, by: id)
            return PersonInfo(id: person, name: names[other] ?? PersonName.pleasant(person), online: false)
        }
        turn.send(.presence(.blocked(PeopleList(re: request.re, people: people))), to: request.client)
    }
}
