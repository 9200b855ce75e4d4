import Wire

/// Events for a room from clients, operators and the room registry.
public enum RoomEvent: Equatable, Sendable {
    /// Creates the room with this ID. The registry has checked that this is allowed. The creator is nil if an operator
    /// creates the room, or a client that cannot moderate. If people of a room that has ended open it again,
    /// `formerID` is the ID of that room; otherwise nil.
    indirect case open(RoomSettings, RoomID, creator: IdentityID?, formerID: RoomID? = nil)
    /// Restores a persistent room after a restart.
    indirect case restore(StoredRoom)
    /// A request from an operator or application. Never a request for a list of rooms, which arrives as `list`.
    indirect case operate(OperatorRequest)
    /// Adds the room to a list.
    indirect case list(RoomTour)
    /// A client requests to join.
    indirect case join(RoomApplication)
    /// A request from a client that is in the room or waits for it.
    indirect case verb(ConnectionID, re: UInt64, RoomVerb)
    /// The client's connection dropped (true) or was resumed (false).
    case away(ConnectionID, Bool)
    /// The client connection ended.
    case gone(ConnectionID)
    /// The client is no longer in the room's session. `by` is the moderator who removed it; nil if it lost its place
    /// in the session for another reason.
    case leftSession(ConnectionID, by: ConnectionID?)
    /// An operator ends the room.
    case close
    /// A person deleted themselves, with everything stored about them.
    case personDeleted(IdentityID)
    /// A change to this room could not be stored. Contains the stored room; nil if it is not in storage.
    indirect case notStored(StoredRoom?)
    /// Another node of the cluster has this room's place.
    indirect case placeLost(WireError)
}

/// Events for the room registry from clients, operators and rooms.
public enum RoomRegistryEvent: Equatable, Sendable {
    /// A client requests to join a room, which may not exist yet.
    indirect case join(RoomApplication)
    /// A request from an operator or application.
    indirect case operate(OperatorRequest)
    /// A persistent room from before the restart.
    indirect case restore(StoredRoom)
    /// A client of this address tried a wrong password.
    case wrongPassword(address: String)
    /// A client in a room requests to make it persistent. If the limit permits another persistent room, the room
    /// decides.
    indirect case keep(ConnectionID, re: UInt64, RoomName, RoomVerb.Change)
    /// The room became persistent (true) or is no longer persistent (false).
    case persistence(RoomName, Bool)
    /// The room ended, so its name is free.
    case ended(RoomName)
    /// A person deleted themselves. Rooms that they created continue without a creator.
    case personDeleted(IdentityID)
    /// Changes to these rooms could not be stored. Contains all stored rooms.
    indirect case notStored(Set<RoomID>, [StoredRoom])
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
    /// Whether the connection of the waiting client has dropped.
    public var isAway = false
    public var abilities = RoomAbilities.all
}

/// What a client can do in a room.
public struct RoomAbilities: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Exchanges media through the server. Without this, the client can enter only mesh rooms.
    static let routing = RoomAbilities(rawValue: 1)
    /// Asks its user for a password, and whether to wait for a host or to join again. Other clients join again by themselves.
    static let prompts = RoomAbilities(rawValue: 2)
    /// Moderates. A person whose client cannot do this is host only while nobody else's client can, and does not
    /// become the creator of a room.
    static let hosting = RoomAbilities(rawValue: 4)
    /// Sends and downloads files.
    static let files = RoomAbilities(rawValue: 8)
    /// The abilities of Confab's own clients.
    public static let all: RoomAbilities = [.routing, .prompts, .hosting, .files]
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
