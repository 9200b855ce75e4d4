import Wire

/// The people and tokens that a room no longer admits.
struct RoomBans: Equatable, Sendable {
    /// Banned people and revoked tokens, oldest first: at most `Rules.roomBans` of each. Beyond that, the oldest are
    /// dropped.
    struct Entries: Equatable, Sendable {
        fileprivate(set) var people: [IdentityID] = []
        fileprivate(set) var tokens: [[UInt8]] = []

        /// - Returns: false if the person was already banned.
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

    /// The bans and revoked tokens set by owners, or by hosts and cohosts whom an owner appointed. They last as long
    /// as the room exists.
    private(set) var lasting = Entries()
    /// The bans and revoked tokens set by stand-ins. They last until the room is empty, and never keep owners out.
    private(set) var temporary = Entries()

    init() {}
    init(_ stored: StoredRoom) { (lasting.people, lasting.tokens) = (stored.bans, stored.revokedTokens) }

    /// - Returns: false if the person was already banned.
    mutating func ban(_ identity: IdentityID, lasts: Bool, _ rules: Rules) -> Bool {
        lasts ? lasting.ban(identity, rules) : temporary.ban(identity, rules)
    }

    mutating func revoke(_ token: [UInt8], lasts: Bool, _ rules: Rules) {
        if lasts { lasting.revoke(token, rules) } else { temporary.revoke(token, rules) }
    }

    mutating func endTemporary() { temporary = Entries() }
}
