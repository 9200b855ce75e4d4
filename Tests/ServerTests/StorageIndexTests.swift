import GRDB
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Indexes of the database", .ownThreads) struct StorageIndexTests: StorageFixtures {
    /// Returns how SQLite finds the rows of each statement that `body` runs.
    private func queryPlans(_ directory: String, _ body: (Database) throws -> Void) throws -> [String] {
        let queue = try DatabaseQueue(path: directory + "/" + SQLiteStorage.fileName)
        defer { try? queue.close() }
        return try queue.read { db in
            var statements: [String] = []
            db.trace { event in
                if case .statement(let statement) = event { statements.append(statement.expandedSQL) }
            }
            try body(db)
            db.trace()
            return try statements.flatMap { sql in
                try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql).map { row -> String in row["detail"] }
            }
        }
    }

    @Test func `the data of a person is found without reading everybody's reports`() async throws {
        try await withDirectory { directory in
            try await SQLiteStorage(directory: directory).close()
            let plans = try queryPlans(directory) { db in _ = try db.everything(of: alice, at: now) }
            // Such as "SEARCH report USING INDEX reportByReporter (reporter=?)"; "SCAN report" reads all.
            let ofReports = plans.filter { $0.split(separator: " ").contains("report") }
            #expect(!ofReports.isEmpty)
            #expect(ofReports.allSatisfy { $0.hasPrefix("SEARCH ") }, "\(ofReports)")
        }
    }
}
