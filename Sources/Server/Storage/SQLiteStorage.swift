import Dispatch
import Foundation
import GRDB
public import Signaling
public import Wire

/// Storage in one SQLite file, `confab.sqlite` in the data directory.
///
/// Several processes may have it open: operators' commands work while the server runs. Reads go on while something is
/// written (WAL). An empty `confab.sqlite.opening` beside it is the lock under which it is opened. What the
/// tables look like is in `Migrations.swift`, the statements are in `Database+Statements.swift` and its neighbours.
public final class SQLiteStorage: Storage {
    /// The file's name in the data directory.
    public static let fileName = "confab.sqlite"
    /// How long to wait for another process that writes. Its transactions take milliseconds; one that takes this long
    /// is somebody's open `sqlite3` shell.
    public static let defaultBusyTimeout: Duration = .seconds(5)

    let writer: GroupCommitWriter<Write>
    private let pool: DatabasePool

    /// Opens the storage in `directory`, making it (mode 0700) and the file (mode 0600) when they are not there, and
    /// brings the file up to date. It waits for the disk, so call it while starting.
    ///
    /// - Throws: ``StorageError``: `.newerSchema`, `.notAccessible`, `.corrupt`, `.busy`.
    public convenience init(
        directory: String, bounds: StorageBounds = StorageBounds(),
        busyTimeout: Duration = SQLiteStorage.defaultBusyTimeout
    ) throws {
        try self.init(
            directory: directory, bounds: bounds, busyTimeout: busyTimeout, beforeTransaction: { _ in })
    }

    /// - Parameter beforeTransaction: for tests, told of each transaction of `commit` and how many changes it holds.
    ///   The transaction begins when it returns.
    init(
        directory: String, bounds: StorageBounds = StorageBounds(),
        busyTimeout: Duration = SQLiteStorage.defaultBusyTimeout,
        beforeTransaction: @escaping @Sendable (Int) async -> Void
    ) throws {
        let pool = try Self.open(in: directory, busyTimeout: busyTimeout)
        self.pool = pool
        writer = GroupCommitWriter { changes in
            await beforeTransaction(changes.count)
            try await StorageError.translating {
                try await pool.write { db in
                    for change in changes { try db.apply(change, bounds) }
                }
            }
        }
    }

    private static func open(in directory: String, busyTimeout: Duration) throws -> DatabasePool {
        try StorageFiles.createDirectory(directory)
        let path = (directory as NSString).appendingPathComponent(fileName)
        // One at a time: of two processes that switch a new file to WAL, SQLite fails one without waiting.
        return try StorageFiles.withLock(path + ".opening", timeout: busyTimeout) {
            // Before SQLite does, which would take the mode from the umask. Its -wal and -shm files copy this one's.
            _ = try StorageFiles.createFile(path)
            return try StorageError.translating {
                let pool = try DatabasePool(path: path, configuration: configuration(busyTimeout: busyTimeout))
                try pool.writeWithoutTransaction { db in
                    // Only now: making the pool set NORMAL, with which a commit in WAL mode may not survive a power
                    // cut.
                    try db.execute(sql: "PRAGMA synchronous = FULL")
                }
                try Migrations.run(on: pool)
                return pool
            }
        }
    }

    private static func configuration(busyTimeout: Duration) -> Configuration {
        var configuration = Configuration()
        configuration.label = "confab.storage"
        configuration.busyMode = .timeout(TimeInterval(busyTimeout.wholeMilliseconds) / 1000)
        configuration.foreignKeysEnabled = true
        configuration.prepareDatabase { db in
            // Deleted chat lines are overwritten, not just unlinked.
            try db.execute(sql: "PRAGMA secure_delete = ON")
        }
        return configuration
    }

    public func commit(_ changes: [Change]) async throws { try await writer.commit(changes.map { .change($0) }) }

    public func person(_ id: IdentityID, at now: Timestamp) async throws -> PersonRecord {
        try await read { try $0.person(id, at: now) }
    }

    public func bans(at now: Timestamp) async throws -> [Ban] {
        try await read { try $0.bans(at: now) }
    }

    public func addBan(_ ban: Ban) async throws {
        try await write { try $0.addBan(ban) }
    }

    @discardableResult
    public func removeBan(_ subject: BanSubject) async throws -> Bool {
        try await write { try $0.removeBan(subject) }
    }

    public func reports(includingClosed: Bool, limit: Int) async throws -> [StoredReport] {
        try await read { try $0.reports(includingClosed: includingClosed, limit: limit) }
    }

    public func report(id: Int64) async throws -> StoredReport? {
        try await read { try $0.report(id: id) }
    }

    @discardableResult
    public func closeReport(id: Int64, at now: Timestamp) async throws -> Bool {
        try await write { try $0.closeReport(id: id, at: now) }
    }

    @discardableResult
    public func deleteReports(olderThan limit: Timestamp) async throws -> Int {
        try await write { try $0.deleteReports(olderThan: limit) }
    }

    public func changeCounter() async throws -> Int64 {
        // On the connection that writes, because a connection does not count its own commits: those of this process
        // then never look like somebody else's. https://www.sqlite.org/pragma.html#pragma_data_version
        try await StorageError.translating {
            try await pool.writeWithoutTransaction { db in
                try Int64.fetchOne(db, sql: "PRAGMA data_version") ?? 0
            }
        }
    }

    public func close() async throws {
        await writer.close()
        let pool = pool
        try await StorageError.translating {
            try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
                // It waits for reads and writes under way, which no thread of the cooperative pool should do.
                DispatchQueue.global().async { done.resume(with: Result { try pool.close() }) }
            }
        }
    }

    /// For tests: puts the file into states that this program never makes.
    func execute(_ sql: String) async throws {
        try await write { try $0.execute(sql: sql) }
    }

    /// For tests: the value of a pragma of the connection that writes.
    func pragma(_ name: String) async throws -> String? {
        try await StorageError.translating {
            try await pool.writeWithoutTransaction { db in try String.fetchOne(db, sql: "PRAGMA \(name)") }
        }
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await StorageError.translating { try await pool.read(body) }
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await StorageError.translating { try await pool.write(body) }
    }
}

extension SQLiteStorage {
    public func backup(to path: String) async throws {
        guard try StorageFiles.createFile(path) else {
            throw StorageError(.targetExists, "There is a file at \(path) already; name a new one, or remove it first.")
        }
        do {
            // Inside one read transaction and in one step: the copy is of one moment, and writers do not wait for it.
            // The other way, step by step, starts again each time another process writes, possibly for ever.
            try await read { source in
                let target = try DatabaseQueue(path: path)
                try target.writeWithoutTransaction { db in
                    try source.backup(to: db)
                    // The copy says WAL, like its source; without it the backup is one file, on a read-only disk too.
                    try db.execute(sql: "PRAGMA journal_mode = DELETE")
                }
                try target.close()
            }
        } catch {
            // This call made these files, so nobody else's are removed. Half a backup must not look like one.
            for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
            throw error
        }
    }
}
