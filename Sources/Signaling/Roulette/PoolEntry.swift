import Wire

public enum PoolEvent: Equatable, Sendable {
    case enter(PoolEntry)
    case withdraw(IdentityID)
    /// Answers to `reserve`.
    case reserved(MatchID, IdentityID)
    case refused(MatchID, IdentityID)
    /// The first blocked the second while waiting.
    case exclude(IdentityID, IdentityID)
    case count(ConnectionID, re: UInt64)
}

/// Somebody in the queue, with all that decides whom he may meet.
public struct PoolEntry: Equatable, Sendable {
    public var identity: IdentityID
    public var mode: ChatMode
    /// Normalised.
    public var interests: [String]
    public var name: String
    /// The remote address, for the limit per address.
    public var address: String
    /// Blocked by this person.
    public var excluded: Set<IdentityID>
    public var lastPartner: IdentityID?
    /// The session this person publishes in whoever the partner is: on RouletteTok's wire everybody has one.
    public var home: SessionID?

    public init(
        identity: IdentityID, mode: ChatMode = .video, interests: [String] = [], name: String = "",
        address: String = "",
        excluded: Set<IdentityID> = [], lastPartner: IdentityID? = nil, home: SessionID? = nil
    ) {
        self.identity = identity
        self.mode = mode
        self.interests = interests
        self.name = name
        self.address = address
        self.excluded = excluded
        self.lastPartner = lastPartner
        self.home = home
    }

    func sharedInterests(with other: PoolEntry) -> [String] {
        interests.filter { other.interests.contains($0) }
    }

    /// Whether one was the other's last partner.
    func justLeft(_ other: PoolEntry) -> Bool {
        lastPartner == other.identity || other.lastPartner == identity
    }

    func isBlocked(with other: PoolEntry) -> Bool {
        excluded.contains(other.identity) || other.excluded.contains(identity)
    }
}
