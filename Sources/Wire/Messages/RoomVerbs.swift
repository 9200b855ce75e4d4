/// A client's request about a room (`protocol/rooms.md`). A client connection is in at most one room at a time, so
/// only `join` contains the room's name. All requests except `join` fail with `not_joined` if the client is in no
/// room, and all except `join` and `leave` while the client waits to be admitted.
public enum RoomVerb: Equatable, Sendable, MessageSet {
    /// Joins a room, or creates it. Answered with ``RoomNotice/joined(_:)`` or ``RoomNotice/waiting(_:)``, or with
    /// `already_joined`, `invalid_name`, `room_not_found`, `room_full`, `room_locked`, `room_password`, `room_refused`,
    /// `room_banned`, `room_mesh`, `room_other`, `room_no_password`, `media_unavailable`, `not_permitted` or `rate_limited`, or
    /// with a `token_*` error for a bad token.
    case join(Join)
    /// Leaves the room, or stops waiting. Answered with `ok`.
    case leave
    /// Admits a waiting person. Hosts and cohosts only. Answered with `ok`, or with `not_permitted`, `not_found` or
    /// `room_full`.
    case admit(Connection)
    /// Refuses a waiting person. Hosts and cohosts only. Answered with `ok`, or with `not_permitted` or `not_found`.
    case deny(Connection)
    /// Changes options of the room. Hosts and cohosts only. Answered with `ok`, or with `not_permitted`.
    case set(Change)
    /// Mutes one person or everyone else. There is no request to unmute others. Hosts and cohosts only. Answered with
    /// `ok`, or with `not_permitted` or `not_found`.
    case mute(Target)
    /// Stops the screen sharing of one person or everyone else. Hosts and cohosts only. Answered with `ok`, or with
    /// `not_permitted` or `not_found`.
    case stopShare(Target)
    /// Removes a person; their token stops working. Hosts and cohosts only; cohosts can remove only guests. Answered
    /// with `ok`, or with `not_permitted` or `not_found`.
    case remove(Remove)
    /// Changes a person's role. Hosts only. Answered with `ok`, or with `not_permitted` or `not_found`.
    case role(Role)
    /// Writes to everyone in the room. Answered with `ok`, or with `not_permitted`, `message_too_large` or
    /// `rate_limited`.
    case say(Say)
    /// Raises or lowers the sender's hand. Answered with `ok`, or with `rate_limited`.
    case hand(Hand)
    /// Shows a reaction to everyone in the room. Answered with `ok`, or with `rate_limited`.
    case react(React)
    /// Requests to send a file to everyone in the room. Answered with ``RoomNotice/upload(_:)``, or with
    /// `not_permitted`, `invalid_name`, `message_too_large`, `storage_full`, `storage_quota` or `rate_limited`.
    case file(File)
    /// Deletes a file. Only its sender, hosts and cohosts may do this. Answered with `ok`, or with `not_permitted` or
    /// `not_found`.
    case removeFile(RemoveFile)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .join(let payload): try visitor.message("room.join", payload)
        case .leave: try visitor.message("room.leave", NoMembers())
        case .admit(let payload): try visitor.message("room.admit", payload)
        case .deny(let payload): try visitor.message("room.deny", payload)
        case .set(let payload): try visitor.message("room.set", payload)
        case .mute(let payload): try visitor.message("room.mute", payload)
        case .stopShare(let payload): try visitor.message("room.stopShare", payload)
        case .remove(let payload): try visitor.message("room.remove", payload)
        case .role(let payload): try visitor.message("room.role", payload)
        case .say(let payload): try visitor.message("room.say", payload)
        case .hand(let payload): try visitor.message("room.hand", payload)
        case .react(let payload): try visitor.message("room.react", payload)
        case .file(let payload): try visitor.message("room.file", payload)
        case .removeFile(let payload): try visitor.message("room.removeFile", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("room.join", Self.join),
        .init("room.leave", .leave),
        .init("room.admit", Self.admit),
        .init("room.deny", Self.deny),
        .init("room.set", Self.set),
        .init("room.mute", Self.mute),
        .init("room.stopShare", Self.stopShare),
        .init("room.remove", Self.remove),
        .init("room.role", Self.role),
        .init("room.say", Self.say),
        .init("room.hand", Self.hand),
        .init("room.react", Self.react),
        .init("room.file", Self.file),
        .init("room.removeFile", Self.removeFile),
    ]
}

extension RoomVerb {
    /// The room to join.
    public struct Join: Payload {
        /// The room's name; nil for a new room with a random name.
        public var name: RoomName?
        /// The id of the room that this client was in before and wants to rejoin; nil on the first join. If another
        /// room now has the name, the join fails with `room_other`.
        public var room: RoomID?
        /// The display name, at most 40 characters; empty for a generated one. A name from a user token takes
        /// precedence.
        public var displayName = ""
        /// The room's password; nil if the person entered none. If a password is sent and the room has none, it is
        /// probably not the room that the person wants, so the request fails with `room_no_password`.
        public var password: String?
        /// An application's token for this room; nil if there is none. With a token, `name` may be nil.
        public var token: String?
        /// The options for creating the room; nil for the defaults. Ignored if the room exists.
        public var options: RoomChanges?
        /// True to fail with `room_mesh` instead of joining or creating a room whose members see each other's
        /// addresses; nil is the same as false.
        public var routedOnly: Bool?
        public init() {}
        public init(
            name: RoomName?, displayName: String, password: String? = nil, token: String? = nil,
            options: RoomChanges? = nil
        ) {
            (self.name, self.displayName, self.password) = (name, displayName, password)
            (self.token, self.options) = (token, options)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.room("name", &name)
            try coder.id("roomId", &room)
            // Only limit the length here. The name is checked later, because a bad name has its own error code.
            try coder.string("displayName", &displayName, max: Limits.message)
            try coder.string("password", &password, max: Limits.roomPassword)
            try coder.string("token", &token, max: Limits.token)
            try coder.nested("options", &options)
            try coder.bool("routedOnly", &routedOnly)
        }
    }

    /// The waiting person to admit or refuse.
    public struct Connection: Payload {
        /// The id of the person's connection.
        public var connection = ConnectionID(high: 0, low: 0)
        public init() {}
        public init(connection: ConnectionID) { self.connection = connection }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("connectionId", &connection)
        }
    }

    /// Whom a request applies to: one person, or everyone but the sender.
    public struct Target: Payload {
        /// The id of the person's connection; nil if the request applies to everyone but the sender.
        public var connection: ConnectionID?
        public init() {}
        public init(connection: ConnectionID?) { self.connection = connection }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("connectionId", &connection)
        }
    }

    /// Changes to the room's options.
    public struct Change: Payload {
        /// The options to change.
        public var options = RoomChanges()
        public init() {}
        public init(options: RoomChanges) { self.options = options }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.nested("options", &options)
        }
    }

    /// The person to remove.
    public struct Remove: Payload {
        /// The id of the person's connection.
        public var connection = ConnectionID(high: 0, low: 0)
        /// Whether to also ban the person from the room; nil is the same as false. The ban applies as long as the room
        /// exists, or only until the room is empty if the sender is host in place of an absent owner.
        public var ban: Bool?
        public init() {}
        public init(connection: ConnectionID, ban: Bool? = nil) { (self.connection, self.ban) = (connection, ban) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("connectionId", &connection)
            try coder.bool("ban", &ban)
        }
    }

    /// The person whose role changes, and the new role.
    public struct Role: Payload {
        /// The id of the person's connection.
        public var connection = ConnectionID(high: 0, low: 0)
        /// The new role.
        public var role = RoomRole.guest
        public init() {}
        public init(connection: ConnectionID, role: RoomRole) { (self.connection, self.role) = (connection, role) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("connectionId", &connection)
            try coder.choice("role", &role)
        }
    }

    /// A message for the room's chat.
    public struct Say: Payload {
        /// The text, 1 to 4096 bytes.
        public var text = ""
        public init() {}
        public init(text: String) { self.text = text }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("text", &text, max: Limits.roomText)
            if coder.isReading, text.isEmpty { throw WireError(.malformed, "The member \"text\" must not be empty.") }
        }
    }

    /// The new state of the sender's hand.
    public struct Hand: Payload {
        /// True to raise the hand, false to lower it.
        public var raised = true
        public init() {}
        public init(raised: Bool) { self.raised = raised }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.bool("raised", &raised) }
    }

    /// A reaction, such as an emoji.
    public struct React: Payload {
        /// The reaction, 1 to 40 bytes.
        public var reaction = ""
        public init() {}
        public init(reaction: String) { self.reaction = reaction }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("reaction", &reaction, max: Limits.reaction)
            guard coder.isReading else { return }
            let isShown = reaction.unicodeScalars.contains(where: \.isVisibleInNames)
            guard isShown, reaction.unicodeScalars.allSatisfy(\.isAllowedInNames) else {
                throw WireError(.malformed, "The member \"reaction\" must be an emoji or a short word.")
            }
        }
    }
}
