import Wire

/// Joins of a legacy client's home session that arrive before the match of their token has opened the session.
///
/// In a cluster, the match can be on the partner's node. It invites the partner, and informs this node by a letter. The partner's SDK may
/// be connected to this node or to a third one, so its join can arrive before that letter.
struct EarlyJoins: Equatable, Sendable {
    struct Join: Equatable, Sendable {
        let request: Request
        let identity: IdentityID
        let grant: SessionGrant
        let match: MatchID
        let until: Timestamp
    }

    /// How long a join waits. A letter takes milliseconds. It takes longer only while Redis is away, and then the join is refused.
    private static let wait = Duration.seconds(2)
    /// Maximum number of joins that wait. Only the partner gets a token, for one place.
    private static let maxCount = 4

    /// In the order of their arrival.
    private var joins: [Join] = []

    var clients: [ConnectionID] { joins.map(\.request.client) }
    var nextTimeout: Timestamp? { joins.first?.until }

    func contains(_ client: ConnectionID) -> Bool { joins.contains { $0.request.client == client } }

    /// Returns false if too many joins wait.
    mutating func add(
        _ request: Request, _ identity: IdentityID, _ grant: SessionGrant, for match: MatchID, now: Timestamp
    ) -> Bool {
        guard joins.count < Self.maxCount else { return false }
        let until = now + Self.wait
        joins.append(Join(request: request, identity: identity, grant: grant, match: match, until: until))
        return true
    }

    mutating func remove(_ client: ConnectionID) { joins.removeAll { $0.request.client == client } }

    /// Removes and returns the joins that wait for this match.
    mutating func take(for match: MatchID) -> [Join] { take { $0.match == match } }

    /// Removes and returns the joins that have waited too long.
    mutating func takeDue(now: Timestamp) -> [Join] { take { $0.until <= now } }

    mutating func takeAll() -> [Join] { take { _ in true } }

    private mutating func take(where isTaken: (Join) -> Bool) -> [Join] {
        guard !joins.isEmpty else { return [] }
        let taken = joins.filter(isTaken)
        joins.removeAll(where: isTaken)
        return taken
    }
}
