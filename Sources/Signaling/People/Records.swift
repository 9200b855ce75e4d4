import Wire

/// Stored records, and the changes that machines commit. `Server/Storage` implements them twice.

/// Who is banned.
public enum BanSubject: Hashable, Sendable {
    case identity(IdentityID)
    /// An IP address or a CIDR block in canonical text (`203.0.113.7`, `2001:db8::/48`).
    case address(String)
}

public struct Ban: Hashable, Sendable {
    public var subject: BanSubject
    public var reason: String
    public var createdAt: Timestamp
    /// `nil` for a permanent ban. Absolute, so that a restart does not extend it.
    public var expiresAt: Timestamp?

    public init(subject: BanSubject, reason: String, createdAt: Timestamp, expiresAt: Timestamp? = nil) {
        self.subject = subject
        self.reason = reason
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    public func isActive(at now: Timestamp) -> Bool { expiresAt.map { now < $0 } ?? true }
}

/// One line of the text chat in a report.
public struct ChatLine: Hashable, Sendable {
    public var from: IdentityID
    public var text: String
    public var at: Timestamp

    public init(from: IdentityID, text: String, at: Timestamp) {
        self.from = from
        self.text = text
        self.at = at
    }
}

/// A complaint about a roulette partner.
public struct Report: Hashable, Sendable {
    public var match: MatchID
    public var by: IdentityID
    public var against: IdentityID
    public var reason: String
    public var lines: [ChatLine]
    public var createdAt: Timestamp

    public init(
        match: MatchID, by: IdentityID, against: IdentityID, reason: String, lines: [ChatLine], createdAt: Timestamp
    ) {
        self.match = match
        self.by = by
        self.against = against
        self.reason = reason
        self.lines = lines
        self.createdAt = createdAt
    }
}
