import Foundation
import Synchronization

/// A connection that is made again when it fails, and what to do about the transaction that was under way. Used on one thread.
final class PostgresSession {
    /// The first pause after a failed attempt to connect. It is doubled up to the longest of the timeouts.
    private static let firstPause: Duration = .milliseconds(100)
    /// How often a session that reads looks for the writer's row before it gives up. The writer may be connecting too.
    private static let looksForWriter = 10
    /// How long to look for the outcome of a commit during which the connection failed.
    private static let settleLimit: Duration = .seconds(60)

    private let address: PostgresAddress
    private let status: PostgresStatus
    private let isWriter: Bool
    private let timeouts: PostgresTimeouts
    /// Checks that this process may still write; nil for commands and for sessions that read.
    private let owner: PostgresOwner?
    private var connection: PostgresConnection?
    private var pause = PostgresSession.firstPause
    /// The writer's connection when this session connected. After a failover, the sessions that read connect again too, because
    /// theirs may lead to the server that was replaced.
    private var writerConnection: Data?
    /// The error of the last attempt to connect, which is repeated until the next attempt.
    private var failure: (error: any Error, until: ContinuousClock.Instant)?
    /// Identifies this session in the table `writer`.
    private let id = Data.random(16)
    /// The number of the last transaction that wrote.
    private var number: Int64 = 0

    /// - Parameters:
    ///   - isWriter: whether this is the session that writes.
    ///   - holder: in whose right the session writes; nil for commands and for sessions that read.
    init(
        _ address: PostgresAddress, _ status: PostgresStatus, isWriter: Bool, holder: PostgresOwner.Holder? = nil,
        timeouts: PostgresTimeouts = .standard
    ) {
        (self.address, self.status, self.isWriter, self.timeouts) = (address, status, isWriter, timeouts)
        owner = holder.map { [id] in PostgresOwner(status, id: id, $0) }
    }

    // MARK: Connecting

    /// Returns the connection, or connects. After a failure, throws the same error until a pause is over, so that callers do not
    /// wait for one timeout after the other.
    func connect() throws -> PostgresConnection {
        if let connection { return connection }
        if let failure, ContinuousClock.now < failure.until { throw failure.error }
        do {
            let made = try PostgresConnection(address, timeouts)
            try owner?.claim(made)
            if !isWriter { try requireWriter(made) }
            (connection, failure, pause) = (made, nil, Self.firstPause)
            note(isReachable: true)
            return made
        } catch {
            failure = (error, ContinuousClock.now + pause)
            pause = min(pause * 2, timeouts.longestPause)
            note(isReachable: false)
            throw error
        }
    }

    /// Waits until a new connection sees the row that the writer's connection has stored. Otherwise the connection leads to another
    /// server than the writer's.
    private func requireWriter(_ made: PostgresConnection) throws {
        for _ in 0..<Self.looksForWriter {
            writerConnection = status.writerConnection.withLock { $0 }
            guard let writerConnection else { return }
            if try PostgresOwner.hasRecorded(writerConnection, made) { return }
            guard status.pause() else { throw StorageError.closed }
        }
        throw StorageError.unreachable("this is not the server to which changes are written")
    }

    private func note(isReachable: Bool) {
        if isWriter { status.isReachable.store(isReachable, ordering: .relaxed) }
    }

    private func dropIfBroken() {
        guard connection?.isBroken == true else { return }
        connection = nil
        note(isReachable: false)
    }

    /// Runs `body`, which has no lasting effect if the connection fails. If this happens on a connection that was made earlier,
    /// which the server may have closed since, runs `body` once more on a new one.
    private func retrying<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
        let isOld = connection != nil
        do {
            defer { dropIfBroken() }
            return try body(connect())
        } catch  where isOld && connection == nil {
            defer { dropIfBroken() }
            return try body(connect())
        }
    }

    // MARK: Transactions

    /// Runs `body` in a transaction that sees one state of the database.
    func read<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
        if !isWriter, status.writerConnection.withLock({ $0 != writerConnection }) { connection = nil }
        return try retrying { connection in
            try connection.transaction(PostgresConnection.beginReading) { try body(connection) }
        }
    }

    /// Runs `body` once, which may be carried out although the connection fails. For the ledger: each of its operations can be
    /// repeated, and is repeated soon.
    func attempt<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
        defer { dropIfBroken() }
        return try body(connect())
    }

    /// Runs `body` in a transaction. When this returns, the transaction is durable.
    ///
    /// - Throws: `.unreachable` if the connection failed before the commit, so that nothing is stored, `.unsettled` if it failed
    ///   during the commit and PostgreSQL did not come back in time, `.fenced` if another server has taken over.
    func write<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
        number += 1
        let connection = try retrying { connection in
            try connection.rollingBack {
                try connection.begin(PostgresConnection.beginAlone)
                try mark(connection)
            }
            return connection
        }
        defer { dropIfBroken() }
        let value = try connection.rollingBack { try body(connection) }
        do {
            try connection.commit()
        } catch  where connection.isBroken {
            dropIfBroken()
            guard try isCommitted() else { throw error }
        }
        return value
    }

    /// Records the number of this transaction as its first change. The row stays locked until the transaction has ended.
    private func mark(_ connection: PostgresConnection) throws {
        if let owner { return try owner.mark(number, connection) }
        try connection.run(
            """
            INSERT INTO writer (id, number) VALUES (?, ?)
            ON CONFLICT (id) DO UPDATE SET number = excluded.number, usedAt = now()
            """, [id, number])
    }

    /// Returns whether the last transaction was committed, although the connection failed before the answer.
    private func isCommitted() throws -> Bool {
        let end = ContinuousClock.now + Self.settleLimit
        while true {
            do {
                return try retrying { try markedNumber($0) == number }
            } catch {
                // A server that another one has replaced may not connect again to look.
                let isFenced = (error as? StorageError)?.code == .fenced
                guard ContinuousClock.now < end, !isFenced, status.pause() else {
                    throw StorageError(
                        .unsettled,
                        "PostgreSQL went away during a commit and did not come back in time. It is not known whether the "
                            + "change was stored.", cause: error)
                }
            }
        }
    }

    /// Returns the number of the last committed transaction of this session; nil if there is none. Waits for a transaction that
    /// the server has not ended yet: it has changed the row, so this has to wait for its lock, even if the row is new.
    private func markedNumber(_ connection: PostgresConnection) throws -> Int64? {
        try connection.transaction(PostgresConnection.beginWriting) {
            try connection.rows(
                """
                INSERT INTO writer (id, number) VALUES (?, 0)
                ON CONFLICT (id) DO UPDATE SET number = writer.number RETURNING number
                """, [id]
            ).first?.value("number")
        }
    }

    /// Removes the row of this session, releases the lock of a server, and closes the connection.
    func close() {
        defer { connection = nil }
        guard isWriter, let connection else { return }
        // A row that is left is removed when storage is opened later.
        if number > 0 { _ = try? connection.run("DELETE FROM writer WHERE id = ?", [id]) }
        if !connection.isBroken { owner?.release(connection) }
    }
}
