import Foundation
import GRDB
import Signaling
import Wire

/// Statements for revoked tokens, muted sessions and the audit log.
extension Database {
    func revoke(_ revocation: Revocation) throws {
        try run(
            "INSERT OR REPLACE INTO revokedToken (session, fingerprint, expiresAt) VALUES (?, ?, ?)",
            [revocation.session.text, Data(revocation.fingerprint), revocation.expiresAt.milliseconds])
    }

    func setMuted(_ isMuted: Bool, _ session: SessionID, at: Timestamp) throws {
        try run("DELETE FROM mutedSession WHERE session = ?", [session.text])
        guard isMuted else { return }
        try run("INSERT INTO mutedSession (session, mutedAt) VALUES (?, ?)", [session.text, at.milliseconds])
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

    func audit(_ entry: AuditEntry) throws {
        try run(
            "INSERT INTO audit (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
            [entry.at.milliseconds, entry.actor, entry.action, entry.subject, entry.detail.withoutNUL])
    }

    func audit(since start: Timestamp, limit: Int) throws -> [AuditEntry] {
        try rows("SELECT * FROM audit WHERE at >= ? ORDER BY id DESC LIMIT ?", [start.milliseconds, max(0, limit)]).map
        {
            AuditEntry(
                at: try $0.time("at"), actor: try $0.value("actor"), action: try $0.value("action"),
                subject: try $0.value("subject"), detail: try $0.value("detail"))
        }
    }

    /// Deletes at most `limit` records older than `moment`. The limit keeps each transaction short.
    ///
    /// - Returns: the number of deleted rows.
    func deleteOld(_ records: OldRecords, olderThan moment: Timestamp, limit: Int) throws -> Int {
        let (table, column): (String, String)
        switch records {
        case .reports: (table, column) = ("report", "createdAt")
        case .calls: (table, column) = ("callLog", "at")
        case .audit: (table, column) = ("audit", "at")
        case .pushEndpoints: (table, column) = ("pushEndpoint", "createdAt")
        case .bans: (table, column) = ("ban", "expiresAt")
        case .revokedTokens: (table, column) = ("revokedToken", "expiresAt")
        case .profiles: return try deleteUnusedProfiles(since: moment, limit: limit)
        }
        // Select rows by these columns, because some tables have no row number.
        let columns =
            switch records {
            case .calls: "owner, call"
            case .revokedTokens: "session, fingerprint"
            case .reports, .audit, .pushEndpoints, .profiles, .bans: "id"
            }
        let key = "(\(columns))"
        try run(
            "DELETE FROM \(table) WHERE \(key) IN (SELECT \(columns) FROM \(table) WHERE \(column) < ? ORDER BY \(column) LIMIT ?)",
            [moment.milliseconds, limit])
        return changesCount
    }

    /// Deletes at most `limit` profiles that were last used before `moment` and whose people have no contacts, linked
    /// devices or push endpoints. Such people start over when they return. Returns the number of deleted profiles.
    private func deleteUnusedProfiles(since moment: Timestamp, limit: Int) throws -> Int {
        try run(
            """
            DELETE FROM profile WHERE identity IN (
                SELECT identity FROM profile AS unused WHERE usedAt < ?
                    AND NOT EXISTS (SELECT 1 FROM contact WHERE owner = unused.identity)
                    AND NOT EXISTS (SELECT 1 FROM device WHERE person = unused.identity)
                    AND NOT EXISTS (SELECT 1 FROM pushEndpoint WHERE identity = unused.identity)
                ORDER BY usedAt LIMIT ?)
            """,
            [moment.milliseconds, limit])
        return changesCount
    }
}

/// The kinds of records that the server deletes after their retention time. "Before the limit" means before the time
/// that is passed to ``Storage/deleteOld(_:olderThan:)``.
public enum OldRecords: CaseIterable, Sendable {
    /// Reports that were filed before the limit, with their chat lines.
    case reports
    /// Calls in the call logs from before the limit, even if the person has not seen them.
    case calls
    /// Entries of the audit log from before the limit.
    case audit
    /// Push endpoints that their devices last registered before the limit.
    case pushEndpoints
    /// Bans that ended before the limit. Permanent bans are kept.
    case bans
    /// Revoked tokens that expired before the limit. They would be refused anyway.
    case revokedTokens
    /// Profiles of people who were last online before the limit and who have no contacts, linked devices or push
    /// endpoints.
    case profiles
}
