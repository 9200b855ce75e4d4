import Foundation
import Signaling
import Testing
import Wire

@testable import Server

/// Helpers for the storage suites. They are in a protocol, so other suites can use the same names for other helpers.
protocol StorageFixtures {}

extension StorageFixtures {
    var now: Timestamp { Timestamp(milliseconds: 1_700_000_000_000) }
    var alice: IdentityID { IdentityID(high: 1, low: 1) }
    var bob: IdentityID { IdentityID(high: 1, low: 2) }
    var carol: IdentityID { IdentityID(high: .max, low: 3) }

    func person(_ number: Int) -> IdentityID { IdentityID(high: 2, low: UInt64(number)) }

    func block(_ owner: IdentityID, _ blocked: IdentityID, at time: Timestamp? = nil) -> Change {
        .block(owner: owner, blocked: blocked, at: time ?? now)
    }

    func report(lines: [String] = [], at time: Timestamp? = nil) -> Report {
        Report(
            match: MatchID(high: .max, low: 0), by: alice, against: bob, reason: "rude",
            lines: lines.map { ChatLine(from: bob, text: $0, at: (time ?? now) - .seconds(5)) }, createdAt: time ?? now)
    }

    /// Returns a trigger that makes the database reject blocks of `id`.
    func refusing(_ id: IdentityID) -> String {
        """
        CREATE TRIGGER refuse BEFORE INSERT ON block WHEN NEW.blocked = X'\(id)'
        BEGIN SELECT RAISE(ABORT, 'refused'); END
        """
    }

    func withDirectory(_ body: (String) async throws -> Void) async throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "confab-storage-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: url) }
        try await body(url.path(percentEncoded: false))
    }

    /// Runs `body` with SQLite, and then with PostgreSQL if it is installed.
    func withStorage(
        _ bounds: StorageBounds = StorageBounds(), _ body: (any Storage) async throws -> Void
    ) async throws {
        try await withDatabases(bounds) { open in
            let storage = try await open()
            try await body(storage)
            try await storage.close()
        }
    }

    /// Runs `body` with an empty SQLite database, and then with a PostgreSQL database if it is installed. The function that
    /// `body` gets opens the database, also again after it was closed, or twice.
    func withDatabases(
        _ bounds: StorageBounds = StorageBounds(),
        _ body: (_ open: @Sendable () async throws -> any SQLStorage) async throws -> Void
    ) async throws {
        try await withDirectory { directory in
            try await body { try SQLiteStorage(directory: directory, bounds: bounds) }
        }
        try await withPostgres { url in
            try await body { try await blocking { try PostgresStorage(url: url, bounds: bounds) } }
        }
    }

    /// Runs `body` with the URL of an empty PostgreSQL schema. Does nothing if PostgreSQL is not installed.
    func withPostgres(_ body: (SecretText) async throws -> Void) async throws {
        guard PostgresCluster.isInstalled else { return }
        do {
            try await body(blocking { try #require(PostgresCluster.shared).newSchema() })
        } catch {
            Issue.record(error, "with PostgreSQL")
            throw error
        }
    }

    /// Makes a database reject rows of a table.
    ///
    /// - Parameter condition: which ones, in terms of `NEW`.
    func refuse(_ table: String, when condition: String = "TRUE", in storage: any SQLStorage) async throws {
        guard storage is PostgresStorage else {
            return try await storage.execute(
                """
                CREATE TRIGGER refuse BEFORE INSERT ON \(table) WHEN \(condition)
                BEGIN SELECT RAISE(ABORT, 'refused'); END
                """)
        }
        try await storage.execute(
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON \(table) FOR EACH ROW WHEN (\(condition)) EXECUTE FUNCTION refuse();
            """)
    }

    func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @discardableResult
    func expect(
        _ code: StorageError.Code, at location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async -> StorageError? {
        let error = await #expect(throws: StorageError.self, sourceLocation: location) { try await body() }
        #expect(error?.code == code, sourceLocation: location)
        return error
    }

    func until(_ what: String, _ condition: () async throws -> Bool) async throws {
        try await eventually { try await condition() ? nil : "timed out: \(what)" }
    }
}

/// A gate that records the sizes of transactions, and delays transactions until it is opened.
actor StorageGate {
    private(set) var sizes: [Int] = []
    private var isOpen = false
    private var held: [CheckedContinuation<Void, Never>] = []

    func enter(_ size: Int) async {
        sizes.append(size)
        if !isOpen { await withCheckedContinuation { held.append($0) } }
    }

    func open() {
        isOpen = true
        for continuation in held { continuation.resume() }
        held = []
    }
}

/// Runs a function that blocks outside of the cooperative pool.
func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { done in
        DispatchQueue.global().async { done.resume(with: Result { try body() }) }
    }
}
