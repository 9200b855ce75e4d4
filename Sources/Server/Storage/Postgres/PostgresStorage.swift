import Foundation
public import Signaling
import Synchronization
public import Wire

/// Storage in a PostgreSQL database, version 15 or later. It uses the same statements as ``SQLiteStorage``.
///
/// One thread writes, with group commit, and four threads read. They connect again when PostgreSQL has restarted. Only one
/// server uses a database at a time; commands work beside it.
public final class PostgresStorage: SQLStorage {
    /// Who opens the storage.
    public enum Role: Sendable {
        /// A server. No other server may use the database.
        case server
        /// A command of the operator, which may run beside a server.
        case command
    }

    /// The oldest supported version.
    static let minimumVersion = 150_000
    private static let readerCount = 4
    /// The class of the advisory lock that a server holds. The other half of its number is the schema's.
    private static let serverLock = 0x434F_4E46
    /// How long a row of the table `writer` is kept after the last transaction of its session.
    private static let writerAge = "30 days"

    let writer: GroupCommitWriter<StorageWrite>
    /// What the operator should know about the database, as sentences.
    let notes: [String]
    public let webhookSignal: WebhookSignal
    private let status: PostgresStatus
    private let writing: PostgresThreads
    private let reading: PostgresThreads

    /// Connects, and migrates the database to the current schema. Blocks, so call it only at startup.
    ///
    /// - Parameters:
    ///   - url: a connection URL, such as `postgresql://confab@db.example/confab?sslmode=verify-full`. TLS, passwords and several
    ///     hosts are libpq's.
    ///   - lockTimeout: how long to wait for another server that is stopping.
    /// - Throws: ``StorageError``: `.unreachable`, `.notAccessible`, `.newerSchema`, `.busy` if another server uses the database.
    public convenience init(
        url: SecretText, bounds: StorageBounds = StorageBounds(), role: Role = .command,
        lockTimeout: Duration = SQLiteStorage.defaultLockTimeout
    ) throws {
        try self.init(
            url: url, bounds: bounds, role: role, lockTimeout: lockTimeout, beforeTransaction: { _ in })
    }

    /// - Parameter beforeTransaction: for tests: called before each transaction of client changes, with their number.
    init(
        url: SecretText, bounds: StorageBounds = StorageBounds(), role: Role = .command,
        lockTimeout: Duration = SQLiteStorage.defaultLockTimeout,
        beforeTransaction: @escaping @Sendable (Int) async -> Void
    ) throws {
        let address = try PostgresAddress(url)
        notes = try Self.prepare(address)
        let (signal, status) = (WebhookSignal(), PostgresStatus())
        (webhookSignal, self.status) = (signal, status)
        let writing = PostgresThreads(count: 1, name: "postgres writer") {
            PostgresSession(address, status, isWriter: true) { connection in
                if role == .server { try Self.lockServer(connection) }
            }
        }
        self.writing = writing
        reading = PostgresThreads(count: Self.readerCount, name: "postgres reader") {
            PostgresSession(address, status, isWriter: false)
        }
        writer = GroupCommitWriter { changes in
            await beforeTransaction(changes.count)
            let bounds = bounds.current(signal)
            try await writing.run { session in
                try session.write { connection in for change in changes { try connection.apply(change, bounds) } }
            }
            signal.announce(Set(changes.compactMap(\.webhookProject)))
        }
        try connect(timeout: lockTimeout)
    }

    /// Checks the server and migrates the database, on a connection that is closed afterwards.
    ///
    /// - Returns: what the operator should know.
    private static func prepare(_ address: PostgresAddress) throws -> [String] {
        let connection = try PostgresConnection(address)
        guard connection.serverVersion >= minimumVersion else {
            throw StorageError(
                .notAccessible, "PostgreSQL is older than version \(minimumVersion / 10_000). Upgrade it.")
        }
        try PostgresMigrations.run(on: connection)
        try connection.run("DELETE FROM writer WHERE usedAt < now() - INTERVAL '\(writerAge)'", [])
        let fsync: String? = try connection.rows("SELECT current_setting('fsync') AS fsync", []).first?.value("fsync")
        return fsync == "on"
            ? [] : ["PostgreSQL runs with fsync = off, so a power failure can damage the database. Turn it on."]
    }

    /// Takes the lock that keeps other servers out. It is released when the connection ends.
    private static func lockServer(_ connection: PostgresConnection) throws {
        let isFree: Bool? = try connection.rows(
            "SELECT pg_try_advisory_lock(\(serverLock), hashtext(current_schema())) AS free", []
        ).first?.value("free")
        guard isFree == true else {
            throw StorageError(
                .busy, "Another server uses this PostgreSQL database. Stop it, or use another database or schema.")
        }
    }

    private func connect(timeout: Duration) throws {
        let end = ContinuousClock.now + timeout
        while true {
            do {
                return try writing.runBlocking { session in _ = try session.connect() }
            } catch let error as StorageError where error.code == .busy && ContinuousClock.now < end {
                usleep(20_000)
            } catch {
                status.isClosing.store(true, ordering: .relaxed)
                let (writing, reading) = (writing, reading)
                Task {
                    await writing.close()
                    await reading.close()
                }
                throw error
            }
        }
    }

    public var isReachable: Bool { status.isReachable.load(ordering: .relaxed) }

    func read<T: Sendable>(_ body: @escaping @Sendable (PostgresConnection) throws -> T) async throws -> T {
        try Task.checkCancellation()
        return try await reading.run { try $0.read(body) }
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (PostgresConnection) throws -> T) async throws -> T {
        try await writing.run { try $0.write(body) }
    }

    public func changeCounter() async throws -> Int64 {
        // Ask the writer, so that `isReachable` is current even if nothing is written.
        try await writing.run { session in
            try session.read { connection in
                try connection.rows("SELECT bans FROM changeCounter", []).first?.value("bans") ?? 0
            }
        }
    }

    public func backup(to path: String) async throws {
        throw StorageError(
            .unsupported, "Confab does not back up PostgreSQL. Use pg_dump, or the backups of your PostgreSQL server.")
    }

    public func close() async throws {
        await writer.close()
        status.isClosing.store(true, ordering: .relaxed)
        await writing.close()
        await reading.close()
    }

    func execute(_ sql: String) async throws {
        try await write { try $0.command(sql) }
    }
}
