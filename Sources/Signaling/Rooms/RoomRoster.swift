import Wire

/// The people in a room, in order of joining.
///
/// Invariant: while anyone is in the room, someone is host.
struct RoomRoster: Equatable, Sendable {
    /// A person in the room, on one connection.
    struct Member: Equatable, Sendable {
        let client: ConnectionID
        let identity: IdentityID
        /// The address from which the person joined, for the limits per address.
        let address: String
        /// The ID to which the client's session token is bound.
        let binding: MatchID
        /// The bearer token with which the client downloads files of the room.
        let fileKey: RoomFileKey
        /// The fingerprint of the application's token with which the person entered; nil if there was none.
        let token: [UInt8]?
        /// What the person may do.
        fileprivate(set) var rights: RoomRights { didSet { person.role = rights.role } }
        /// The person as others see them. The role is that of `rights`.
        fileprivate(set) var person: RoomPerson
        let abilities: RoomAbilities

        var canHost: Bool { abilities.contains(.hosting) }

        var role: RoomRole { rights.role }
        var isDropped: Bool { person.state == .reconnecting }
    }

    private(set) var members: [Member] = []

    var isEmpty: Bool { members.isEmpty }
    var count: Int { members.count }
    var people: [RoomPerson] { members.map(\.person) }
    /// Whether at least one member's client can moderate the room.
    var canHost: Bool { members.contains(where: \.canHost) }
    /// The hosts and cohosts.
    var moderators: [ConnectionID] { members.filter(\.role.moderates).map(\.client) }
    subscript(client: ConnectionID) -> Member? { members.first { $0.client == client } }

    private func index(_ client: ConnectionID) -> Int? { members.firstIndex { $0.client == client } }

    // MARK: Joining and leaving

    mutating func insert(
        _ applicant: RoomApplicant, with rights: RoomRights, _ binding: MatchID, _ context: inout Context
    ) -> Member {
        var person = RoomPerson()
        (person.connection, person.displayName, person.role) = (applicant.client, applicant.name, rights.role)
        person.since = context.wallNow
        person.state = applicant.isAway ? .reconnecting : .connected
        let member = Member(
            client: applicant.client, identity: applicant.identity, address: applicant.address, binding: binding,
            fileKey: .random(using: &context.random), token: applicant.grant?.fingerprint, rights: rights,
            person: person, abilities: applicant.abilities)
        members.append(member)
        return member
    }

    mutating func remove(_ client: ConnectionID) -> Member? { index(client).map { members.remove(at: $0) } }

    /// Makes someone host if there is none, or if no host's client can moderate although another client in the room
    /// can. Prefers people whose client can moderate, then cohosts, then people whose connection has not dropped, then
    /// those who have been present longest. The new host keeps the role until an owner enters.
    ///
    /// - Returns: the new host; nil if none was needed or the room is empty.
    mutating func appointHost() -> Member? {
        // A person whose client cannot moderate is host only while nobody else's client can.
        guard !members.contains(where: { $0.role == .host && $0.canHost == canHost }) else { return nil }
        guard let index = members.indices.min(by: { rank($0) < rank($1) }) else { return nil }
        members[index].rights.standIn()
        return members[index]
    }

    private func rank(_ index: Int) -> (Int, Int, Int, Int) {
        let member = members[index]
        return (member.canHost ? 0 : 1, member.role.rank, member.isDropped ? 1 : 0, index)
    }

    // MARK: Changes

    func isLastHost(_ client: ConnectionID) -> Bool {
        self[client]?.role == .host
            && !members.contains { $0.role == .host && $0.canHost && $0.client != client }
    }

    mutating func giveRole(_ role: RoomRole, to client: ConnectionID, by giver: RoomRights) {
        if let index = index(client) { members[index].rights.give(role, by: giver) }
    }

    /// Resets everyone to their lasting role. Called when an owner enters.
    ///
    /// - Returns: the people whose role has changed.
    mutating func endStandIns() -> [Member] {
        var changed: [Member] = []
        for index in members.indices where members[index].rights.isTemporary {
            members[index].rights.endStandIn()
            changed.append(members[index])
        }
        return changed
    }

    /// - Returns: false if this changes nothing, or if the client is not in the room.
    mutating func setDropped(_ isDropped: Bool, _ client: ConnectionID) -> Bool {
        guard let index = index(client), members[index].isDropped != isDropped else { return false }
        members[index].person.state = isDropped ? .reconnecting : .connected
        return true
    }

    /// - Returns: false if this changes nothing, or if the client is not in the room.
    mutating func setHand(_ raised: Bool, _ client: ConnectionID, now: Timestamp) -> Bool {
        guard let index = index(client), (members[index].person.handAt != nil) != raised else { return false }
        members[index].person.handAt = raised ? now : nil
        return true
    }
}
