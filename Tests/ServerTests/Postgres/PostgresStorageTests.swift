import Foundation
import Signaling
import Testing
import Wire

@testable import Server

/// What differs from SQLite. The suites of storage, which use `withStorage` or `withDatabases`, also run with PostgreSQL.
@Suite("PostgreSQL storage", .ownThreads, .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresStorageTests: StorageFixtures {
    private func open(_ url: SecretText, _ role: PostgresStorage.Role = .command) async throws -> PostgresStorage {
        try await blocking { try PostgresStorage(url: url, role: role, lockTimeout: .zero) }
    }

    @Test func `processes that start together migrate the database once`() async throws {
        try await withPostgres { url in
            let opened = try await withThrowingTaskGroup(of: PostgresStorage.self) { group in
                for _ in 0..<4 { group.addTask { try await open(url) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try await opened[0].commit([block(alice, bob)])
            #expect(try await opened[1].person(alice, at: now).blocked == [bob])
            for storage in opened { try await storage.close() }
        }
    }

    @Test func `a database of a newer version is rejected with advice`() async throws {
        try await withPostgres { url in
            let storage = try await open(url)
            try await storage.execute("INSERT INTO confabMigration (version) VALUES (99)")
            try await storage.close()
            let error = await expect(.newerSchema) { _ = try await open(url) }
            #expect(error?.message.contains("Install that version") == true)
        }
    }

    @Test func `a second server is rejected, and commands are not`() async throws {
        try await withPostgres { url in
            let server = try await open(url, .server)
            let command = try await open(url)
            let error = await expect(.busy) { _ = try await open(url, .server) }
            #expect(error?.message.contains("Another server") == true)
            try await server.close()
            // PostgreSQL notices the end of a connection late, so the lock must be free before that.
            for _ in 0..<20 { try await open(url, .server).close() }
            try await command.close()
        }
    }

    @Test func `the change counter changes when another process changes a ban`() async throws {
        try await withPostgres { url in
            let (server, command) = (try await open(url, .server), try await open(url))
            let before = try await server.changeCounter()
            try await command.addBan(Ban(subject: .identity(bob), reason: "", createdAt: now))
            let after = try await server.changeCounter()
            #expect(after != before)
            #expect(try await server.bans(at: now).count == 1)
            try await command.removeBan(.identity(bob))
            #expect(try await server.changeCounter() != after)
            try await server.close()
            try await command.close()
        }
    }

    @Test func `a rejected change does not fail the others in its transaction`() async throws {
        try await withPostgres { url in
            let gate = StorageGate()
            let storage = try await blocking {
                try PostgresStorage(url: url, beforeTransaction: { await gate.enter($0) })
            }
            try await refuse("block", when: "NEW.createdAt = 13", in: storage)
            let first = Task { try await storage.commit([block(alice, bob)]) }
            try await until("the first transaction began") { await gate.sizes == [1] }
            let good = Task { try await storage.commit([block(bob, person(1))]) }
            try await until("it waits") { await storage.writer.waitingCount == 1 }
            let bad = Task {
                try await storage.commit([block(bob, person(2)), block(bob, carol, at: Timestamp(milliseconds: 13))])
            }
            try await until("both wait") { await storage.writer.waitingCount == 2 }
            await gate.open()
            try await first.value
            try await good.value
            let error = await expect(.rejected) { try await bad.value }
            #expect(error.map { !"\($0)".contains("\(carol)") } == true)
            #expect(try await storage.person(bob, at: now).blocked == [person(1)])
            try await storage.close()
        }
    }

    @Test func `text with a NUL is rejected instead of cut`() async throws {
        try await withPostgres { url in
            let storage = try await open(url)
            let entry = AuditEntry(at: now, actor: "a\0b", action: "x", subject: "")
            await expect(.rejected) { try await storage.record(entry) }
            #expect(try await storage.audit(since: .distantPast, limit: 1) == [])
            try await storage.close()
        }
    }

    @Test func `a backup names the tool for it`() async throws {
        try await withPostgres { url in
            let storage = try await open(url)
            let error = await expect(.unsupported) { try await storage.backup(to: "/tmp/never") }
            #expect(error?.message.contains("pg_dump") == true)
            try await storage.close()
        }
    }

    @Test func `a server that cannot be reached is named without the password`() async throws {
        let url = SecretText("postgresql://confab:hidden@localhost:1/confab")
        let error = await expect(.unreachable) { _ = try await open(url) }
        #expect(error.map { !"\($0)".contains("hidden") } == true)
        let wrong = await expect(.notAccessible) { _ = try await open(SecretText("postgresql://x?hidden=y")) }
        #expect(wrong.map { !"\($0)".contains("hidden") } == true)
        // libpq would take the password for a port, and quote it.
        let mistaken = await expect(.notAccessible) {
            _ = try await open(SecretText("postgresql://confab:hidden/confab"))
        }
        #expect(mistaken.map { !"\($0)".contains("hidden") } == true)
    }

    @Test func `both databases have the same columns, and a copy includes all tables`() async throws {
        try await withPostgres { url in
            let postgres = try await open(url)
            let sqlite = try SQLiteStorage.inMemory()
            let tables = try await sqlite.read { db in
                try db.rows(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite*' AND name NOT GLOB 'grdb*'",
                    []
                ).map { try $0.value("name") as String }
            }
            #expect(Set(tables) == Set(StoredTable.all.map(\.name)))
            for table in tables {
                let expected = try await sqlite.read { db in
                    try db.rows(
                        "SELECT name, \"notnull\" OR pk > 0 AS required FROM pragma_table_info('\(table)')", []
                    ).map {
                        (try $0.value("name") as String).lowercased() + (try $0.value("required") ? " NOT NULL" : "")
                    }
                }
                let found = try await postgres.read { db in
                    try db.rows(
                        """
                        SELECT attname::TEXT AS name, attnotnull AS required FROM pg_attribute
                        WHERE attrelid = '\(table)'::regclass AND attnum > 0
                        """, []
                    ).map { (try $0.value("name") as String) + (try $0.value("required") ? " NOT NULL" : "") }
                }
                #expect(Set(found) == Set(expected), "\(table)")
            }
            try await postgres.close()
        }
    }
}

@Suite("Statements for PostgreSQL") struct PostgresStatementTests {
    @Test func `parameters are numbered`() {
        #expect(SQLText.numbered("SELECT 1") == "SELECT 1")
        #expect(SQLText.numbered("a = ? AND b IN (?, ?)") == "a = $1 AND b IN ($2, $3)")
        #expect(SQLText.numbered("a = ?1 OR b = ?2 OR c = ?1") == "a = $1 OR b = $2 OR c = $1")
    }

    private static let urls: [(String, Bool)] = [
        ("postgresql://", true), ("postgres://db/confab", true),
        ("postgresql://a:b@[::1]:5432/c?sslmode=require", true),
        ("postgresql://a:b%40c@host/c", true), ("postgresql:///c?host=/run/postgresql", true),
        ("postgresql://confab:hunter2/confab", false), ("postgresql://db:5432/confab", false),
        ("postgresql://confab@db:5432/confab", true), ("postgresql://confab@a,b:5433/confab", true),
        ("postgresql://a:b@c@host/c", false), ("postgresql://a:b/c@host/d", false), ("postgresql://a b", false),
        ("mysql://host", false), ("host=x password=y", false), ("", false),
    ]

    @Test(arguments: urls)
    func `a URL whose password could be taken for something else is rejected`(_ text: String, _ isValid: Bool) {
        #expect(PostgresURL.isValid(text) == isValid)
    }

    @Test func `a binary value is read by its type and size`() {
        func read(_ bytes: [UInt8], _ type: UInt32) -> SQLValue? {
            bytes.withUnsafeBufferPointer { SQLValue($0, type: type) }
        }
        #expect(read([1], 16) == .boolean(true))
        #expect(read([255, 255, 255, 255, 255, 255, 255, 254], 20) == .integer(-2))
        #expect(read([0, 0, 1, 0], 23) == .integer(256))
        #expect(read([0xc3, 0xa9], 25) == .text("é"))
        #expect(read([0, 255], 17) == .blob(Data([0, 255])))
        #expect(read([1], 20) == nil, "too short")
        #expect(read([0, 0, 0, 0, 0, 0, 0, 0], 701) == nil, "a floating-point number")
    }

    @Test func `an error has the code of its SQLSTATE`() {
        let expected: [StorageError.Code: [String]] = [
            .rejected: ["23505", "22021", "P0001"], .busy: ["40001", "40P01", "55P03", "57014", "0A000"],
            .unreachable: ["57P01", "57P03", "25006", "08006", "53300", "26000", "42P05"], .diskFull: ["53100"],
            .overloaded: ["53200"], .inputOutput: ["58030"], .corrupt: ["XX001", "XX002"],
            .notAccessible: ["28P01", "3F000", "3D000", "42501"], .other: ["42P01", "XX000", ""],
        ]
        for (code, states) in expected {
            for state in states {
                #expect(StorageError(PostgresError(state: state, text: "")).code == code, "\(state)")
            }
        }
    }
}
