import Wire

/// A persistent room, as stored. Each change stores the whole room, so that the stored state is never a mix of two
/// states.
public struct StoredRoom: Hashable, Sendable {
    public var id: RoomID
    /// The ID of an earlier room with this name, if people of that room opened this one. Some of them still return
    /// with that ID.
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

    init(_ text: String, _ key: ServerKey, using generator: inout some RandomNumberGenerator) {
        salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        digest = Self.digest(of: text, salt, key)
    }

    func matches(_ text: String, _ key: ServerKey) -> Bool {
        constantTimeEquals(digest, Self.digest(of: text, salt, key))
    }

    private static func digest(of text: String, _ salt: [UInt8], _ key: ServerKey) -> [UInt8] {
        key.authenticationCode(Array("confab room password\n".utf8) + salt + Array(text.utf8))
    }
}

/// The people and tokens that a room no longer admits.
struct RoomBans: Equatable, Sendable {
    /// Banned people and revoked tokens, oldest first: at most `Rules.roomBans` of each. Beyond that, the oldest are
    /// dropped.
    struct Entries: Equatable, Sendable {
        fileprivate(set) var people: [IdentityID] = []
        fileprivate(set) var tokens: [[UInt8]] = []

        /// - Returns: false if this changes nothing.
        fileprivate mutating func ban(_ identity: IdentityID, _ rules: Rules) -> Bool {
            guard !people.contains(identity) else { return false }
            people = Array((people + [identity]).suffix(rules.roomBans))
            return true
        }

        fileprivate mutating func revoke(_ token: [UInt8], _ rules: Rules) {
            guard !tokens.contains(token) else { return }
            tokens = Array((tokens + [token]).suffix(rules.roomBans))
        }
    }

    /// Decisions of owners, and of hosts and cohosts whom they chose. They apply for as long as the room exists.
    private(set) var lasting = Entries()
    /// Decisions of stand-ins. They apply until the room is empty, and never keep owners out.
    private(set) var temporary = Entries()

    init() {}
    init(_ stored: StoredRoom) { (lasting.people, lasting.tokens) = (stored.bans, stored.revokedTokens) }

    /// - Returns: false if this changes nothing.
    mutating func ban(_ identity: IdentityID, lasts: Bool, _ rules: Rules) -> Bool {
        lasts ? lasting.ban(identity, rules) : temporary.ban(identity, rules)
    }

    mutating func revoke(_ token: [UInt8], lasts: Bool, _ rules: Rules) {
        if lasts { lasting.revoke(token, rules) } else { temporary.revoke(token, rules) }
    }

    mutating func endTemporary() { temporary = Entries() }
}

extension Hub {
    /// Resets rooms in memory to their stored state, because their changes could not be stored.
    mutating func reloadRooms(_ ids: Set<RoomID>, _ stored: [StoredRoom]) {
        var names: [RoomID: RoomName] = [:]
        rooms.forEach { room in if ids.contains(room.id) { names[room.id] = room.name } }
        for id in ids.sorted() {
            let kept = stored.first { $0.id == id }
            guard let name = names[id] ?? kept?.name else { continue }
            // If a room's deletion could not be stored, the room is no longer in memory. The registry then restores
            // it, unless another room has its name.
            if names[id] != nil {
                context.tell(.room(name, .notStored(kept)))
            } else if let kept {
                context.tell(.roomRegistry(.restore(kept)))
            }
        }
    }
}
