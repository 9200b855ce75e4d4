import Dispatch
import Foundation
import GRDB
public import Signaling
import Synchronization
public import Wire

/// Storage in an SQLite file, `confab.sqlite` in the data directory.
///
/// Several processes may open it at the same time, so that commands work while the server runs. Writes do not block reads
/// (WAL). The empty file `confab.sqlite.opening` next to it is the lock for opening. `Migrations.swift` defines the tables,
/// and `SQLTransaction+Statements.swift` and its neighbors contain the statements.
public final class SQLiteStorage: SQLStorage {
    /// The file's name in the data directory.
    public static let fileName = DataFiles.database
    /// How long to wait for a writer in another process. Confab's transactions take milliseconds; a longer one is
    /// probably an open `sqlite3` shell.
    public static let defaultLockTimeout: Duration = .seconds(5)

    let writer: GroupCommitWriter<StorageWrite>
    /// What the operator should know about how the database was opened, as sentences.
    let notes: [String]
    private let database: any DatabaseWriter
    public let webhookSignal: WebhookSignal

    /// Opens the storage in `directory` and migrates it to the current schema. Creates the directory (mode 0700) and the file
    /// (mode 0600) if they are missing. Blocks on the disk, so call it only at startup.
    ///
    /// - Throws: ``StorageError``: `.newerSchema`, `.notAccessible`, `.corrupt`, `.diskFull`, `.busy`.
    public convenience init(
        directory: String, bounds: StorageBounds = StorageBounds(),
        lockTimeout: Duration = SQLiteStorage.defaultLockTimeout
    ) throws {
        try self.init(
            directory: directory, bounds: bounds, lockTimeout: lockTimeout, beforeTransaction: { _ in })
    }

    /// - Parameter beforeTransaction: for tests: called before each transaction of client changes, with their number.
    ///   The transaction starts when this function returns.
    convenience init(
        directory: String, bounds: StorageBounds = StorageBounds(),
        lockTimeout: Duration = SQLiteStorage.defaultLockTimeout, safety: MigrationSafety = MigrationSafety(),
        beforeTransaction: @escaping @Sendable (Int) async -> Void
    ) throws {
        let (pool, copy) = try Self.open(in: directory, lockTimeout: lockTimeout, safety)
        self.init(
            pool, bounds: bounds,
            notes: copy.map { ["The database was upgraded. A copy from before the upgrade is in \($0)."] } ?? [],
            beforeTransaction: beforeTransaction)
    }

    /// Creates storage in memory, for tests. Do not use it after closing it: GRDB's `DatabaseQueue` then traps,
    /// whereas the `DatabasePool` of a file throws.
    static func inMemory() throws -> SQLiteStorage {
        let database = try DatabaseQueue(configuration: configuration(lockTimeout: defaultLockTimeout))
        try Migrations.all.migrate(database)
        return SQLiteStorage(database, bounds: StorageBounds(), notes: [], beforeTransaction: { _ in })
    }

    private init(
        _ database: any DatabaseWriter, bounds: StorageBounds, notes: [String],
        beforeTransaction: @escaping @Sendable (Int) async -> Void
    ) {
        (self.database, self.notes) = (database, notes)
        let signal = WebhookSignal()
        webhookSignal = signal
        writer = GroupCommitWriter { changes in
            await beforeTransaction(changes.count)
            try await StorageError.translating {
                let bounds = bounds.current(signal)
                try await database.write { db in
                    for change in changes { try db.apply(change, bounds) }
                }
            }
            signal.announce(Set(changes.compactMap(\.webhookProject)))
        }
    }

    private static func open(
        in directory: String, lockTimeout: Duration, _ safety: MigrationSafety
    ) throws -> (pool: DatabasePool, copy: String?) {
        try StorageFiles.createDirectory(directory)
        let path = (directory as NSString).appendingPathComponent(fileName)
        // Use a lock: if two processes switch a new file to WAL at the same time, SQLite returns an error to one of
        // them without waiting.
        return try StorageFiles.withLock(path + ".opening", timeout: lockTimeout) {
            // Create the file here, because SQLite would use the umask. The -wal and -shm files inherit the mode.
            _ = try StorageFiles.createFile(path)
            return try StorageError.translating {
                let pool = try DatabasePool(path: path, configuration: configuration(lockTimeout: lockTimeout))
                try pool.writeWithoutTransaction { db in
                    // Set `synchronous` back to FULL: creating the pool has set it to NORMAL, with which a commit in
                    // WAL mode may not survive a power failure.
                    try db.execute(sql: "PRAGMA synchronous = FULL")
                }
                return (pool, try Migrations.run(on: pool, safety))
            }
        }
    }

    private static func configuration(lockTimeout: Duration) -> Configuration {
        var configuration = Configuration()
        configuration.label = "confab.storage"
        configuration.busyMode = .timeout(TimeInterval(lockTimeout.wholeMilliseconds) / 1000)
        configuration.foreignKeysEnabled = true
        configuration.prepareDatabase { db in
            // Overwrite deleted chat messages instead of only unlinking their pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
        }
        return configuration
    }

    public func changeCounter() async throws -> Int64 {
        // Use the writing connection: the counter of a connection ignores its own commits, so the commits of this process do
        // not look like those of another. https://www.sqlite.org/pragma.html#pragma_data_version
        try await StorageError.translating {
            try await database.writeWithoutTransaction { db in
                try Int64.fetchOne(db, sql: "PRAGMA data_version") ?? 0
            }
        }
    }

    public func close() async throws {
        await writer.close()
        let database = database
        try await StorageError.translating {
            try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
                // Close on a dispatch queue: closing waits for running reads and writes, which must not block the
                // cooperative thread pool.
                DispatchQueue.global().async { done.resume(with: Result { try database.close() }) }
            }
        }
    }

    func execute(_ sql: String) async throws {
        try await write { try $0.execute(sql: sql) }
    }

    /// Returns the value of a pragma of the writing connection, for tests.
    func pragma(_ name: String) async throws -> String? {
        try await StorageError.translating {
            try await database.writeWithoutTransaction { db in try String.fetchOne(db, sql: "PRAGMA \(name)") }
        }
    }

    /// Keeps other processes and other `SQLiteStorage` objects from writing while `body` runs, for tests.
    func holdLock(_ body: @escaping @Sendable () -> Void) async throws {
        try await write { db in
            try db.execute(sql: "DELETE FROM block WHERE 0")
            body()
        }
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await StorageError.translating { try await database.read(body) }
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await StorageError.translating { try await database.write(body) }
    }
}

extension SQLiteStorage {
    public func backup(to path: String) async throws {
        guard try StorageFiles.createFile(path) else {
            throw StorageError(.targetExists, "\(path) already exists. Remove it first, or choose another file.")
        }
        do {
            // Copy in one step within one read transaction: the copy is consistent and does not block writers. A copy in
            // several steps restarts each time another process writes, and might never finish.
            try await read { try $0.copy(to: path) }
        } catch {
            // Remove the partial backup. This call created these files, so no other data is lost.
            for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
            throw error
        }
    }
}

extension Database {
    /// Copies the database to an empty file.
    func copy(to path: String) throws {
        let target = try DatabaseQueue(path: path)
        try target.writeWithoutTransaction { db in
            try backup(to: db)
            // Turn off WAL mode, which the copy inherits from its source. Without WAL, it is a single file that also
            // works on a read-only disk.
            try db.execute(sql: "PRAGMA journal_mode = DELETE")
        }
        try target.close()
    }
}
