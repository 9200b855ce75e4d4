import Foundation
import Synchronization

/// The right of one server to write to a database. Used on the writer's thread.
///
/// An advisory lock keeps a second server out as long as PostgreSQL knows the first one's connection. Once PostgreSQL has given that
/// connection up, for example after an outage of the network, a second server can take over. It then writes a new life and its ID
/// into the table `owner`. Each transaction of a server that writes checks this row, so the first server can no longer write, and
/// stops.
final class PostgresOwner {
    /// The class of the advisory lock that a server holds. The other half of its number is the schema's.
    private static let lock = 0x434F_4E46
    /// How long to wait for the lock of this server's earlier connection after that was ended.
    private static let lockWait: Duration = .seconds(1)

    private let status: PostgresStatus
    /// Identifies this process.
    private let id: Data
    /// The number of this server among all that have owned the database; nil until it has taken over.
    private var life: Int64?

    init(_ status: PostgresStatus, id: Data) { (self.status, self.id) = (status, id) }

    /// Takes the lock on a new connection, which releases it when it ends, and records the connection.
    ///
    /// - Throws: `.busy` if another server holds the lock, `.fenced` if another one has owned the database since.
    func claim(_ connection: PostgresConnection) throws {
        if try !tryLock(connection) {
            try endEarlierConnection(connection)
            guard try waitForLock(connection) else {
                throw StorageError(
                    .busy, "Another server uses this PostgreSQL database. Stop it, or use another database or schema.")
            }
        }
        let made = Data.random(16)
        life = try connection.transaction(PostgresConnection.beginAlone) { try record(made, connection) }
        status.writerConnection.withLock { $0 = made }
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

    private func tryLock(_ connection: PostgresConnection) throws -> Bool {
        try connection.rows("SELECT pg_try_advisory_lock(\(Self.lock), hashtext(current_schema())) AS free", []).first?
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

    /// Records the number of a transaction as its first change, if this server still owns the database. The row of the owner
    /// stays locked until the commit, so no other server can take over in between.
    ///
    /// - Throws: `.fenced` if it does not.
    func mark(_ number: Int64, _ connection: PostgresConnection) throws {
        let marked = try connection.run(
            """
            INSERT INTO writer (id, number)
            SELECT CAST(?1 AS BYTEA), CAST(?2 AS BIGINT) WHERE EXISTS (
                SELECT 1 FROM owner WHERE server = CAST(?1 AS BYTEA) AND life = CAST(?3 AS BIGINT) FOR SHARE)
            ON CONFLICT (id) DO UPDATE SET number = excluded.number, usedAt = now()
            """, [id, number, life ?? 0])
        guard marked > 0 else { throw StorageError.fenced }
    }
}

extension StorageError {
    static let fenced = StorageError(
        .fenced,
        "Another server has taken over the PostgreSQL database. Run only one server with it. This one has to stop.")
}

extension Data {
    /// Returns random bytes.
    static func random(_ count: Int) -> Data {
        var random = SystemRandomNumberGenerator()
        return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }
}
