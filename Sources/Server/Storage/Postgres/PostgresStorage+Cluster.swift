import Cluster
public import Signaling
public import Wire

/// What is different when several servers use one database.
extension PostgresStorage {
    /// The class of the advisory lock of the server that deletes old records. The other half of its number is the schema's.
    private static let retentionLock = 0x434F_4E52

    /// Deletes old records, unless another node does: what one deletes, the other need not look for.
    @discardableResult
    public func deleteOld(_ records: OldRecords, olderThan moment: Timestamp) async throws -> Int {
        guard try await retentionLock("pg_try_advisory_lock") else { return 0 }
        do {
            let count = try await deleteInSteps(records, olderThan: moment)
            try await retentionLock("pg_advisory_unlock")
            return count
        } catch {
            // If the connection failed, PostgreSQL has released the lock.
            _ = try? await retentionLock("pg_advisory_unlock")
            throw error
        }
    }

    /// Takes or releases the lock, which belongs to the writer's connection and not to a transaction.
    @discardableResult
    private func retentionLock(_ function: String) async throws -> Bool {
        try await onWriter { connection in
            try connection.rows("SELECT \(function)(\(Self.retentionLock), hashtext(current_schema())) AS done", [])
                .first?.value("done") ?? false
        }
    }

    /// Returns the calls of this server from before it started. In a cluster, those of no life: from before the cluster. Other
    /// calls are of nodes that may be alive.
    public func openCalls() async throws -> [StoredCall] {
        guard life != nil else { return try await read { try $0.openCalls() } }
        return try await openCalls(of: 0)
    }

    public func openCalls(of life: UInt32) async throws -> [StoredCall] {
        try await read { try $0.openCalls(of: life) }
    }

    public func home(of call: CallID, of person: IdentityID) async throws -> CallHome? {
        try await read { try $0.home(of: call, of: person) }
    }

    public func takeOverCalls(of life: UInt32) async throws -> [StoredCall] {
        try await write { connection in
            try connection.takeOverCalls(of: life)
            return try connection.openCalls(of: connection.life)
        }
    }
}
