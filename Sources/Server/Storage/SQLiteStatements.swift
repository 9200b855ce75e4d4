import Foundation
import GRDB
import Signaling
import Wire

/// The statements behind `SQLiteStorage`. Each runs inside a transaction that its caller began.

extension Database {
    /// Through the statement cache: compiling one takes longer than running it.
    private func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    func apply(_ change: Change, blocksPerOwner: Int) throws {
        switch change {
        case .block(let owner, let blocked, let at):
            try block(owner: owner, blocked: blocked, at: at, limit: blocksPerOwner)
        case .unblock(let owner, let blocked):
            try run("DELETE FROM block WHERE owner = ? AND blocked = ?", [owner.blob, blocked.blob])
        case .report(let report):
            try insert(report.withoutNUL)
        }
    }

    private func block(owner: IdentityID, blocked: IdentityID, at: Timestamp, limit: Int) throws {
        try run(
            "INSERT INTO block (owner, blocked, createdAt) VALUES (?, ?, ?) ON CONFLICT (owner, blocked) DO NOTHING",
            [owner.blob, blocked.blob, at.milliseconds])
        guard changesCount > 0 else { return }
        // Everything past the limit, not just one row: the limit may have been lowered since.
        try run(
            """
            DELETE FROM block WHERE id IN (
                SELECT id FROM block WHERE owner = ? ORDER BY id DESC LIMIT -1 OFFSET ?)
            """,
            [owner.blob, max(0, limit)])
    }

    private func insert(_ report: Report) throws {
        try run(
            "INSERT INTO report (match, reporter, against, reason, createdAt) VALUES (?, ?, ?, ?, ?)",
            [
                report.match.blob, report.by.blob, report.against.blob, report.reason, report.createdAt.milliseconds,
            ])
        let id = lastInsertedRowID
        for (position, line) in report.lines.enumerated() {
            try run(
                "INSERT INTO reportLine (report, position, author, text, at) VALUES (?, ?, ?, ?, ?)",
                [id, position, line.from.blob, line.text, line.at.milliseconds])
        }
    }

    func person(_ id: IdentityID, at now: Timestamp) throws -> PersonRecord {
        let blocked = try Row.fetchAll(
            cachedStatement(sql: "SELECT blocked FROM block WHERE owner = ? ORDER BY id"), arguments: [id.blob])
        let ban = try Row.fetchOne(
            cachedStatement(sql: "SELECT * FROM ban WHERE identity = ? AND (expiresAt IS NULL OR expiresAt > ?)"),
            arguments: [id.blob, now.milliseconds])
        return PersonRecord(blocked: try blocked.map { try $0.id("blocked") }, ban: try ban.map { try Ban(row: $0) })
    }
}

// MARK: - Bans

extension Database {
    func bans(at now: Timestamp) throws -> [Ban] {
        try Row.fetchAll(
            cachedStatement(sql: "SELECT * FROM ban WHERE expiresAt IS NULL OR expiresAt > ? ORDER BY id"),
            arguments: [now.milliseconds]
        ).map { try Ban(row: $0) }
    }

    func addBan(_ ban: Ban) throws {
        try run("DELETE FROM ban WHERE expiresAt <= ?", [ban.createdAt.milliseconds])
        // Deleted first rather than updated, so that the newest ban is the last of the list.
        try removeBan(ban.subject)
        let (identity, address): (Data?, String?) =
            switch ban.subject {
            case .identity(let id): (id.blob, nil)
            case .address(let text): (nil, text)
            }
        try run(
            "INSERT INTO ban (identity, address, reason, createdAt, expiresAt) VALUES (?, ?, ?, ?, ?)",
            [identity, address, ban.reason.withoutNUL, ban.createdAt.milliseconds, ban.expiresAt?.milliseconds])
    }

    @discardableResult
    func removeBan(_ subject: BanSubject) throws -> Bool {
        switch subject {
        case .identity(let id): try run("DELETE FROM ban WHERE identity = ?", [id.blob])
        case .address(let text): try run("DELETE FROM ban WHERE address = ?", [text])
        }
        return changesCount > 0
    }
}

extension Ban {
    fileprivate init(row: Row) throws {
        let address: String? = try row.optional("address")
        let expiresAt: Int64? = try row.optional("expiresAt")
        self.init(
            subject: try address.map { .address($0) } ?? .identity(row.id("identity")),
            reason: try row.value("reason"),
            createdAt: try row.time("createdAt"),
            expiresAt: expiresAt.map { Timestamp(milliseconds: $0) })
    }
}

// MARK: - Reports

extension Database {
    func reports(includingClosed: Bool, limit: Int) throws -> [StoredReport] {
        let filter = includingClosed ? "" : "WHERE closedAt IS NULL"
        // SQLite reads a negative limit as none.
        return try Row.fetchAll(
            cachedStatement(sql: "SELECT * FROM report \(filter) ORDER BY createdAt DESC, id DESC LIMIT ?"),
            arguments: [max(0, limit)]
        ).map { try storedReport($0) }
    }

    func report(id: Int64) throws -> StoredReport? {
        try Row.fetchOne(cachedStatement(sql: "SELECT * FROM report WHERE id = ?"), arguments: [id])
            .map { try storedReport($0) }
    }

    func closeReport(id: Int64, at now: Timestamp) throws -> Bool {
        try run("UPDATE report SET closedAt = ? WHERE id = ? AND closedAt IS NULL", [now.milliseconds, id])
        return changesCount > 0
    }

    func deleteReports(olderThan limit: Timestamp) throws -> Int {
        // The lines go with them, by their foreign key.
        try run("DELETE FROM report WHERE createdAt < ?", [limit.milliseconds])
        return changesCount
    }

    private func storedReport(_ row: Row) throws -> StoredReport {
        let id: Int64 = try row.value("id")
        let closedAt: Int64? = try row.optional("closedAt")
        let lines = try Row.fetchAll(
            cachedStatement(sql: "SELECT author, text, at FROM reportLine WHERE report = ? ORDER BY position"),
            arguments: [id]
        ).map { line in
            ChatLine(from: try line.id("author"), text: try line.value("text"), at: try line.time("at"))
        }
        let report = Report(
            match: try row.id("match"), by: try row.id("reporter"), against: try row.id("against"),
            reason: try row.value("reason"), lines: lines, createdAt: try row.time("createdAt"))
        return StoredReport(id: id, report: report, closedAt: closedAt.map { Timestamp(milliseconds: $0) })
    }
}

// MARK: - Values

extension Identifier128 {
    fileprivate var blob: Data { Data(bytes) }
}

extension Row {
    /// GRDB's own subscript traps on a value of another type, and the file may have been edited by hand.
    fileprivate func value<T: DatabaseValueConvertible>(_ column: String) throws -> T {
        guard let value = T.fromDatabaseValue(self[column]) else { throw Self.unreadable(column) }
        return value
    }

    fileprivate func optional<T: DatabaseValueConvertible>(_ column: String) throws -> T? {
        let value: DatabaseValue = self[column]
        return value.isNull ? nil : try self.value(column)
    }

    fileprivate func id<ID: Identifier128>(_ column: String) throws -> ID {
        let blob: Data = try value(column)
        guard let id = ID(bytes: blob) else { throw Self.unreadable(column) }
        return id
    }

    fileprivate func time(_ column: String) throws -> Timestamp {
        Timestamp(milliseconds: try value(column))
    }

    private static func unreadable(_ column: String) -> StorageError {
        StorageError(.corrupt, "The database holds a value in column \(column) that is not what belongs there.")
    }
}
