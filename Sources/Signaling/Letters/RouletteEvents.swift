import Cluster
import Wire

/// Events for the pool, mostly from the state machines of people: they enter and leave the queue, and accept or refuse
/// proposed matches.
public enum PoolEvent: Equatable, Sendable {
    case enter(PoolEntry)
    case withdraw(IdentityID)
    /// The person accepts (`reserved`) or refuses the match. Answers `PersonEvent.reserve`.
    case reserved(MatchID, IdentityID)
    case refused(MatchID, IdentityID)
    /// The first person has blocked the second. If the first person is waiting, the two must no longer be matched.
    case exclude(IdentityID, IdentityID)
    /// Asks the pool to answer a `roulette.count` request. The pool adds those who wait in it to these counts.
    case count(ConnectionID, re: UInt64, ClientCounts)
}

/// How many clients a server or several have.
public struct ClientCounts: Hashable, Sendable {
    /// Clients that are connected or can still resume.
    public var clients: Int
    /// People who wait for a stranger.
    public var waiting: Int

    public init(clients: Int = 0, waiting: Int = 0) { (self.clients, self.waiting) = (clients, waiting) }
}

/// A waiting person, with all properties that decide whom they may be matched with.
public struct PoolEntry: Equatable, Sendable {
    public var identity: IdentityID
    public var mode: ChatMode
    /// The interests, normalized by `Interests.normalized`.
    public var interests: [String]
    public var name: String
    /// The remote address, for per-address limits.
    public var address: String
    /// People whom this person has blocked.
    public var excluded: Set<IdentityID>
    public var lastPartner: IdentityID?
    /// The session in which a legacy client publishes with every partner; nil for other clients.
    public var home: SessionID?
    /// The person's node; nil without a cluster.
    public var node: NodeTag?

    public init(
        identity: IdentityID, mode: ChatMode = .video, interests: [String] = [], name: String = "",
        address: String = "",
        excluded: Set<IdentityID> = [], lastPartner: IdentityID? = nil, home: SessionID? = nil, node: NodeTag? = nil
    ) {
        self.identity = identity
        self.mode = mode
        self.interests = interests
        self.name = name
        self.address = address
        self.excluded = excluded
        self.lastPartner = lastPartner
        self.home = home
        self.node = node
    }

    func sharedInterests(with other: PoolEntry) -> [String] {
        interests.filter { other.interests.contains($0) }
    }

    /// Returns true if one of the two people was the other's most recent partner.
    func isFormerPartner(of other: PoolEntry) -> Bool {
        lastPartner == other.identity || other.lastPartner == identity
    }

    func isBlocked(with other: PoolEntry) -> Bool {
        excluded.contains(other.identity) || other.excluded.contains(identity)
    }
}

/// Events for a match, from the pool and from the state machines of the two people.
public enum MatchEvent: Equatable, Sendable {
    /// Both people are reserved, so the match begins.
    case begin(ChatMode, PoolEntry, PoolEntry)
    /// This person leaves the match for the given reason.
    case leave(IdentityID, EndReason)
    /// This person's device lost its connection (true) or reconnected (false).
    case away(IdentityID, Bool)
    /// This person's device has a new address. The match passes it to the partner, in case the partner reports this
    /// person.
    case moved(IdentityID, address: String)
}
