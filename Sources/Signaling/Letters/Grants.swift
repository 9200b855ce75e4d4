import Wire

/// The permissions of a verified session token.
public struct SessionGrant: Equatable, Sendable {
    public var session: SessionID
    public var mediaMode: MediaMode
    /// True if media must never be routed, even if clients cannot connect in any other way.
    public var isRelayedOnly = false
    public var role: Role
    /// Connection data, which the creator of the token chose and everyone in the session can see.
    public var data: String
    /// The layout classes that the connection's streams have at first.
    public var layoutClasses: [String] = []
    /// The match or call for which the token was created; nil if there is none. The token becomes invalid when that
    /// match or call ends.
    public var match: MatchID?
    /// Identifies the only person who may use this token of a match or call (see `Project.holder(_:of:)`); nil if anyone may.
    public var holder: String?
    /// Identifies the token, so that it can be rejected after its holder was removed from the session.
    public var fingerprint: [UInt8] = []
    public var expiresAt = Timestamp(milliseconds: 0)
}

/// The permissions of a verified room token.
public struct RoomGrant: Equatable, Sendable {
    public var room: RoomName
    /// The room for which the token was created. A later room with the same name has another ID.
    public var id: RoomID
    public var role: RoomRole
    /// The name to show; empty if the holder may choose it.
    public var displayName: String
    /// Identifies the token, so that it can be rejected after its holder was removed from the room.
    public var fingerprint: [UInt8]
}

/// A verified identity, from a secret or a user token.
public struct Identity: Equatable, Sendable {
    public var id: IdentityID
    /// The name in the user token, if any.
    public var name: String?

    public init(id: IdentityID, name: String? = nil) {
        self.id = id
        self.name = name
    }
}
