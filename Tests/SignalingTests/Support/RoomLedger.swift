import Signaling
import Wire

/// The sentences of `docs/threat-model.md`, "Who may do what in a room". The random model of rooms has a judge for each.
enum RoomSentence: String, CaseIterable {
    case hasHost = "While people are in a room, one of them is host."
    case ownersEndStandIns =
        "While an owner or a chosen host is there, everyone has the role that a token or an owner gave them."
    case ownersAreHosts = "An owner who joins is host at once."
    case nothingStopsOwners =
        "No lock, lobby, password or capacity, and no ban or removal by a stand-in, stops an owner who is not in the room."
    case standInsKeepTheRoom =
        "A stand-in does not change the capacity, the password and whether the room is persistent."
    case standInsKeepRoles =
        "A stand-in does not change the role of a person who has a token or whom an owner chose."
    case standInsKeepPeople = "A stand-in does not remove or ban a person whom an owner chose."
    case standInsKeepFiles = "A stand-in does not remove a file of an owner or of a person whom an owner chose."
    case standInsKeepTheRoomWorking =
        "A stand-in may admit, deny and mute people, and change lock, lobby, chat and sharing."
    case storageHasOwnersDecisions = "Only decisions of owners and the people whom they chose are stored."
    case emptyRoomsAreTheOwners =
        "An empty room has the options that these people set, and no bans by stand-ins."
    case persistentRoomsStay = "A persistent room ends only if one of them ends it, or because of its age."
    case creatorsStay =
        "A creator loses the room only to a chosen host or to another owner, or by giving it up."
    case guestsModerateNothing = "A guest moderates nothing."
}

/// What an observer knows of the rights in a room, from what owners and stand-ins did and from nothing that the room decided.
struct RoomLedger {
    struct Person {
        /// Nil for phones, and for people who have not heard yet that they are in.
        var identity: IdentityID?
        var token: Token?
        /// The role that a token or an owner gave them.
        var lasting = RoomRole.guest

        var isChosen: Bool { lasting != .guest }
    }

    struct Token: Hashable {
        var text: String
        var role: RoomRole
    }

    var creator: IdentityID?
    var people: [ConnectionID: Person] = [:]
    /// The options as the owners left them.
    var options: RoomOptions
    /// The bans and the removed tokens of owners and of people whom they chose, and those of stand-ins.
    var bans: Set<IdentityID> = []
    var revoked: Set<Token> = []
    var temporaryBans: Set<IdentityID> = []
    var temporarilyRevoked: Set<Token> = []
    /// The tokens that an application has made.
    var tokens: [Token] = []
    /// Who sent each file, and whether an owner or a person whom they chose did.
    var files: [RoomFileID: (sender: ConnectionID, isOwners: Bool)] = [:]

    var hasHostTokens: Bool { tokens.contains { $0.role == .host } }
    /// Whether a person who acts as an owner is there. Phones cannot.
    var hasOwner: Bool { people.contains { $0.value.lasting == .host && !$0.key.isPhone } }

    func isOwner(_ identity: IdentityID, _ token: Token?) -> Bool { identity == creator || token?.role == .host }

    /// Whether this person must not come in, or be in.
    func isKeptOut(_ identity: IdentityID, _ token: Token?, isIn: Bool = false) -> Bool {
        if !isIn, let token, revoked.contains(token) { return true }
        guard identity != creator else { return false }
        if bans.contains(identity) { return true }
        guard token?.role ?? .guest == .guest else { return false }
        return temporaryBans.contains(identity) || !isIn && token.map(temporarilyRevoked.contains) ?? false
    }

    /// Everyone left: what stand-ins did is over.
    mutating func emptied() { (temporaryBans, temporarilyRevoked) = ([], []) }

    mutating func change(_ changes: RoomChanges) {
        options.capacity = changes.capacity ?? options.capacity
        options.locked = changes.locked ?? options.locked
        options.lobby = changes.lobby ?? options.lobby
        options.chat = changes.chat ?? options.chat
        options.share = changes.share ?? options.share
        options.persistent = changes.persistent ?? options.persistent
        options.password = changes.password.map { !$0.isEmpty } ?? options.password
    }

    /// - Parameter isBan: whether the person is banned, too.
    mutating func removed(_ target: Person, by actor: Person, isBan: Bool) {
        if let token = target.token {
            if actor.isChosen { revoked.insert(token) } else { temporarilyRevoked.insert(token) }
        }
        guard let identity = target.identity else { return }
        if isBan { if actor.isChosen { bans.insert(identity) } else { temporaryBans.insert(identity) } }
        if actor.lasting == .host, identity == creator, identity != actor.identity { creator = nil }
    }

    mutating func roleGiven(_ role: RoomRole, to client: ConnectionID, by actor: Person) {
        guard actor.lasting == .host, let target = people[client] else { return }
        people[client]?.lasting = role
        if role != .host, target.identity != nil, target.identity == creator { creator = nil }
    }
}
