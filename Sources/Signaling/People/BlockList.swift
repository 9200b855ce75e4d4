import Wire

/// The people a person has blocked.
struct BlockList: Equatable, Sendable {
    /// Maximum number of blocked people in one answer. Even with long names, 500 entries fit into a connection's
    /// replay buffer (64 KiB), so a client that loses its connection can still receive the answer when it resumes.
    private static let maxListed = 500

    private(set) var oldestFirst: [IdentityID]
    private(set) var all: Set<IdentityID>

    init(_ blocked: [IdentityID]) { (oldestFirst, all) = (blocked, Set(blocked)) }

    func contains(_ other: IdentityID) -> Bool { all.contains(other) }

    /// Blocks a person. The two no longer see each other in lists and are no longer matched. Beyond `maxBlocks`, the
    /// oldest block is dropped.
    ///
    /// - Returns: true if the person was not blocked before.
    mutating func add(_ other: IdentityID, of owner: IdentityID, _ context: inout Context) -> Bool {
        guard all.insert(other).inserted else { return false }
        oldestFirst.append(other)
        if oldestFirst.count > context.rules.maxBlocks { all.remove(oldestFirst.removeFirst()) }
        context.tell(.pool(.exclude(owner, other)))
        return true
    }

    mutating func unblock(_ person: PersonID, _ request: Request, of owner: IdentityID, _ context: inout Context) {
        let project = context.project
        // Compare ids instead of looking the person up, so that deleted people can be unblocked too.
        let named = oldestFirst.firstIndex {
            project.blockedID(of: $0, by: owner) == person || project.personID(of: $0) == person
        }
        guard let index = named else {
            let error = WireError(.notFound, "No blocked person has this ID. Request presence.blocked again.")
            return context.fail(error, request)
        }
        let other = oldestFirst.remove(at: index)
        all.remove(other)
        context.persist(.unblock(owner: owner, blocked: other))
        context.ok(request)
    }

    /// Sends the list of the most recently blocked people, newest first, with the names under which this person knows
    /// them. Other blocked people get a generated name.
    func list(_ names: [IdentityID: String], _ request: Request, of owner: IdentityID, _ context: inout Context) {
        let project = context.project
        let people = oldestFirst.reversed().prefix(Self.maxListed).map { other in
            let person = project.blockedID(of: other, by: owner)
            return PersonInfo(id: person, name: names[other] ?? PersonName.generated(person), online: false)
        }
        context.send(.presence(.blocked(PeopleList(re: request.re, people: people))), to: request.client)
    }
}
