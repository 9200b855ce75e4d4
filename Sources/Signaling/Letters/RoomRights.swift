import Wire

extension RoomRole {
    /// The role in the room's session. A cohost is only a publisher there, and moderates through the room, which does
    /// not let cohosts remove hosts.
    var sessionRole: Role { self == .host ? .moderator : .publisher }
    /// Whether this role may admit, mute and remove others.
    var moderates: Bool { self != .guest }
    /// The position when people are sorted by role: hosts first, then cohosts, then guests.
    var rank: Int {
        switch self {
        case .host: 0
        case .cohost: 1
        case .guest: 2
        }
    }
}

/// The rights of a person in a room. `docs/threat-model.md`, "Who may do what in a room", has the same rules as a
/// table.
///
/// An *owner* is the room's creator, or a person with a token for `host`. Owners are hosts, and so are the people whom
/// they make host. If none of them is present, someone else is host in their place: a *stand-in*. Actions by a stand-in
/// affect only the people who are present, and nothing that lasts.
///
/// Invariant: a person whose lasting role is host is host.
public struct RoomRights: Hashable, Sendable {
    /// The role that everyone sees.
    private(set) var role: RoomRole
    /// The role given by a token, an owner, or a host chosen by an owner. It is the role that remains when an owner
    /// enters.
    private(set) var lasting: RoomRole
    /// Whether the person entered with an application's token.
    let hasToken: Bool

    /// - Parameter role: the role that everyone sees, if it is not the lasting one.
    init(_ lasting: RoomRole, role: RoomRole? = nil, hasToken: Bool) {
        (self.role, self.lasting, self.hasToken) = (role ?? lasting, lasting, hasToken)
    }

    /// Whether the person acts for the owners. If so, the effects of the person's actions do not end when the room is
    /// empty.
    var actsForOwners: Bool { lasting.moderates }
    /// Whether the role ends when an owner enters.
    var isTemporary: Bool { role != lasting }

    // MARK: Changes

    /// Makes the person host in place of an owner, without changing the lasting role.
    mutating func standIn() { role = .host }

    /// Restores the lasting role. Called when an owner enters.
    mutating func endStandIn() { role = lasting }

    /// Changes the person's role.
    ///
    /// - Parameter giver: the rights of the host who gives the role. A role given by a stand-in ends when an owner
    ///   enters.
    mutating func give(_ role: RoomRole, by giver: RoomRights) {
        self.role = role
        if giver.lasting == .host { lasting = role }
    }
}

/// Decides which actions a person's rights in a room permit.
extension RoomRights {
    /// An action that needs a right.
    enum Action: Equatable, Sendable {
        /// Admits or refuses people in the lobby, mutes people, or stops their screen sharing.
        case moderate
        /// Changes these options.
        case change(RoomChanges, from: RoomOptions)
        /// Removes or bans a person with these rights.
        case remove(RoomRights)
        /// Changes the role of a person with these rights.
        case setRole(RoomRights, of: Subject)
        /// Removes a file. `isOwn` is true if this person sent it, and `isOwners` if its sender acts for the owners.
        case removeFile(isOwn: Bool, isOwners: Bool)
    }

    /// The person whose role is changed, in relation to the person who sends the request.
    enum Subject: Equatable, Sendable {
        case themself, other
        /// Another of the creator's own devices. The creator sends the request, which would take the host role from
        /// that device.
        case ownDevice
        /// The last host, who would lose the role.
        case lastHost
    }

    /// Throws if a person with these rights may not perform the action.
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

    /// Whether a person with these rights may share a screen in a room with this option.
    func mayShareScreens(_ share: RoomSharing) -> Bool { share != .hosts || role.moderates }

    /// Returns whether the changes affect what only the owners decide: capacity, persistence and password. Those apply
    /// even while the owners are away. Locks, lobbies, chat and screen sharing concern only the people who are
    /// present.
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
        "You created this room, so you are a host on all your devices. To give it up, change your role on the device "
            + "you are using.")
    fileprivate static let guestsOnly = notPermitted("Cohosts may remove only guests. Ask a host.")
    fileprivate static let senderOrHostOnly = notPermitted(
        "Only hosts, cohosts and the sender of a file may remove it. Ask one of them.")
    fileprivate static let ownersChoice = notPermitted(
        "While the owner is away, only hosts and cohosts chosen by the owner can change the room's capacity, password "
            + "or persistence.")
    fileprivate static let ownersPeople = notPermitted(
        "This person's role was given by a token or by the room's owner. "
            + "Only the owner, and hosts chosen by the owner, may remove them.")
    fileprivate static let ownersRoles = notPermitted(
        "This person's role was given by a token or by the room's owner. "
            + "Only the owner, and hosts chosen by the owner, may change it.")
    fileprivate static let ownersFile = notPermitted(
        "This file was sent by the room's owner, or by a host or cohost chosen by the owner. Only they may remove it.")
}
