// Files in the chat of a room (`protocol/rooms.md`).

/// The id of a file in a room's chat.
public struct RoomFileID: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64

    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// The secret of one upload, or the secret with which one member of a room downloads the room's files. It is never
/// logged.
public struct RoomFileKey: Identifier128 {
    /// The first 8 bytes, big-endian.
    public let high: UInt64
    /// The last 8 bytes, big-endian.
    public let low: UInt64

    public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// A file in the chat of a room. Its name is the text of the chat message, ``RoomLine/text``.
public struct RoomFile: Payload, Hashable {
    /// The file's id, with which to download or delete it.
    public var id = RoomFileID(high: 0, low: 0)
    /// The size in bytes.
    public var size = 0
    public init() {}
    public init(id: RoomFileID, size: Int) { (self.id, self.size) = (id, size) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("fileId", &id)
        try coder.integer("size", &size, in: 1...Limits.roomFile)
    }
}

/// The data that a member needs to send and download files.
public struct RoomFileAccess: Payload, Hashable {
    /// The path of the room's files. The path of a file is this path, a slash, and the file's ID.
    public var path = ""
    /// The bearer token for downloads. It stops working when the member is no longer in the room.
    public var key = RoomFileKey(high: 0, low: 0)
    /// The maximum size of a file, in bytes.
    public var maxSize = 0
    public init() {}
    public init(path: String, key: RoomFileKey, maxSize: Int) {
        (self.path, self.key, self.maxSize) = (path, key, maxSize)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("path", &path, max: Limits.message)
        try coder.id("key", &key)
        try coder.integer("maxSize", &maxSize, in: 1...Limits.roomFile)
    }
}

extension RoomVerb {
    /// The name and size of a file that the client wants to send.
    public struct File: Payload {
        /// The file's name, 1 to 200 bytes.
        public var name = ""
        /// The exact size in bytes.
        public var size = 1
        public init() {}
        public init(name: String, size: Int) { (self.name, self.size) = (name, size) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            // Accept any text that fits into a message. It is checked later, because a bad name has its own error
            // code.
            try coder.string("name", &name, max: Limits.message)
            try coder.integer("size", &size, in: 1...Int.max)
        }
    }

    /// A file to delete.
    public struct RemoveFile: Payload {
        /// The file's id.
        public var id = RoomFileID(high: 0, low: 0)
        public init() {}
        public init(id: RoomFileID) { self.id = id }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("fileId", &id) }
    }
}

extension RoomNotice {
    /// Where to upload a file: send it with `PUT` to `path`, with `secret` as the bearer token.
    public struct Upload: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The id that the server assigned to the file.
        public var id = RoomFileID(high: 0, low: 0)
        /// The path to which to send the file with `PUT`.
        public var path = ""
        /// The bearer token for this upload. It works once.
        public var secret = RoomFileKey(high: 0, low: 0)
        public init() {}
        public init(re: UInt64, id: RoomFileID, path: String, secret: RoomFileKey) {
            (self.re, self.id, self.path, self.secret) = (re, id, path, secret)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("fileId", &id)
            try coder.string("path", &path, max: Limits.message)
            try coder.id("secret", &secret)
        }
    }

    /// A file that was deleted.
    public struct FileRemoved: Payload {
        /// The file's id.
        public var id = RoomFileID(high: 0, low: 0)
        public init() {}
        public init(id: RoomFileID) { self.id = id }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("fileId", &id) }
    }
}
