import Signaling
import Testing
import Wire

@testable import Server

@Suite("The list of stored reports") struct StoredReportListTests: StorageFixtures {
    @Test func `a list of reports takes three statements, however many reports there are`() async throws {
        try await withDatabases { open in
            let storage = try await open()
            #expect(try await self.statements(storage) == 3)
            var written = report(lines: ["a", "b"])
            written.sample = ReportedSample(jpeg: [0xFF, 0xD8, 0], at: now)
            try await storage.commit([.report(report()), .report(written), .report(written)])
            #expect(try await self.statements(storage) == 3)
            let lines = try await storage.reports(includingClosed: true, limit: 2).map { $0.report.lines.map(\.text) }
            #expect(lines == [["a", "b"], ["a", "b"]])
            try await storage.close()
        }
    }

    @Test func `the mark of moderation changes with reports, their end and the audit log, and takes one statement`()
        async throws
    {
        try await withDatabases { open in
            let storage = try await open()
            var marks = [try await self.mark(storage)]
            #expect(marks == [ModerationMark()])
            try await storage.commit([.report(report())])
            marks.append(try await storage.moderationMark())
            let id = try #require(marks[1].newestReport)
            #expect(marks[1].openReports == 1)
            try await storage.closeReport(id: id, at: now)
            marks.append(try await storage.moderationMark())
            try await storage.addBan(
                Ban(subject: .identity(bob), reason: "", createdAt: now),
                recording: AuditEntry(at: now, actor: AuditEntry.operatorActor, action: "ban.add", subject: "\(bob)"))
            marks.append(try await storage.moderationMark())
            #expect(Set(marks).count == 4, "\(marks)")
            #expect(try await self.mark(storage) == marks.last)
            try await storage.close()
        }
    }

    /// Reads the mark, and requires that it takes one statement.
    private func mark(_ storage: some SQLStorage) async throws -> ModerationMark {
        let (mark, count) = try await storage.read { transaction in
            let counted = CountedTransaction(transaction)
            return (try counted.moderationMark(), counted.count)
        }
        #expect(count == 1)
        return mark
    }

    /// Returns how many statements a list of reports takes.
    private func statements(_ storage: some SQLStorage) async throws -> Int {
        try await storage.read { transaction in
            let counted = CountedTransaction(transaction)
            _ = try counted.reports(includingClosed: true, limit: 10)
            return counted.count
        }
    }
}

/// Counts the statements that return rows.
private final class CountedTransaction: SQLTransaction {
    private let transaction: any SQLTransaction
    private(set) var count = 0

    init(_ transaction: any SQLTransaction) { self.transaction = transaction }

    func run(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int { try transaction.run(sql, arguments) }

    func insert(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int64 {
        try transaction.insert(sql, arguments)
    }

    func rows(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> [SQLRow] {
        count += 1
        return try transaction.rows(sql, arguments)
    }

    func lastNumber(of table: StoredTable) throws -> Int64 { try transaction.lastNumber(of: table) }

    func setLastNumber(_ number: Int64, of table: StoredTable) throws {
        try transaction.setLastNumber(number, of: table)
    }
}
