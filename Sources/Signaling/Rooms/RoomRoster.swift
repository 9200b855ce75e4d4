import Wire

/// The people in a room, in the order of joining.
///
/// Invariant: while anyone is in the room, someone is host.
struct RoomRoster: Equatable, Sendable {
    struct Member: Equatable, Sendable {
        let client: ConnectionID
        let identity: IdentityID
        /// The address that they came in from, for limits.
        let address: String
        /// What the client's token for the session is bound to.
        let binding: MatchID
        /// The bearer token with which the client downloads files of the room.
        let fileKey: RoomFileKey
        /// Identifies the token with which an application let the person in; nil without one.
        let token: [UInt8]?
        /// The role in that token; nil without one, or after a host chose the role.
        fileprivate var granted: RoomRole?
        /// What the others see.
        fileprivate(set) var person: RoomPerson
        /// Whether this is a client of PerchRTC's protocol, which cannot moderate.
        var isPerch: Bool { client.isPerch }

        var role: RoomRole { person.role }
        var isDropped: Bool { person.state == .reconnecting }
    }

    private(set) var members: [Member] = []

    var isEmpty: Bool { members.isEmpty }
    var count: Int { members.count }
    var people: [RoomPerson] { members.map(\.person) }
    /// Those who admit and moderate.
    var moderators: [ConnectionID] { members.filter(\.role.moderates).map(\.client) }
    subscript(client: ConnectionID) -> Member? { members.first { $0.client == client } }

    private func index(_ client: ConnectionID) -> Int? { members.firstIndex { $0.client == client } }

    // MARK: Joining and leaving

    mutating func insert(
        _ applicant: RoomApplicant, as role: RoomRole, _ binding: MatchID, _ turn: inout Turn
    ) -> Member {
        var person = RoomPerson()
        (person.connection, person.displayName, person.role) = (applicant.client, applicant.name, role)
        person.since = turn.wallNow
        person.state = applicant.isAway ? .reconnecting : .connected
        let member = Member(
            client: applicant.client, identity: applicant.identity, address: applicant.address, binding: binding,
            fileKey: .random(using: &turn.random), token: applicant.grant?.fingerprint, granted: applicant.grant?.role,
            person: person)
        members.append(member)
        return member
    }

    /// Notes that a person is host only until a host by right comes, and then a guest.
    mutating func standIn(_ client: ConnectionID) {
        if let index = index(client) { members[index].granted = .guest }
    }

    mutating func remove(_ client: ConnectionID) -> Member? { index(client).map { members.remove(at: $0) } }

    /// Makes someone host if nobody is: the cohost who has been there longest, otherwise the guest. People whose connection
    /// dropped come after the others of the same role.
    ///
    /// - Returns: the new host; nil if nobody was missing.
    mutating func appointHost() -> Member? {
        // A client of PerchRTC's protocol is host only as long as nobody else is there.
        let canModerate = members.filter { !$0.isPerch }
        guard !(canModerate.isEmpty ? members : canModerate).contains(where: { $0.role == .host }) else { return nil }
        let order = members.indices.min { rank($0) < rank($1) }
        guard let order else { return nil }
        members[order].person.role = .host
        return members[order]
    }

    private func rank(_ index: Int) -> (Int, Int, Int, Int) {
        let member = members[index]
        return (member.isPerch ? 1 : 0, member.role.rank, member.isDropped ? 1 : 0, index)
    }

    // MARK: Changes

    func isLastHost(_ client: ConnectionID) -> Bool {
        self[client]?.role == .host
            && !members.contains { $0.role == .host && !$0.isPerch && $0.client != client }
    }

    mutating func setRole(_ role: RoomRole, of client: ConnectionID) {
        guard let index = index(client) else { return }
        members[index].person.role = role
        members[index].granted = nil
    }

    /// Ends that people are host only because nobody else was: their tokens give them another role.
    ///
    /// - Returns: these people, with the role of their token.
    mutating func endStandIns(except client: ConnectionID) -> [Member] {
        var changed: [Member] = []
        for index in members.indices where members[index].client != client && members[index].role == .host {
            guard let granted = members[index].granted, granted != .host else { continue }
            members[index].person.role = granted
            changed.append(members[index])
        }
        return changed
    }

    /// - Returns: false if this changes nothing.
    mutating func setDropped(_ isDropped: Bool, _ client: ConnectionID) -> Bool {
        guard let index = index(client), members[index].isDropped != isDropped else { return false }
        members[index].person.state = isDropped ? .reconnecting : .connected
        return true
    }

    /// - Returns: false if this changes nothing.
    mutating func setHand(_ raised: Bool, _ client: ConnectionID, now: Timestamp) -> Bool {
        guard let index = index(client), (members[index].person.handAt != nil) != raised else { return false }
        members[index].person.handAt = raised ? now : nil
        return true
    }
}
