import Foundation
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

/// Only one server writes to a database, also after the network or PostgreSQL failed.
@Suite(
    "The server that owns a PostgreSQL database", .ownThreads,
    .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresOwnerTests: StorageFixtures {
    private func open(_ url: SecretText, _ role: PostgresStorage.Role = .server) async throws -> PostgresStorage {
        try await blocking { try PostgresStorage(url: url, role: role, lockTimeout: .zero) }
    }

    /// Makes PostgreSQL forget that the server's connection holds the lock, as after an outage of the network.
    private func loseLock(_ storage: PostgresStorage) async throws {
        try await storage.execute("SELECT pg_advisory_unlock_all()")
    }

    @Test func `a server that connects again ends its earlier connection, and no other one`() async throws {
        try await withPostgres { url in
            try await PostgresStorage(url: url).close()
            try await blocking {
                let address = try PostgresAddress(url)
                let (mine, other) = (
                    PostgresOwner(PostgresStatus(), id: .random(16)), PostgresOwner(PostgresStatus(), id: .random(16))
                )
                // PostgreSQL still knows the earlier connection, because nothing has closed it.
                let (earlier, later, third) = (
                    try PostgresConnection(address), try PostgresConnection(address), try PostgresConnection(address)
                )
                try mine.claim(earlier)
                #expect(throws: StorageError.self) { try other.claim(third) }
                try mine.claim(later)
                #expect(throws: StorageError.self) { try earlier.command("SELECT 1") }
                #expect(throws: StorageError.self) { try other.claim(third) }
                try later.command("SELECT 1")
            }
        }
    }

    @Test func `a server writes nothing after another one has taken over`() async throws {
        try await withPostgres { url in
            let first = try await open(url)
            try await first.commit([block(alice, bob)])
            try await loseLock(first)
            let second = try await open(url)
            await expect(.fenced) { try await first.commit([block(alice, carol)]) }
            await expect(.fenced) { try await first.addBan(Ban(subject: .identity(bob), reason: "", createdAt: now)) }
            try await second.commit([block(bob, carol)])
            #expect(try await second.person(alice, at: now).blocked == [bob])
            #expect(try await second.bans(at: now).isEmpty)
            try await first.close()
            try await second.close()
        }
    }

    @Test func `a server stops when it notices that another one has taken over`() async throws {
        try await withPostgres { url in
            let command = try await open(url, .command)
            let error = await #expect(throws: StorageError.self) {
                try await TestServer.run({
                    $0.storage.url = url
                    $0.storage.pollInterval = .milliseconds(20)
                }) { _ in
                    try await command.execute(
                        "UPDATE owner SET life = life + 1; SELECT pg_terminate_backend(process::INTEGER) FROM owner")
                    // Until the server has stopped.
                    let (end, never) = AsyncStream<Void>.makeStream()
                    for await _ in end {}
                    withExtendedLifetime(never) {}
                }
            }
            #expect(error?.code == .fenced)
            try await command.close()
        }
    }

    @Test func `after the writer has connected again, readers do too, and only to its server`() async throws {
        try await withPostgres { url in
            let (server, command) = (try await open(url), try await open(url, .command))
            #expect(try await server.bans(at: now).isEmpty)
            // A server that was replaced still has the row of an earlier connection.
            let status = PostgresStatus()
            status.writerConnection.withLock { $0 = .random(16) }
            let address = try PostgresAddress(url)
            let isRefused = try await blocking {
                let reader = PostgresSession(address, status, isWriter: false)
                do {
                    _ = try reader.read { try $0.rows("SELECT 1 AS one", []) }
                    return false
                } catch let error as StorageError {
                    return error.code == .unreachable
                }
            }
            #expect(isRefused)
            try await command.execute("SELECT pg_terminate_backend(process::INTEGER) FROM owner")
            try await server.commit([block(alice, bob)])
            #expect(try await server.person(alice, at: now).blocked == [bob])
            try await server.close()
            try await command.close()
        }
    }

    @Test func `a server with another server key is refused, and a copy keeps the key`() async throws {
        try await withPostgres { url in
            func open(_ key: String) async throws -> PostgresStorage {
                let key = ServerKeyFile.fingerprint(of: SecretText(key))
                return try await blocking {
                    try PostgresStorage(url: url, role: .server, serverKey: key, lockTimeout: .seconds(60))
                }
            }
            try await open("one").close()
            let error = await expect(.notAccessible) { _ = try await open("two") }
            #expect(error?.message.contains("server.key") == true)
            try await open("one").close()
        }
    }

    @Test func `the session does not depend on the defaults of the database`() async throws {
        try await withPostgres { url in
            let defaults = "%20-csynchronous_commit%3Dlocal%20-cdefault_transaction_isolation%3Dserializable"
            let storage = try await open(SecretText(url.revealed + defaults))
            func setting(_ name: String) async throws -> [String] {
                let sql = "SELECT current_setting('\(name)') AS value"
                return [
                    try await storage.read { try $0.rows(sql, []).first?.value("value") ?? "" },
                    try await storage.write { try $0.rows(sql, []).first?.value("value") ?? "" },
                ]
            }
            #expect(try await setting("synchronous_commit") == ["on", "on"])
            #expect(try await setting("transaction_isolation") == ["repeatable read", "read committed"])
            #expect(try await setting("statement_timeout") == ["10s", "10s"])
            try await storage.close()
            let copy = try await open(url, .copy)
            let timeout: String? = try await copy.read {
                try $0.rows("SELECT current_setting('statement_timeout') AS value", []).first?.value("value")
            }
            #expect(timeout == "0")
            try await copy.close()
        }
    }

    @Test func `a trigger works for an operator whose session has another search path`() async throws {
        try await withPostgres { url in
            let storage = try await open(url)
            let before = try await storage.changeCounter()
            let schema: String? = try await storage.read {
                try $0.rows("SELECT current_schema()::TEXT AS name", []).first?.value("name")
            }
            let name = try #require(schema)
            let operators = try #require(PostgresCluster.shared).url()
            try await blocking {
                let connection = try PostgresConnection(PostgresAddress(operators))
                try connection.command(
                    "INSERT INTO \(name).ban (address, reason, createdAt) VALUES ('203.0.113.9', '', 0)")
            }
            #expect(try await storage.changeCounter() != before)
            try await storage.close()
        }
    }
}
