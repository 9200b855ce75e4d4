import Wire

/// A persistent room, as stored. Each change stores the whole room, so that the stored state is never a mix of two
/// states.
public struct StoredRoom: Hashable, Sendable {
    public var id: RoomID
    /// The ID of the room that ended before people opened it again as this one; nil if there is none. Some people may
    /// still return with that ID.
    public var formerID: RoomID?
    public var name: RoomName
    public var options: RoomOptions
    public var password: RoomPassword?
    /// The person who can always enter, and is then host; nil if there is none.
    public var creator: IdentityID?
    /// Whether an application created a token for a host.
    public var hasHostTokens: Bool
    /// The banned people, oldest ban first.
    public var bans: [IdentityID]
    /// The fingerprints of tokens whose holders were removed, oldest removal first.
    public var revokedTokens: [[UInt8]]
    public var createdAt: Timestamp
    /// When the room was last occupied, with a precision of one day.
    public var usedAt: Timestamp

    public init(
        id: RoomID, formerID: RoomID? = nil, name: RoomName, options: RoomOptions, password: RoomPassword? = nil,
        creator: IdentityID? = nil, hasHostTokens: Bool = false, bans: [IdentityID] = [],
        revokedTokens: [[UInt8]] = [], createdAt: Timestamp, usedAt: Timestamp
    ) {
        (self.id, self.formerID, self.name) = (id, formerID, name)
        (self.options, self.password) = (options, password)
        (self.creator, self.hasHostTokens) = (creator, hasHostTokens)
        (self.bans, self.revokedTokens) = (bans, revokedTokens)
        (self.createdAt, self.usedAt) = (createdAt, usedAt)
    }
}

/// A hash of a room's password. Comparing takes the same time for every password.
///
/// The hash is keyed with the server key, which is not in the database, so a copy of the database is not enough to try
/// passwords. A slow hash would block the event loop for everyone on each join.
public struct RoomPassword: Hashable, Sendable {
    public let salt: [UInt8]
    public let digest: [UInt8]

    public init(salt: [UInt8], digest: [UInt8]) { (self.salt, self.digest) = (salt, digest) }
}
