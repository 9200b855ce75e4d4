import Cluster
import Foundation
import Signaling
import Wire

/// SQL statements for ongoing calls and call logs. Each runs in the caller's transaction.

// MARK: Ongoing calls

extension SQLTransaction {
    func place(_ call: StoredCall) throws {
        try upsert(
            "openCall", key: "call",
            [
                "call": call.id.blob, "session": call.session.text, "caller": call.caller.blob,
                "callee": call.callee.blob, "callerName": call.callerName, "calleeName": call.calleeName,
                "video": call.video, "placedAt": call.placedAt.milliseconds,
                "ringsUntil": call.ringsUntil.milliseconds, "acceptedAt": call.acceptedAt?.milliseconds,
            ])
        if life > 0 { try upsert("callLife", key: "call", ["call": call.id.blob, "life": Int64(life)]) }
    }

    func openCalls() throws -> [StoredCall] {
        try rows("SELECT * FROM openCall ORDER BY placedAt, call", []).map { try StoredCall(row: $0) }
    }

    /// Returns the calls of one life of a node; those of no life if it is 0. Only PostgreSQL has the table.
    func openCalls(of life: UInt32) throws -> [StoredCall] {
        try rows(
            """
            SELECT openCall.* FROM openCall LEFT JOIN callLife USING (call) WHERE COALESCE(life, 0) = ? ORDER BY placedAt, call
            """, [Int64(life)]
        ).map { try StoredCall(row: $0) }
    }

    /// Returns which node has a call of this person; nil if there is no such call. Only PostgreSQL has the tables.
    func home(of call: CallID, of person: IdentityID) throws -> CallHome? {
        let found = try rows(
            """
            SELECT node.node AS node, node.life AS life
            FROM openCall LEFT JOIN callLife USING (call) LEFT JOIN node ON node.life = callLife.life AND NOT node.fenced
            WHERE openCall.call = ? AND ? IN (openCall.caller, openCall.callee)
            """, [call.blob, person.blob])
        guard let row = found.first else { return nil }
        let (node, life): (Int64?, Int64?) = (try row.optional("node"), try row.optional("life"))
        // Calls from before the cluster have no life until a node has taken them over.
        guard let node, let life, let tag = NodeTag(node: UInt16(clamping: node), life: UInt32(clamping: life)) else {
            return .changing
        }
        return .node(tag)
    }

    /// Makes the calls of another life those of the node that writes.
    func takeOverCalls(of other: UInt32) throws {
        try run(
            """
            INSERT INTO callLife (call, life)
            SELECT call, CAST(? AS BIGINT) FROM openCall LEFT JOIN callLife USING (call) WHERE COALESCE(life, 0) = ?
            ON CONFLICT (call) DO UPDATE SET life = excluded.life
            """, [Int64(life), Int64(other)])
    }
}

extension StoredCall {
    fileprivate init(row: SQLRow) throws {
        self.init(
            id: try row.id("call"), session: try row.session("session"), caller: try row.id("caller"),
            callee: try row.id("callee"), callerName: try row.value("callerName"),
            calleeName: try row.value("calleeName"), video: try row.value("video"),
            placedAt: try row.time("placedAt"), ringsUntil: try row.time("ringsUntil"),
            acceptedAt: try row.optionalTime("acceptedAt"))
    }
}

// MARK: - Logs

extension SQLTransaction {
    func logCall(_ record: CallRecord, of owner: IdentityID, limit: Int) throws {
        // Two nodes may log the same missed call: the callee's node, when the call's node is lost, and the node that continues the call.
        // Keep the first record, because the callee may have seen it in the meantime.
        if record.outcome == .missed {
            let logged = try rows(
                "SELECT call FROM callLog WHERE owner = ? AND call = ? AND outcome = ?",
                [owner.blob, record.call.blob, record.outcome.rawValue])
            guard logged.isEmpty else { return }
        }
        try upsert(
            "callLog", key: "owner, call",
            [
                "owner": owner.blob, "call": record.call.blob, "other": record.other.blob,
                "otherName": record.otherName, "direction": record.direction.rawValue,
                "outcome": record.outcome.rawValue, "video": record.video, "at": record.at.milliseconds,
                "durationMs": record.duration?.wholeMilliseconds, "isSeen": record.isSeen,
            ])
        try run(
            """
            DELETE FROM callLog WHERE owner = ?1 AND call IN (
                SELECT call FROM callLog WHERE owner = ?1 ORDER BY at DESC, call DESC LIMIT \(SQLText.noLimit) OFFSET ?2)
            """,
            [owner.blob, limit])
    }

    func forgetCalls(_ call: CallID?, by owner: IdentityID) throws {
        if let call {
            try run("DELETE FROM callLog WHERE owner = ? AND call = ?", [owner.blob, call.blob])
        } else {
            try run("DELETE FROM callLog WHERE owner = ?", [owner.blob])
        }
    }

    /// Returns up to `limit` of a person's logged calls that are older than the cursor `before`, newest first. If
    /// `before` is nil, starts with the newest call.
    func calls(of owner: IdentityID, before: CallLogCursor?, limit: Int) throws -> [CallRecord] {
        let rows =
            if let before {
                try rows(
                    """
                    SELECT * FROM callLog WHERE owner = ? AND (at, call) < (?, ?) ORDER BY at DESC, call DESC LIMIT ?
                    """,
                    [owner.blob, before.at.milliseconds, before.call.blob, limit])
            } else {
                try rows(
                    "SELECT * FROM callLog WHERE owner = ? ORDER BY at DESC, call DESC LIMIT ?", [owner.blob, limit])
            }
        return try rows.map { try CallRecord(row: $0) }
    }

    /// Returns the calls that the person has not seen, oldest first. If there are more than the limit, returns only
    /// the newest.
    func unseenCalls(of owner: IdentityID) throws -> [CallRecord] {
        try rows(
            "SELECT * FROM callLog WHERE owner = ? AND NOT isSeen ORDER BY at DESC, call DESC LIMIT ?",
            [owner.blob, StorageLimits.unseenCalls]
        ).reversed().map { try CallRecord(row: $0) }
    }
}

extension CallRecord {
    fileprivate init(row: SQLRow) throws {
        let milliseconds: Int64? = try row.optional("durationMs")
        self.init(
            call: try row.id("call"), other: try row.id("other"), otherName: try row.value("otherName"),
            direction: try row.choice("direction"), outcome: try row.choice("outcome"), video: try row.value("video"),
            at: try row.time("at"), duration: milliseconds.map { .milliseconds($0) }, isSeen: try row.value("isSeen"))
    }
}
