import Foundation
import Signaling
import Wire

/// SQL statements for archives. Each runs in the caller's transaction.
extension SQLTransaction {
    func store(_ archive: ArchiveRecord) throws {
        try upsert(
            "archive", key: "id",
            [
                "id": archive.id.blob, "project": archive.project, "session": archive.session.text,
                "status": archive.status.rawValue, "node": archive.node, "createdAt": archive.createdAt.milliseconds,
                "updatedAt": archive.updatedAt.milliseconds, "detail": Data(ArchiveDetail.bytes(of: archive)),
            ])
    }

    func archive(_ id: ArchiveID) throws -> ArchiveRecord? {
        try rows("SELECT * FROM archive WHERE id = ?", [id.blob]).first.map { try ArchiveRecord(row: $0) }
    }

    /// Returns one page of the archives or broadcasts of a project, newest first.
    ///
    /// - Parameter session: the session to which they belong; nil for all.
    func page<Record>(
        of table: String, project: String, session: SessionID?, offset: Int, limit: Int,
        _ make: (SQLRow) throws -> Record
    ) throws -> StoredPage<Record> {
        let matches = session == nil ? "project = ?" : "project = ? AND session = ?"
        let arguments: [(any SQLArgument)?] = [project] + (session.map { [$0.text] } ?? [])
        var page = StoredPage<Record>()
        page.count =
            try rows("SELECT COUNT(*) AS number FROM \(table) WHERE \(matches)", arguments).first?.value("number") ?? 0
        page.records = try rows(
            "SELECT * FROM \(table) WHERE \(matches) ORDER BY createdAt DESC, id DESC LIMIT ? OFFSET ?",
            arguments + [max(0, limit), max(0, offset)]
        ).map(make)
        return page
    }

    func unfinishedArchives(of node: String) throws -> [ArchiveRecord] {
        try rows(
            """
            SELECT * FROM archive WHERE status IN ('started', 'paused', 'stopped') AND node = ? ORDER BY createdAt, id
            """, [node]
        ).compactMap { try? ArchiveRecord(row: $0) }
    }
}

extension SQLStorage {
    /// Returns an archive; nil if there is none.
    public func archive(_ id: ArchiveID) async throws -> ArchiveRecord? { try await read { try $0.archive(id) } }

    /// Returns one page of a project's archives.
    public func archives(
        of project: String, session: SessionID?, offset: Int, limit: Int
    ) async throws -> StoredPage<ArchiveRecord> {
        try await read { transaction in
            try transaction.page(
                of: "archive", project: project, session: session, offset: offset, limit: limit
            ) { try ArchiveRecord(row: $0) }
        }
    }

    /// Returns the archives that are recorded, completed or composed.
    public func unfinishedArchives(of node: String) async throws -> [ArchiveRecord] {
        try await read { try $0.unfinishedArchives(of: node) }
    }
}

extension ArchiveRecord {
    init(row: SQLRow) throws {
        let detail: Data = try row.value("detail")
        self.init(
            id: try row.id("id"), project: try row.value("project"), session: try row.session("session"),
            request: ArchiveRequest(), createdAt: try row.time("createdAt"))
        status = try row.choice("status")
        updatedAt = try row.time("updatedAt")
        node = try row.value("node")
        guard ArchiveDetail.read(Array(detail), into: &self) else { throw SQLRow.unreadable("detail") }
    }
}
