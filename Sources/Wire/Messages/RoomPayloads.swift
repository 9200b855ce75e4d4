// The objects that messages about rooms contain (`protocol/rooms.md`).

/// The role of a person in a room.
public enum RoomRole: String, Hashable, Sendable, CaseIterable {
    /// Can do everything, including choosing hosts and cohosts. Is a moderator of the room's session.
    case host
    /// Can do what a host does, except change roles and remove hosts and cohosts.
    case cohost
    /// Can publish, subscribe and write in the chat.
    case guest
}

/// The media mode of a room. It never changes.
public enum RoomMedia: String, Hashable, Sendable, CaseIterable {
    /// Media goes through the server.
    case routed
    /// Media goes from browser to browser, so that the people in the room see each other's addresses.
    case mesh
}

/// Who may share a screen.
public enum RoomSharing: String, Hashable, Sendable, CaseIterable {
    /// Everyone.
    case all
    /// Hosts and cohosts.
    case hosts
}

/// The options of a room, as sent to its people.
public struct RoomOptions: Payload, Hashable {
    /// Whether media goes through the server or directly between the people.
    public var media = RoomMedia.routed
    /// Maximum number of people in the room.
    public var capacity = 0
    /// Whether the room is locked, so that nobody else can join.
    public var locked = false
    /// Whether people wait until a host admits them.
    public var lobby = false
    /// Whether joining requires a password. The password itself is never sent to anyone.
    public var password = false
    /// Whether people can write in the chat.
    public var chat = true
    /// Who may share a screen.
    public var share = RoomSharing.all
    /// Whether the room continues to exist when it is empty.
    public var persistent = false
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("media", &media)
        try coder.integer("capacity", &capacity, in: 0...Limits.routedRoom)
        try coder.bool("locked", &locked)
        try coder.bool("lobby", &lobby)
        try coder.bool("password", &password)
        try coder.bool("chat", &chat)
        try coder.choice("share", &share)
        try coder.bool("persistent", &persistent)
    }
}

/// Options for a new room, or options to change. A nil member keeps the default or the current value.
public struct RoomChanges: Payload, Hashable {
    /// The media mode, which can be set only for a new room.
    public var media: RoomMedia?
    /// Maximum number of people: 1 to 100 in a routed room, 1 to 6 in a mesh room. If more people than this are
    /// already in the room, they stay.
    public var capacity: Int?
    /// Whether the room is locked, so that nobody else can join.
    public var locked: Bool?
    /// Whether people wait until a host admits them. Turning this off admits the people who are waiting, as long as
    /// there are places.
    public var lobby: Bool?
    /// The password for joining, at most 128 bytes; empty for none.
    public var password: String?
    /// Whether people can write in the chat.
    public var chat: Bool?
    /// Who may share a screen.
    public var share: RoomSharing?
    /// Whether the room continues to exist when it is empty.
    public var persistent: Bool?
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("media", &media)
        // The maximum depends on the room. The room refuses a larger number with a separate error.
        try coder.integer("capacity", &capacity, in: 1...Int.max)
        try coder.bool("locked", &locked)
        try coder.bool("lobby", &lobby)
        try coder.string("password", &password, max: Limits.roomPassword)
        try coder.bool("chat", &chat)
        try coder.choice("share", &share)
        try coder.bool("persistent", &persistent)
    }
}

/// Whether a person is in a room.
public enum RoomPresence: String, Hashable, Sendable, CaseIterable {
    /// The person is in the room.
    case connected
    /// The person's connection dropped. The person keeps their place and can return.
    case reconnecting
    /// The person is no longer in the room.
    case left
}

/// A person in a room. Several people may have the same display name, but each has their own connection.
public struct RoomPerson: Payload, Hashable {
    /// The id of the person's connection, in the room and in its session.
    public var connection = ConnectionID(high: 0, low: 0)
    /// The name that others see.
    public var displayName = ""
    /// The person's role.
    public var role = RoomRole.guest
    /// Whether the person is connected, is temporarily disconnected, or has left.
    public var state = RoomPresence.connected
    /// When the person joined.
    public var since = Timestamp(milliseconds: 0)
    /// When the person raised a hand; nil if it is not raised.
    public var handAt: Timestamp?
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("connectionId", &connection)
        try coder.string("displayName", &displayName, max: Limits.name)
        try coder.choice("role", &role)
        try coder.choice("state", &state)
        try coder.timestamp("since", &since)
        try coder.timestamp("handAt", &handAt)
    }
}

/// A message in a room's chat.
public struct RoomLine: Payload, Hashable {
    /// The id of the connection that sent the message. The sender may have left the room since.
    public var connection = ConnectionID(high: 0, low: 0)
    /// The sender's display name at the time of sending.
    public var displayName = ""
    /// The text, 1 to 4096 bytes; the name of the file if there is one.
    public var text = ""
    /// When the server received the message.
    public var at = Timestamp(milliseconds: 0)
    /// The file that the person sent, whose name is in `text`; nil for a text message.
    public var file: RoomFile?
    public init() {}
    public init(
        connection: ConnectionID, displayName: String, text: String, at: Timestamp, file: RoomFile? = nil
    ) {
        (self.connection, self.displayName, self.text, self.at) = (connection, displayName, text, at)
        self.file = file
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("connectionId", &connection)
        try coder.string("displayName", &displayName, max: Limits.name)
        try coder.string("text", &text, max: Limits.roomText)
        try coder.timestamp("at", &at)
        try coder.nested("file", &file)
    }
}
