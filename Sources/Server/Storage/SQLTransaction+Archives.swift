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

    func archives(of project: String, session: SessionID?, offset: Int, limit: Int) throws -> ArchivePage {
        let matches = session == nil ? "project = ?" : "project = ? AND session = ?"
        let arguments: [(any SQLArgument)?] = [project] + (session.map { [$0.text] } ?? [])
        var page = ArchivePage()
        page.count =
            try rows("SELECT COUNT(*) AS number FROM archive WHERE \(matches)", arguments).first?.value("number") ?? 0
        page.archives = try rows(
            "SELECT * FROM archive WHERE \(matches) ORDER BY createdAt DESC, id DESC LIMIT ? OFFSET ?",
            arguments + [max(0, limit), max(0, offset)]
        ).map { try ArchiveRecord(row: $0) }
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
    ) async throws -> ArchivePage {
        try await read { try $0.archives(of: project, session: session, offset: offset, limit: limit) }
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
