import Wire

/// What a person may do in a room. The table in `docs/threat-model.md`, "Who may do what in a room", says the same.
///
/// An *owner* is the room's creator, or a person with a token for `host`. Owners are hosts, and so are the people whom they made
/// host. If none of them is there, somebody is host in their place: a *stand-in*. What a stand-in does affects the people who
/// are there, and nothing that lasts.
///
/// Invariant: a person whose lasting role is host is host.
public struct RoomRights: Hashable, Sendable {
    /// The role that everyone sees.
    private(set) var role: RoomRole
    /// The role that a token, an owner or a host of an owner gave the person. It is what remains when an owner comes.
    private(set) var lasting: RoomRole
    /// Whether the person came with a token of an application.
    let hasToken: Bool

    init(_ lasting: RoomRole, hasToken: Bool) {
        (role, self.lasting, self.hasToken) = (lasting, lasting, hasToken)
    }

    /// Whether the person acts for the owners: what they do lasts.
    var actsForOwners: Bool { lasting.moderates }
    /// Whether the role ends when an owner comes.
    var isTemporary: Bool { role != lasting }

    // MARK: Changes

    /// Makes the person host because nobody else is.
    mutating func standIn() { role = .host }

    /// An owner has come.
    mutating func endStandIn() { role = lasting }

    /// - Parameter giver: the host who gives the role. What a stand-in gives ends when an owner comes.
    mutating func give(_ role: RoomRole, by giver: RoomRights) {
        self.role = role
        if giver.lasting == .host { lasting = role }
    }

    // MARK: Permission

    enum Action: Equatable, Sendable {
        /// Admits people from the lobby or sends them away, mutes people, or stops their screens.
        case moderate
        /// Changes options from these.
        case change(RoomChanges, from: RoomOptions)
        /// Removes or bans a person with these rights.
        case remove(RoomRights)
        /// Changes the role of a person with these rights.
        case setRole(RoomRights, of: Subject)
        /// Removes a file. `isOwners`: a person who acts for the owners sent it.
        case removeFile(isOwn: Bool, isOwners: Bool)
    }

    enum Subject: Equatable, Sendable {
        case themself, other
        /// Another device of the creator, who asks for it.
        case ownDevice
        /// The last host, who would no longer be host.
        case lastHost
    }

    /// Throws if the person may not do this.
    func permit(_ action: Action) throws(WireError) {
        if case .removeFile(isOwn: true, _) = action { return }
        guard role.moderates else {
            if case .removeFile = action { throw .senderOrHostOnly }
            throw .moderatorOnly
        }
        switch action {
        case .moderate: return
        case .change(let changes, let options):
            guard actsForOwners || !Self.isLasting(changes, options) else { throw .ownersChoice }
        case .remove(let other): try permitRemoval(of: other)
        case .setRole(let other, let subject): try permitRole(of: other, subject)
        case .removeFile(_, let isOwners): guard actsForOwners || !isOwners else { throw .ownersFile }
        }
    }

    /// Whether this changes what the owners decide, even while they are away. A lock, a lobby, the chat and who shares screens
    /// are for the people who are there.
    private static func isLasting(_ changes: RoomChanges, _ options: RoomOptions) -> Bool {
        let isSame =
            changes.capacity ?? options.capacity == options.capacity
            && changes.persistent ?? options.persistent == options.persistent
            && changes.password.map { $0.isEmpty && !options.password } ?? true
        return !isSame
    }

    private func permitRemoval(of other: RoomRights) throws(WireError) {
        guard lasting != .host else { return }
        guard !other.actsForOwners else { throw role == .host ? .ownersPeople : .guestsOnly }
        guard role == .host || actsForOwners || other.role == .guest else { throw .guestsOnly }
    }

    private func permitRole(of other: RoomRights, _ subject: Subject) throws(WireError) {
        guard role == .host else { throw .hostOnly }
        guard subject != .lastHost else { throw .lastHost }
        guard subject != .ownDevice else { throw .ownDevice }
        guard lasting != .host, subject == .other else { return }
        guard !other.hasToken, !other.actsForOwners else { throw .ownersRoles }
    }
}

extension WireError {
    private static func notPermitted(_ message: String) -> WireError { WireError(.notPermitted, message) }

    fileprivate static let moderatorOnly = notPermitted(
        "Only hosts and cohosts of this room may do this. Ask one of them.")
    fileprivate static let hostOnly = notPermitted("Only hosts may change roles. Ask one of them.")
    fileprivate static let lastHost = notPermitted("A room must have a host. Make someone else host first.")
    fileprivate static let ownDevice = notPermitted(
        "A room's creator is host on all their devices. To give up the room, change the role on this device.")
    fileprivate static let guestsOnly = notPermitted("Cohosts may remove only guests. Ask a host.")
    fileprivate static let senderOrHostOnly = notPermitted(
        "Only hosts, cohosts and the sender of a file may remove it. Ask one of them.")
    fileprivate static let ownersChoice = notPermitted(
        "The room's capacity, password and persistence cannot be changed while its owner is away. "
            + "Only the owner, and hosts and cohosts chosen by the owner, may change them.")
    fileprivate static let ownersPeople = notPermitted(
        "This person's role was given by a token or by the room's owner. "
            + "Only the owner, and hosts chosen by the owner, may remove them.")
    fileprivate static let ownersRoles = notPermitted(
        "This person's role was given by a token or by the room's owner. "
            + "Only the owner, and hosts chosen by the owner, may change it.")
    fileprivate static let ownersFile = notPermitted(
        "This file was sent by the room's owner, or by a host or cohost chosen by the owner. Only they may remove it.")
}
