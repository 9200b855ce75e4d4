/// A server's message about a room (`protocol/rooms.md`).
public enum RoomNotice: Equatable, Sendable, MessageSet {
    /// The client is in the room. Answers `join`, or follows ``waiting(_:)`` when a host admits the client.
    case joined(Joined)
    /// The client waits until a host admits it. Answers `join`.
    case waiting(Waiting)
    /// The client is no longer waiting, and was not admitted.
    case refused(Refused)
    /// Notifies hosts and cohosts that a person is waiting, or no longer is.
    case knock(Knock)
    /// The options of the room changed.
    case changed(Changed)
    /// A person joined, left, or changed. Also sent to that person, unless they joined or left.
    case person(RoomPerson)
    /// A person wrote in the chat. Also sent to that person.
    case said(RoomLine)
    /// A person reacted. Also sent to that person.
    case reacted(Reacted)
    /// The client may upload a file. Answers `file`.
    case upload(Upload)
    /// A file was deleted, and its message was removed from the chat.
    case fileRemoved(FileRemoved)
    /// The client is no longer in the room, although it did not leave.
    case ended(Ended)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .joined(let payload): try visitor.message("room.joined", payload)
        case .waiting(let payload): try visitor.message("room.waiting", payload)
        case .refused(let payload): try visitor.message("room.refused", payload)
        case .knock(let payload): try visitor.message("room.knock", payload)
        case .changed(let payload): try visitor.message("room.changed", payload)
        case .person(let payload): try visitor.message("room.person", payload)
        case .said(let payload): try visitor.message("room.said", payload)
        case .reacted(let payload): try visitor.message("room.reacted", payload)
        case .upload(let payload): try visitor.message("room.upload", payload)
        case .fileRemoved(let payload): try visitor.message("room.fileRemoved", payload)
        case .ended(let payload): try visitor.message("room.ended", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("room.joined", Self.joined),
        .init("room.waiting", Self.waiting),
        .init("room.refused", Self.refused),
        .init("room.knock", Self.knock),
        .init("room.changed", Self.changed),
        .init("room.person", Self.person),
        .init("room.said", Self.said),
        .init("room.reacted", Self.reacted),
        .init("room.upload", Self.upload),
        .init("room.fileRemoved", Self.fileRemoved),
        .init("room.ended", Self.ended),
    ]
}

/// The reason why a client is no longer in a room.
public enum RoomEndReason: String, Hashable, Sendable, CaseIterable {
    /// A host removed this person.
    case removed
    /// A host banned this person.
    case banned
    /// An operator ended the room.
    case closed
    /// This connection had dropped, and the same person joined the full room again on another one.
    case replaced
}

extension RoomNotice {
    /// A room, and access to its session.
    public struct Joined: PossibleAnswerPayload {
        /// The `seq` of the request that this message answers; nil after a host admitted the client.
        public var re: UInt64?
        /// The room's name, as its creator wrote it.
        public var name = RoomName.unset
        /// The room's ID, for joining the same room again. Nil if the server does not send one.
        public var room: RoomID?
        /// The room's session, and a token to join it. Nobody else can use the token, and it becomes invalid when the client is
        /// no longer in the room. In JSON, these are the members `sessionId` and `token` of the message itself.
        public var admission = Admission()
        /// The client's role.
        public var role = RoomRole.guest
        /// The room's options.
        public var options = RoomOptions()
        /// Everyone in the room, including the client, in the order of joining.
        public var people: [RoomPerson] = []
        /// The latest messages of the chat, oldest first.
        public var chat: [RoomLine] = []
        /// The data for sending and downloading files; nil if the server does not accept files.
        public var files: RoomFileAccess?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.room("name", &name)
            try coder.id("roomId", &room)
            try admission.fields(&coder)
            try coder.choice("role", &role)
            try coder.nested("options", &options)
            try coder.list("people", &people)
            try coder.list("chat", &chat)
            try coder.nested("files", &files)
        }
    }

    /// The room that the client waits for.
    public struct Waiting: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The room's name.
        public var name = RoomName.unset
        public init() {}
        public init(re: UInt64, name: RoomName) { (self.re, self.name) = (re, name) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.room("name", &name)
        }
    }

    /// The reason why the client was not admitted. In JSON, the properties of the error are members of the message
    /// itself.
    public struct Refused: Payload {
        /// The room's name.
        public var name = RoomName.unset
        /// `room_refused` if a host refused, `room_banned`, `room_not_found` if the room ended, or `already_joined` if
        /// the connection dropped and the person is now waiting on another one.
        public var code: WireError.Code = ""
        /// The reason, in one sentence that can be shown to the user.
        public var message = ""
        public init() {}
        public init(name: RoomName, _ error: WireError) {
            (self.name, code, message) = (name, error.code, error.message)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.room("name", &name)
            try coder.string("code", &code.rawValue, max: Limits.name)
            try coder.string("message", &message, max: 4096)
        }
    }

    /// A person who is waiting to be admitted, or no longer is.
    public struct Knock: Payload {
        /// The id of the person's connection.
        public var connection = ConnectionID(high: 0, low: 0)
        /// The name that others see.
        public var displayName = ""
        /// True while the person is waiting; false after they were admitted, refused, or left.
        public var waiting = true
        public init() {}
        public init(connection: ConnectionID, displayName: String, waiting: Bool) {
            (self.connection, self.displayName, self.waiting) = (connection, displayName, waiting)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("connectionId", &connection)
            try coder.string("displayName", &displayName, max: Limits.name)
            try coder.bool("waiting", &waiting)
        }
    }

    /// The room's options.
    public struct Changed: Payload {
        /// All current options.
        public var options = RoomOptions()
        public init() {}
        public init(options: RoomOptions) { self.options = options }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.nested("options", &options)
        }
    }

    /// A reaction of a person to what happens in the room.
    public struct Reacted: Payload {
        /// The id of the connection of the person who reacted.
        public var connection = ConnectionID(high: 0, low: 0)
        /// The reaction, 1 to 40 bytes.
        public var reaction = ""
        public init() {}
        public init(connection: ConnectionID, reaction: String) {
            (self.connection, self.reaction) = (connection, reaction)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("connectionId", &connection)
            try coder.string("reaction", &reaction, max: Limits.reaction)
        }
    }

    /// The room that the client is no longer in.
    public struct Ended: Payload {
        /// The room's name.
        public var name = RoomName.unset
        /// The reason why the client is no longer in the room.
        public var reason = RoomEndReason.closed
        public init() {}
        public init(name: RoomName, reason: RoomEndReason) { (self.name, self.reason) = (name, reason) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.room("name", &name)
            try coder.choice("reason", &reason)
        }
    }
}
