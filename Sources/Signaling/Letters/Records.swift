import Wire

/// The subject of a ban: an identity or a block of addresses.
public enum BanSubject: Hashable, Sendable {
    case identity(IdentityID)
    /// An IP address or a CIDR block in canonical text (`203.0.113.7`, `2001:db8::/48`).
    case address(String)
}

/// A ban of an identity or of addresses, with its reason.
public struct Ban: Hashable, Sendable {
    public var subject: BanSubject
    public var reason: String
    public var createdAt: Timestamp
    /// When the ban ends; `nil` for a permanent ban. The time is absolute, so that a restart does not extend the ban.
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
    /// The reporter's address: an IPv4 address (`203.0.113.7`) or the block of IPv6 addresses (`2001:db8::`) that limits count
    /// as one. Empty if unknown. Both people's addresses are kept as long as the report, so that an operator can ban an abuser
    /// who creates a new identity.
    public var byAddress: String
    public var againstAddress: String
    /// The latest sample of the reported person's camera; nil if there is none.
    public var sample: ReportedSample?

    public init(
        match: MatchID, by: IdentityID, against: IdentityID, reason: String, lines: [ChatLine], createdAt: Timestamp,
        byAddress: String = "", againstAddress: String = ""
    ) {
        self.match = match
        self.by = by
        self.against = against
        self.reason = reason
        self.lines = lines
        self.createdAt = createdAt
        (self.byAddress, self.againstAddress) = (byAddress, againstAddress)
    }
}

/// A session token that a moderator made invalid by removing its holder.
public struct Revocation: Hashable, Sendable {
    public var session: SessionID
    /// Identifies the token. The token cannot be computed from it.
    public var fingerprint: [UInt8]
    /// When the token would have expired. The revocation need not be kept after that.
    public var expiresAt: Timestamp
    public var by: Moderator
    /// The person who was removed.
    public var of: IdentityID
    public var at: Timestamp
    /// Whether the token would be valid again after a restart. If not, only the audit log contains the removal.
    public var isKept = true

    public init(
        session: SessionID, fingerprint: [UInt8], expiresAt: Timestamp, by: Moderator, of: IdentityID, at: Timestamp
    ) {
        (self.session, self.fingerprint, self.expiresAt) = (session, fingerprint, expiresAt)
        (self.by, self.of, self.at) = (by, of, at)
    }
}

/// Who removes a member of a session, or mutes a session.
public enum Moderator: Hashable, Sendable {
    /// A member with the right to moderate.
    case member(IdentityID)
    /// The server of the application with this API key.
    case application(String)
    /// This server. It ends the mute of a session that had no members for `Rules.muteGrace` or whose project was deleted.
    case server

    /// The identity of a member; otherwise nil.
    var member: IdentityID? { if case .member(let identity) = self { identity } else { nil } }
}

/// The decisions of moderators in one session, stored so that they survive a server restart.
public struct SessionModeration: Hashable, Sendable {
    public var session: SessionID
    /// When each revoked token expires, keyed by the token's fingerprint.
    public var revoked: [[UInt8]: Timestamp] = [:]
    public var isMuted = false

    public init(session: SessionID) { self.session = session }
}

/// An entry of the audit log: the record of an action by an operator, an application's server or a moderator.
public struct AuditEntry: Hashable, Sendable {
    public var at: Timestamp
    /// Who acted: `operator` for commands and requests of operators, `check` for the operator's program that judges samples, the API
    /// key for an application's server, otherwise the moderator's identity.
    public var actor: String
    /// The kind of thing that was changed and what was done to it, such as `ban.add`, `report.close`,
    /// `project.rotate`, `room.create` or `session.mute`.
    public var action: String
    /// The target of the action, such as an identity, an address, a report's number, a project's API key, a room's
    /// name or a session.
    public var subject: String
    /// Further facts, such as the reason for a ban; may be empty.
    public var detail: String

    public init(at: Timestamp, actor: String, action: String, subject: String, detail: String = "") {
        (self.at, self.actor, self.action, self.subject, self.detail) = (at, actor, action, subject, detail)
    }

    /// Creates an entry for the decision of a moderator about a session. Returns nil if this server decided.
    init?(at: Timestamp, by moderator: Moderator, action: String, _ session: SessionID, detail: String = "") {
        let actor: String
        switch moderator {
        case .member(let identity): actor = "\(identity)"
        case .application(let apiKey): actor = apiKey
        case .server: return nil
        }
        self.init(at: at, actor: actor, action: action, subject: session.text, detail: detail)
    }

    /// The value of `actor` for commands, which run with the operator's rights.
    public static let operatorActor = "operator"
    /// The value of `actor` for the operator's program that judges samples.
    public static let checkActor = "check"
}

extension WireError {
    /// The error for a request whose change could not be stored.
    public static let storageFailed = WireError(
        .storageFailed, "The server could not store this change. Try again.", retryable: true, retryAfter: .seconds(2))
}
