import Signaling
import Wire

/// The active bans of identities.
struct IdentityBans: Equatable, Sendable {
    /// The difference between two lists of bans. The hub applies it to the people in memory.
    struct Difference: Equatable, Sendable {
        /// New bans, and bans that replace another ban of the same identity.
        var added: [Ban] = []
        var lifted: [IdentityID] = []
    }

    private var bans: [IdentityID: Ban] = [:]

    /// Replaces all bans and returns what has changed. Ignores bans of addresses.
    mutating func replace(with list: [Ban]) -> Difference {
        var difference = Difference()
        var bans: [IdentityID: Ban] = [:]
        for ban in list {
            guard case .identity(let identity) = ban.subject else { continue }
            bans[identity] = ban
            if self.bans[identity] != ban { difference.added.append(ban) }
        }
        difference.lifted = self.bans.keys.filter { bans[$0] == nil }.sorted()
        self.bans = bans
        return difference
    }

    /// Returns the first active ban of a person: the stored one, or one in memory of these identities, which may be
    /// newer. Returns nil if none is active.
    ///
    /// Checks all of them, because an expired ban must not hide an active one: the list in memory can contain expired
    /// bans, since it is read again only when another process changes it.
    func active(stored: Ban?, _ identities: [IdentityID], at now: Timestamp) -> Ban? {
        let candidates = [stored] + identities.map { bans[$0] }
        return candidates.lazy.compactMap { $0 }.first { $0.isActive(at: now) }
    }
}
