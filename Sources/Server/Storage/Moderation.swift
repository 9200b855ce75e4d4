public import Signaling
public import Wire

/// An entry of the audit log: the record of an action by an operator or a moderator.
public struct AuditEntry: Hashable, Sendable {
    public var at: Timestamp
    /// Who acted: `operator` for commands, otherwise the moderator's identity.
    public var actor: String
    /// The action: `ban.add`, `ban.remove`, `report.close`, `project.rotate`, `session.remove`, `session.mute`,
    /// `session.unmute`.
    public var action: String
    /// The target of the action: an identity, an address, a report's number or a session.
    public var subject: String
    /// Further facts, such as the reason of a ban; may be empty.
    public var detail: String

    public init(at: Timestamp, actor: String, action: String, subject: String, detail: String = "") {
        (self.at, self.actor, self.action, self.subject, self.detail) = (at, actor, action, subject, detail)
    }

    /// The actor of commands, which run with the operator's rights.
    public static let operatorActor = "operator"
}

extension Change {
    /// The entry that this change adds to the audit log; nil if it adds none.
    var auditEntry: AuditEntry? {
        switch self {
        case .revoked(let revocation):
            AuditEntry(
                at: revocation.at, actor: "\(revocation.by)", action: "session.remove",
                subject: revocation.session.text,
                detail: "\(revocation.of)")
        case .muted(let session, let isMuted, let moderator?, let at):
            AuditEntry(
                at: at, actor: "\(moderator)", action: isMuted ? "session.mute" : "session.unmute",
                subject: session.text)
        default: nil
        }
    }
}
