import Foundation
import Signaling
import Wire

/// SQL statements for revoked tokens, muted sessions and the audit log.
extension SQLTransaction {
    func revoke(_ revocation: Revocation) throws {
        guard revocation.isKept else { return }
        try upsert(
            "revokedToken", key: "session, fingerprint",
            [
                "session": revocation.session.text, "fingerprint": Data(revocation.fingerprint),
                "expiresAt": revocation.expiresAt.milliseconds,
            ])
    }

    func setMuted(_ isMuted: Bool, _ session: SessionID, at: Timestamp) throws {
        try run("DELETE FROM mutedSession WHERE session = ?", [session.text])
        guard isMuted else { return }
        try run("INSERT INTO mutedSession (session, mutedAt) VALUES (?, ?)", [session.text, at.milliseconds])
    }

    /// Deletes the revoked tokens and mutes of a project's sessions.
    func removeModeration(of apiKey: String) throws {
        for prefix in Project.sessionPrefixes(apiKey: apiKey) {
            for table in ["revokedToken", "mutedSession"] {
                // Session IDs are ASCII without `~`, so these are all that begin with the prefix.
                try run("DELETE FROM \(table) WHERE session >= ? AND session < ?", [prefix, prefix + "~"])
            }
        }
    }

    /// Returns the revoked tokens that have not expired at `now`, and the muted sessions, grouped by session. A
    /// restarted server must enforce them.
    func moderation(at now: Timestamp) throws -> [SessionModeration] {
        var bySession: [SessionID: SessionModeration] = [:]
        for row in try rows("SELECT * FROM revokedToken WHERE expiresAt > ?", [now.milliseconds]) {
            guard let session = SessionID(try row.value("session") as String) else { continue }
            let fingerprint: Data = try row.value("fingerprint")
            bySession[session, default: SessionModeration(session: session)].revoked[Array(fingerprint)] =
                try row.time("expiresAt")
        }
        for row in try rows("SELECT session FROM mutedSession", []) {
            guard let session = SessionID(try row.value("session") as String) else { continue }
            bySession[session, default: SessionModeration(session: session)].isMuted = true
        }
        return bySession.values.sorted { $0.session.text < $1.session.text }
    }

    func moderation(of session: SessionID) throws -> SessionModeration? {
        var found = SessionModeration(session: session)
        for row in try rows("SELECT fingerprint, expiresAt FROM revokedToken WHERE session = ?", [session.text]) {
            let fingerprint: Data = try row.value("fingerprint")
            found.revoked[Array(fingerprint)] = try row.time("expiresAt")
        }
        found.isMuted = try !rows("SELECT session FROM mutedSession WHERE session = ?", [session.text]).isEmpty
        return found.revoked.isEmpty && !found.isMuted ? nil : found
    }

    func audit(_ entry: AuditEntry) throws {
        try run(
            "INSERT INTO audit (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
            [entry.at.milliseconds, entry.actor, entry.action, entry.subject, entry.detail.withoutNUL])
    }

    func moderationMark() throws -> ModerationMark {
        var mark = ModerationMark()
        let row = try rows(
            """
            SELECT (SELECT count(*) FROM report WHERE closedAt IS NULL) AS openReports,
                (SELECT max(id) FROM report) AS newestReport, (SELECT max(id) FROM audit) AS newestEntry
            """, []
        ).first
        guard let row else { return mark }
        mark.openReports = try row.value("openReports")
        mark.newestReport = try row.optional("newestReport")
        mark.newestEntry = try row.optional("newestEntry")
        return mark
    }

    func audit(since start: Timestamp, limit: Int) throws -> [AuditEntry] {
        try rows("SELECT * FROM audit WHERE at >= ? ORDER BY id DESC LIMIT ?", [start.milliseconds, max(0, limit)]).map
        {
            AuditEntry(
                at: try $0.time("at"), actor: try $0.value("actor"), action: try $0.value("action"),
                subject: try $0.value("subject"), detail: try $0.value("detail"))
        }
    }
}
