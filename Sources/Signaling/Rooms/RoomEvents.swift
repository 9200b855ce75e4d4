import Wire

/// What clients, operators and the register of rooms tell a room.
public enum RoomEvent: Equatable, Sendable {
    /// Creates the room. The register has checked that it may exist. The creator is nil for a room of the operators. `formerID`
    /// is that of a room that has ended, if its people open it again.
    indirect case open(RoomSettings, creator: IdentityID?, formerID: RoomID? = nil)
    /// Brings a persistent room back after a restart.
    indirect case restore(StoredRoom)
    /// A request of an operator or application.
    indirect case operate(RoomRequest)
    /// A client asks to join.
    indirect case join(RoomApplication)
    /// A request of a client that is in the room or waits for it.
    indirect case verb(ConnectionID, re: UInt64, RoomVerb)
    /// The client's connection dropped (true) or was resumed (false).
    case away(ConnectionID, Bool)
    /// The client connection ended.
    case gone(ConnectionID)
    /// The client is no longer in the room's session: this moderator removed it, or nil if it lost its place there.
    case leftSession(ConnectionID, by: ConnectionID?)
    /// An operator ends the room.
    case close
    /// A change of this room could not be stored. This is the room as storage has it; nil if it has none.
    indirect case notStored(StoredRoom?)
}

/// What clients, operators and rooms tell the register of all rooms.
public enum RoomRegisterEvent: Equatable, Sendable {
    /// A client asks to join a room, which may not exist yet.
    indirect case join(RoomApplication)
    /// A request of an operator or application. All but `list`, which the hub answers.
    indirect case operate(RoomRequest)
    /// A persistent room exists since before a restart.
    indirect case restore(StoredRoom)
    /// A client of this address tried a wrong password.
    case wrongPassword(address: String)
    /// A client that is in a room asks to make it persistent. The room decides, if there may be one more.
    indirect case keep(ConnectionID, re: UInt64, RoomName, RoomVerb.Change)
    /// The room became persistent (true), or no longer is.
    case persistence(RoomName, Bool)
    /// The room ended, so its name is free.
    case ended(RoomName)
}

/// A client that wants to be in a room.
public struct RoomApplicant: Equatable, Sendable {
    public var client: ConnectionID
    public var identity: IdentityID
    public var address: String
    /// The name to show.
    public var name: String
    /// What the client's token for this room allows; nil if it has none.
    public var grant: RoomGrant?
    /// Whether the client's connection dropped while it waits.
    public var isAway = false
    /// Whether this is a client of PerchRTC's protocol (`Room+Perch`).
    public var isPerch = false
}

/// A request to join a room.
public struct RoomApplication: Equatable, Sendable {
    public var applicant: RoomApplicant
    public var re: UInt64
    public var join: RoomVerb.Join

    var request: Request { Request(applicant.client, re) }
}

/// The room that a client is in or waits for, as the client's state machine knows it.
public struct RoomSeat: Equatable, Sendable {
    public var name: RoomName
    /// The room's session, and what the client's token for it is bound to; nil while the client waits.
    public var place: Place?

    /// A place in a room's session.
    public struct Place: Equatable, Sendable {
        public var session: SessionID
        public var binding: MatchID
    }
}

extension RoomRole {
    /// The role in the room's session. A cohost moderates only through the room, which protects hosts.
    var sessionRole: Role { self == .host ? .moderator : .publisher }
    /// Whether this role may admit, mute and remove others.
    var moderates: Bool { self != .guest }
    /// Hosts before cohosts before guests.
    var rank: Int {
        switch self {
        case .host: 0
        case .cohost: 1
        case .guest: 2
        }
    }
}
