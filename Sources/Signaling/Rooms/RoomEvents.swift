import Wire

/// Events for a room from clients, operators and the room registry.
public enum RoomEvent: Equatable, Sendable {
    /// Creates the room. The registry has checked that this is allowed. The creator is nil for a room of the operators.
    /// `formerID` is the ID of the ended room if its members open it again; otherwise nil.
    indirect case open(RoomSettings, creator: IdentityID?, formerID: RoomID? = nil)
    /// Restores a persistent room after a restart.
    indirect case restore(StoredRoom)
    /// A request from an operator or application.
    indirect case operate(OperatorRequest)
    /// A client requests to join.
    indirect case join(RoomApplication)
    /// A request from a client that is in the room or waits for it.
    indirect case verb(ConnectionID, re: UInt64, RoomVerb)
    /// The client's connection dropped (true) or was resumed (false).
    case away(ConnectionID, Bool)
    /// The client connection ended.
    case gone(ConnectionID)
    /// The client is no longer in the room's session. `by`: the moderator who removed it; nil if it lost its place
    /// there.
    case leftSession(ConnectionID, by: ConnectionID?)
    /// An operator ends the room.
    case close
    /// A change of this room could not be stored. Contains the stored room; nil if it is not in storage.
    indirect case notStored(StoredRoom?)
}

/// Events for the room registry from clients, operators and rooms.
public enum RoomRegistryEvent: Equatable, Sendable {
    /// A client requests to join a room, which may not exist yet.
    indirect case join(RoomApplication)
    /// A request from an operator or application, except `list`, which the hub answers.
    indirect case operate(OperatorRequest)
    /// A persistent room from before the restart.
    indirect case restore(StoredRoom)
    /// A client of this address tried a wrong password.
    case wrongPassword(address: String)
    /// A client in a room requests to make it persistent. The room decides, if the limit permits another persistent
    /// room.
    indirect case keep(ConnectionID, re: UInt64, RoomName, RoomVerb.Change)
    /// The room became persistent (true) or is no longer persistent (false).
    case persistence(RoomName, Bool)
    /// The room ended, so its name is free.
    case ended(RoomName)
}

/// A client that requests to enter a room.
public struct RoomApplicant: Equatable, Sendable {
    public var client: ConnectionID
    public var identity: IdentityID
    public var address: String
    /// The display name.
    public var name: String
    /// The permissions of the client's token for this room; nil if it has none.
    public var grant: RoomGrant?
    /// Whether the client's connection dropped while it is waiting.
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

/// The room that a client is in or waits for, as stored in the client's state machine.
public struct RoomSeat: Equatable, Sendable {
    public var name: RoomName
    /// The client's place in the room's session; nil while the client waits.
    public var place: Place?

    /// A place in a room's session.
    public struct Place: Equatable, Sendable {
        public var session: SessionID
        public var binding: MatchID
    }
}

extension RoomRole {
    /// The role in the room's session. Cohosts moderate only through the room, which protects hosts.
    var sessionRole: Role { self == .host ? .moderator : .publisher }
    /// Whether this role may admit, mute and remove others.
    var moderates: Bool { self != .guest }
    /// Sorts hosts before cohosts before guests.
    var rank: Int {
        switch self {
        case .host: 0
        case .cohost: 1
        case .guest: 2
        }
    }
}
