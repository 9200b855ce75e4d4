// The JSON objects of the HTTP interface for rooms (`docs/rest.md`).

/// A room in the list of rooms.
public struct RoomSummary: Payload, Hashable {
    /// The room's name, as its creator wrote it.
    public var name = RoomName.unset
    /// The room's ID. A later room with the same name has a different ID.
    public var id = RoomID(high: 0, low: 0)
    /// The options, as people in the room see them.
    public var options = RoomOptions()
    /// When the room was created.
    public var createdAt = Timestamp(milliseconds: 0)
    /// The number of people in the room.
    public var peopleCount = 0
    /// The number of people waiting until a host admits them.
    public var waitingCount = 0
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.room("name", &name)
        try coder.id("roomId", &id)
        try coder.nested("options", &options)
        try coder.timestamp("createdAt", &createdAt)
        try coder.integer("peopleCount", &peopleCount, in: 0...1_000_000)
        try coder.integer("waitingCount", &waitingCount, in: 0...1_000_000)
    }
}

/// One room, with the people in it.
public struct RoomDescription: Payload, Hashable {
    /// The properties that the list of rooms also contains. In JSON, they are members of the description itself.
    public var summary = RoomSummary()
    /// The id of the session that the people of the room are in.
    public var session = SessionID.unset
    /// The people, in the order of joining.
    public var people: [RoomPerson] = []
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try summary.fields(&coder)
        try coder.session(&session)
        try coder.list("people", &people)
    }
}

/// A page of the list of rooms, oldest first.
public struct RoomList: Payload, Hashable {
    /// The rooms on this page.
    public var rooms: [RoomSummary] = []
    /// The value of `after` with which to request the next page; nil on the last page.
    public var next: String?
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.list("rooms", &rooms)
        try coder.string("next", &next, max: Limits.name)
    }
}

/// The request to create a room.
public struct RoomCreationRequest: Payload, Hashable {
    /// The room's name; nil for a random one.
    public var name: RoomName?
    /// The options; nil for the defaults.
    public var options: RoomChanges?
    public init() {}
    public init(name: RoomName?, options: RoomChanges?) { (self.name, self.options) = (name, options) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.room("name", &name)
        try coder.nested("options", &options)
    }
}

/// New values for options of a room. Other options do not change.
public struct RoomChangeRequest: Payload, Hashable {
    /// The options to change.
    public var options = RoomChanges()
    public init() {}
    public init(options: RoomChanges) { self.options = options }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.nested("options", &options) }
}

/// The request for a token that lets its holder join a room.
public struct RoomTokenRequest: Payload, Hashable {
    /// The holder's role in the room.
    public var role = RoomRole.guest
    /// The holder's name; empty if the holder chooses it.
    public var displayName = ""
    /// How long the token can be used to join, in seconds; nil for a day.
    public var lifetime: Int?
    public init() {}
    public init(role: RoomRole, displayName: String, lifetime: Int? = nil) {
        (self.role, self.displayName, self.lifetime) = (role, displayName, lifetime)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("role", &role)
        var name: String? = displayName
        try coder.string("displayName", &name, max: Limits.name)
        displayName = name ?? ""
        try coder.integer("lifetime", &lifetime, in: 1...Limits.roomTokenLifetime)
    }
}

/// A token that lets its holder join a room.
public struct RoomToken: Payload, Hashable {
    /// The token, for `room.join`.
    public var token = ""
    /// When the token can no longer be used to join.
    public var expiresAt = Timestamp(milliseconds: 0)
    /// The path of the room's page, with the token in the fragment, which browsers do not send to servers.
    public var path = ""
    public init() {}
    public init(token: String, expiresAt: Timestamp, path: String) {
        (self.token, self.expiresAt, self.path) = (token, expiresAt, path)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("token", &token, max: Limits.token)
        try coder.timestamp("expiresAt", &expiresAt)
        try coder.string("path", &path, max: 2 * Limits.token)
    }
}

extension RoomChanges {
    /// The names of all options in JSON.
    public static let names: Set<String> = [
        "media", "capacity", "locked", "lobby", "password", "chat", "share", "persistent",
    ]
}
