import Cluster
import Foundation
import Synchronization

/// The right of a server to write to a database. Used on the writer's thread.
///
/// An advisory lock keeps a second server out until the first one stops, or as long as PostgreSQL knows its connection. Once PostgreSQL has given that
/// connection up, for example after an outage of the network, a second server can take over. It then writes a new life and its ID
/// into the table `owner`. Each transaction of a server that writes checks this row, so the first server can no longer write, and
/// stops.
///
/// The nodes of a cluster share that lock, so they keep out a server without a cluster and it keeps out them. Each transaction of a
/// node checks the row of its life in the table `node` instead, which another node may have fenced (`PostgresLedger`).
final class PostgresOwner {
    /// In whose right a process writes.
    enum Holder: Hashable, Sendable {
        /// The only server of the database.
        case server
        /// A life of a node in a cluster.
        case life(NodeTag)
    }

    /// The class of the advisory lock that a server holds. The other half of its number is the schema's.
    private static let lock = 0x434F_4E46
    /// How long to wait for the lock of this server's earlier connection after that was ended.
    private static let lockWait: Duration = .seconds(1)

    private let status: PostgresStatus
    /// Identifies this process.
    private let id: Data
    private let holder: Holder
    /// The number of this server among all that have owned the database; nil until it has taken over. Not used in a cluster.
    private var life: Int64?

    init(_ status: PostgresStatus, id: Data, _ holder: Holder = .server) {
        (self.status, self.id, self.holder) = (status, id, holder)
    }

    /// Takes the lock on a new connection, which releases it when it ends, and records the connection.
    ///
    /// - Throws: `.busy` if another server holds the lock, `.fenced` if another one has owned the database since, or if the life was
    ///   fenced.
    func claim(_ connection: PostgresConnection) throws {
        let made = Data.random(16)
        switch holder {
        case .server:
            try lock(connection)
            life = try connection.transaction(PostgresConnection.beginAlone) { try record(made, connection) }
        case .life(let tag):
            guard try tryLock(connection, "pg_try_advisory_lock_shared") else { throw StorageError.ownedByOne }
            try connection.transaction(PostgresConnection.beginAlone) { try record(made, tag, connection) }
            connection.life = tag.life
        }
        status.writerConnection.withLock { $0 = made }
    }

    private func lock(_ connection: PostgresConnection) throws {
        guard try !tryLock(connection) else { return }
        try endEarlierConnection(connection)
        guard try waitForLock(connection) else {
            throw StorageError(
                .busy, "Another server uses this PostgreSQL database. Stop it, or use another database or schema.")
        }
    }

    /// Releases the lock before the connection is closed. PostgreSQL notices the end of a connection only a moment later, and would refuse
    /// a server that starts meanwhile. If this fails, the lock ends with the connection.
    func release(_ connection: PostgresConnection) {
        try? connection.command("SELECT pg_advisory_unlock_all()")
    }

    /// Returns whether the writer's connection has recorded itself in the database that a connection leads to.
    static func hasRecorded(_ made: Data, _ connection: PostgresConnection) throws -> Bool {
        try connection.rows(
            """
            SELECT EXISTS (SELECT 1 FROM owner WHERE connection = ?1) OR EXISTS (SELECT 1 FROM node WHERE connection = ?1) AS found
            """, [made]
        ).first?.value("found") ?? false
    }

    /// Writes the connection into the row of the node's life.
    private func record(_ made: Data, _ tag: NodeTag, _ connection: PostgresConnection) throws {
        let changed = try connection.run(
            "UPDATE node SET connection = ? WHERE node = ? AND life = ? AND NOT fenced",
            [made, Int64(tag.node), Int64(tag.life)])
        guard changed > 0 else { throw StorageError.fenced(tag) }
    }

    /// Writes the connection into the row of the owner: with the next life the first time, and only for the same life later.
    private func record(_ made: Data, _ connection: PostgresConnection) throws -> Int64 {
        let assignments = "server = ?1, connection = ?2, process = pg_backend_pid(), since = now()"
        guard let life else {
            try connection.run("UPDATE owner SET life = life + 1, \(assignments)", [id, made])
            return try connection.rows("SELECT life FROM owner", []).first?.value("life") ?? 0
        }
        let changed = try connection.run(
            "UPDATE owner SET \(assignments) WHERE server = ?1 AND life = ?3", [id, made, life])
        guard changed > 0 else { throw StorageError.fenced }
        return life
    }

    private func tryLock(
        _ connection: PostgresConnection, _ function: String = "pg_try_advisory_lock"
    ) throws -> Bool {
        try connection.rows("SELECT \(function)(\(Self.lock), hashtext(current_schema())) AS free", []).first?
            .value("free") ?? false
    }

    private func waitForLock(_ connection: PostgresConnection) throws -> Bool {
        guard life != nil else { return false }
        let end = ContinuousClock.now + Self.lockWait
        while ContinuousClock.now < end {
            if try tryLock(connection) { return true }
            guard status.pause() else { return false }
        }
        return false
    }

    /// Ends this process's earlier connection, which PostgreSQL may keep after the network failed. Other servers' are not touched:
    /// the process that holds the lock has to be the one that this server has recorded.
    private func endEarlierConnection(_ connection: PostgresConnection) throws {
        guard let life else { return }
        _ = try connection.rows(
            """
            SELECT pg_terminate_backend(pid) AS ended FROM pg_locks JOIN owner ON pid = process
            WHERE locktype = 'advisory' AND classid = \(Self.lock) AND granted AND server = ? AND life = ?
                AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """, [id, life])
    }

    /// Records the number of a transaction as its first change, if this process may still write. The row that says so stays locked
    /// until the commit: no other server can take over in between, and a fence waits.
    ///
    /// - Throws: `.fenced` if it may not.
    func mark(_ number: Int64, _ connection: PostgresConnection) throws {
        let (row, key, error): (String, [(any SQLArgument)?], StorageError) =
            switch holder {
            case .server:
                (
                    "SELECT 1 FROM owner WHERE server = CAST(?1 AS BYTEA) AND life = CAST(?3 AS BIGINT) FOR SHARE",
                    [life ?? 0], StorageError.fenced
                )
            // A lock that only a change of the key conflicts with. `fenced` is part of a key, so the fence waits for it, and a
            // renewal of the lease does not.
            case .life(let tag):
                (
                    """
                    SELECT 1 FROM node WHERE life = CAST(?3 AS BIGINT) AND node = CAST(?4 AS BIGINT) AND NOT fenced FOR KEY SHARE
                    """, [Int64(tag.life), Int64(tag.node)], StorageError.fenced(tag)
                )
            }
        let marked = try connection.run(
            """
            INSERT INTO writer (id, number)
            SELECT CAST(?1 AS BYTEA), CAST(?2 AS BIGINT) WHERE EXISTS (\(row))
            ON CONFLICT (id) DO UPDATE SET number = excluded.number, usedAt = now()
            """, [id, number] + key)
        guard marked > 0 else { throw error }
    }
}

extension StorageError {
    static let fenced = StorageError(
        .fenced,
        "Another server has taken over the PostgreSQL database. Run only one server with it. This one has to stop.")

    /// - Parameter tag: the life that was fenced.
    static func fenced(_ tag: NodeTag) -> StorageError {
        StorageError(
            .fenced,
            "Node \(tag.node) was declared dead (life \(tag.life)): it did not renew its lease in time. It stores nothing more, and "
                + "has to begin a new life.")
    }

    static let ownedByOne = StorageError(
        .busy,
        "A server that is not part of the cluster uses this PostgreSQL database. Stop it, or use another database or schema."
    )
}

extension Data {
    /// Returns random bytes.
    static func random(_ count: Int) -> Data {
        var random = SystemRandomNumberGenerator()
        return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
}
