import Foundation
import Signaling
import Wire

/// SQL statements for broadcasts. Each runs in the caller's transaction.
extension SQLTransaction {
    func store(_ broadcast: BroadcastRecord) throws {
        try upsert(
            "broadcast", key: "id",
            [
                "id": broadcast.id.blob, "project": broadcast.project, "session": broadcast.session.text,
                "status": broadcast.status.rawValue, "node": broadcast.node,
                "createdAt": broadcast.createdAt.milliseconds, "updatedAt": broadcast.updatedAt.milliseconds,
                "detail": Data(BroadcastDetail.bytes(of: broadcast)),
            ])
    }
}

extension SQLStorage {
    /// Returns a broadcast; nil if there is none.
    public func broadcast(_ id: BroadcastID) async throws -> BroadcastRecord? {
        try await read { transaction in
            try transaction.rows("SELECT * FROM broadcast WHERE id = ?", [id.blob]).first.map { row in
                try BroadcastRecord.make(row)
            }
        }
    }

    /// Returns one page of a project's broadcasts.
    public func broadcasts(
        of project: String, session: SessionID?, offset: Int, limit: Int
    ) async throws -> StoredPage<BroadcastRecord> {
        try await read { transaction in
            try transaction.page(
                of: "broadcast", project: project, session: session, offset: offset, limit: limit, BroadcastRecord.make)
        }
    }

    /// Returns the broadcasts that run.
    public func runningBroadcasts(of node: String) async throws -> [BroadcastRecord] {
        try await read { transaction in
            try transaction.rows(
                "SELECT * FROM broadcast WHERE status = 'started' AND node = ? ORDER BY createdAt, id", [node]
            ).compactMap { try? BroadcastRecord.make($0) }
        }
    }
}

extension BroadcastRecord {
    fileprivate static func make(_ row: SQLRow) throws -> BroadcastRecord {
        let detail: Data = try row.value("detail")
        let read = BroadcastDetail.read(
            Array(detail), id: try row.id("id"), project: try row.value("project"),
            session: try row.session("session"), createdAt: try row.time("createdAt"))
        guard var broadcast = read else { throw SQLRow.unreadable("detail") }
        broadcast.status = try row.choice("status")
        broadcast.updatedAt = try row.time("updatedAt")
        broadcast.node = try row.value("node")
        return broadcast
    }
}
