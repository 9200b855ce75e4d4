public import Cluster
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
        /// A node of a cluster, in the life that the ledger has given it. All servers that use the database must be nodes.
        case node(NodeTag)
        /// A command of the operator, which may run beside a server.
        case command
        /// A copy of the whole database. No server may use it, and statements may take as long as they need.
        case copy

        fileprivate var holder: PostgresOwner.Holder? {
            switch self {
            case .server, .copy: .server
            case .node(let tag): .life(tag)
            case .command: nil
            }
        }

        fileprivate var timeouts: PostgresTimeouts {
            switch self {
            case .server, .command: .standard
            case .node: .node
            case .copy: .patient
            }
        }
    }

    /// The oldest supported version.
    static let minimumVersion = 150_000
    private static let readerCount = 4
    /// How long a row of the table `writer` is kept after the last transaction of its session.
    private static let writerAge = "30 days"

    let writer: GroupCommitWriter<StorageWrite>
    /// What the operator should know about the database, as sentences.
    let notes: [String]
    public let webhookSignal: WebhookSignal
    /// The life of the node whose storage this is; nil without a cluster.
    let life: NodeTag?
    private let status: PostgresStatus
    private let writing: PostgresThreads
    private let reading: PostgresThreads

    /// Connects, and migrates the database to the current schema. Blocks, so call it only at startup.
    ///
    /// - Parameters:
    ///   - url: a connection URL, such as `postgresql://confab@db.example/confab?sslmode=verify-full`. TLS, passwords and several
    ///     hosts are libpq's.
    ///   - serverKey: the fingerprint of the key that makes the identities in the database; nil if it is not to be compared.
    ///   - lockTimeout: how long to wait for another server that is stopping.
    /// - Throws: ``StorageError``: `.unreachable`, `.notAccessible`, `.newerSchema`, `.busy` if another server uses the database.
    public convenience init(
        url: SecretText, bounds: StorageBounds = StorageBounds(), role: Role = .command, serverKey: Data? = nil,
        lockTimeout: Duration = SQLiteStorage.defaultLockTimeout
    ) throws {
        try self.init(
            url: url, bounds: bounds, role: role, serverKey: serverKey, lockTimeout: lockTimeout,
            beforeTransaction: { _ in })
    }

    /// - Parameters:
    ///   - status: for tests: with another pause between attempts.
    ///   - beforeTransaction: for tests: called before each transaction of client changes, with their number.
    init(
        url: SecretText, bounds: StorageBounds = StorageBounds(), role: Role = .command, serverKey: Data? = nil,
        lockTimeout: Duration = SQLiteStorage.defaultLockTimeout, status: PostgresStatus = PostgresStatus(),
        beforeTransaction: @escaping @Sendable (Int) async -> Void
    ) throws {
        let address = try PostgresAddress(url)
        notes = try Self.prepare(address)
        let signal = WebhookSignal()
        (webhookSignal, self.status) = (signal, status)
        life = if case .life(let tag) = role.holder { tag } else { nil }
        let writing = PostgresThreads(count: 1, name: "postgres writer") {
            PostgresSession(address, status, isWriter: true, holder: role.holder, timeouts: role.timeouts)
        }
        self.writing = writing
        reading = PostgresThreads(count: Self.readerCount, name: "postgres reader") {
            PostgresSession(address, status, isWriter: false, timeouts: role.timeouts)
        }
        writer = GroupCommitWriter { changes in
            await beforeTransaction(changes.count)
            let bounds = bounds.current(signal)
            try await writing.run { session in
                try session.write { connection in for change in changes { try connection.apply(change, bounds) } }
            }
            signal.announce(Set(changes.compactMap(\.webhookProject)))
        }
        do {
            try connect(timeout: lockTimeout)
            if let serverKey { try require(serverKey) }
        } catch {
            status.close()
            let reading = reading
            Task {
                await writing.close()
                await reading.close()
            }
            throw error
        }
    }

    /// Checks the server and migrates the database, on a connection that is closed afterwards.
    ///
    /// - Returns: what the operator should know.
    static func prepare(_ address: PostgresAddress) throws -> [String] {
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

    private func connect(timeout: Duration) throws {
        let end = ContinuousClock.now + timeout
        while true {
            do {
                return try writing.runBlocking { session in _ = try session.connect() }
            } catch let error as StorageError where error.code == .busy && ContinuousClock.now < end {
                _ = status.pause()
            }
        }
    }

    /// Compares the server key with that of the earlier servers of this database. With another one, every identity in it would be
    /// unknown to its owner.
    private func require(_ serverKey: Data) throws {
        let found = try writing.runBlocking { session in
            try session.write { connection in
                try connection.run("UPDATE owner SET serverKey = ? WHERE serverKey IS NULL", [serverKey])
                return try connection.serverKey()
            }
        }
        guard found == serverKey else { throw StorageError.otherServerKey }
    }

    /// Returns the fingerprint of the server key that made the identities in the database; nil if no server has used it.
    func serverKey() async throws -> Data? { try await read { try $0.serverKey() } }

    func setServerKey(_ fingerprint: Data) async throws {
        try await write { try $0.run("UPDATE owner SET serverKey = ?", [fingerprint]) }
    }

    public var isReachable: Bool { status.isReachable.load(ordering: .relaxed) }

    func read<T: Sendable>(_ body: @escaping @Sendable (PostgresConnection) throws -> T) async throws -> T {
        try Task.checkCancellation()
        return try await reading.run { try $0.read(body) }
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (PostgresConnection) throws -> T) async throws -> T {
        try await writing.run { try $0.write(body) }
    }

    /// Runs `body` on the connection that writes, in a transaction that changes no rows.
    func onWriter<T: Sendable>(_ body: @escaping @Sendable (PostgresConnection) throws -> T) async throws -> T {
        try await writing.run { session in try session.read(body) }
    }

    public func changeCounter() async throws -> Int64 {
        // Ask the writer, so that `isReachable` is current even if nothing is written.
        try await onWriter { try $0.rows("SELECT bans FROM changeCounter", []).first?.value("bans") ?? 0 }
    }

    public func backup(to path: String) async throws {
        throw StorageError(
            .unsupported, "Confab does not back up PostgreSQL. Use pg_dump, or the backups of your PostgreSQL server.")
    }

    public func close() async throws {
        status.close()
        await writer.close()
        await writing.close()
        await reading.close()
    }

    func execute(_ sql: String) async throws {
        try await write { try $0.command(sql) }
    }
}

extension PostgresConnection {
    fileprivate func serverKey() throws -> Data? {
        try rows("SELECT serverKey FROM owner", []).first?.optional("serverKey")
    }
}

extension StorageError {
    static let otherServerKey = StorageError(
        .notAccessible,
        """
        The identities in the database were made with another server key. Copy \(ServerKeyFile.fileName) and the project file from \
        the data directory of the server that used it.
        """)
}
