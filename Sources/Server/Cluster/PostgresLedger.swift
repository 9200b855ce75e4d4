public import Cluster
import Foundation
public import Wire

/// The ledger of a cluster in PostgreSQL, in the database of ``PostgresStorage``. It has a thread and a connection of its own, so no
/// renewal waits for storage.
///
/// **Isolation.** Each operation is one statement or one transaction, at READ COMMITTED. A statement that had to wait for another
/// transaction's lock then evaluates its conditions again on what that one committed: a fence that waited for a renewal finds a
/// later `aliveUntil` and changes nothing. No operation decides by a row that another may change before the commit, except by one
/// that it has locked. At REPEATABLE READ each such meeting would be an error and another attempt, and no operation would be safer.
///
/// **Time.** An operation answers within two seconds or fails; a lease is valid for less than three. PostgreSQL gives up a statement
/// after 1.5 s, and one that waits for a lock after half a second. If the machine of a node is gone, PostgreSQL ends its session
/// within ten seconds.
public final class PostgresLedger: Ledger {
    /// How long an operation may take, including the time to connect.
    private let limit: Duration

    private let threads: PostgresThreads
    /// Describes this process to the operator of another one, such as `web1, process 812`.
    private let process: String

    /// Connects, and migrates the database to the current schema. Blocks, so call it only at startup.
    ///
    /// - Parameters:
    ///   - url: the connection URL of the storage.
    ///   - process: describes this process in a message to an operator who starts a second server with the same node number.
    /// - Throws: ``StorageError``: `.unreachable`, `.notAccessible`, `.newerSchema`.
    public convenience init(url: SecretText, process: String = PostgresLedger.describeProcess()) throws {
        let address = try PostgresAddress(url)
        _ = try PostgresStorage.prepare(address)
        self.init(address, process: process)
    }

    /// Uses a database that has the current schema. Does not connect.
    ///
    /// - Parameter timeouts: for tests, whose machines may be busy for longer than a lease lasts.
    init(_ address: PostgresAddress, process: String, timeouts: PostgresTimeouts = .ledger) {
        self.process = process
        limit = timeouts.answer
        let status = PostgresStatus()
        threads = PostgresThreads(count: 1, name: "postgres ledger") {
            PostgresSession(address, status, isWriter: true, timeouts: timeouts)
        }
    }

    /// Returns the name of this machine and the number of this process.
    public static func describeProcess() -> String {
        var name = [CChar](repeating: 0, count: 256)
        // The last byte stays 0 if the name is cut.
        let host = gethostname(&name, name.count - 1) == 0 ? String(cString: name) : "unknown host"
        return "\(host), process \(getpid())"
    }

    /// Closes the connection. Later operations throw `.unreachable`.
    public func close() async { await threads.close() }

    public func begin(node: UInt16, former: NodeTag?) async throws(LedgerError) -> Beginning {
        let process = process
        return try await transaction { try $0.beginLife(node: node, former: former, process: process) }
    }

    public func renew(_ tag: NodeTag) async throws(LedgerError) -> Renewal {
        // Without BEGIN and COMMIT: this is the operation that must be quick.
        try await run { try $0.renew(tag) }
    }

    public func look() async throws(LedgerError) -> LedgerView {
        try await transaction { try $0.ledgerView() }
    }

    public func fence(_ tag: NodeTag, heir: NodeTag) async throws(LedgerError) -> Bool {
        try await transaction { try $0.fence(tag, heir: heir) }
    }

    public func beginEpoch(of store: String, by tag: NodeTag) async throws(LedgerError) {
        try await transaction { try $0.beginEpoch(of: store, by: tag) }
    }

    public func register(_ tag: NodeTag, under epoch: Epoch) async throws(LedgerError) -> Bool {
        try await transaction { try $0.register(tag, under: epoch) }
    }

    public func fenceUnregistered(heir: NodeTag) async throws(LedgerError) {
        try await transaction { try $0.fenceUnregistered(heir: heir) }
    }

    public func request(_ state: NodeRecord.State, of tag: NodeTag) async throws(LedgerError) -> Bool {
        try await transaction { try $0.request(state, of: tag) }
    }

    public func noteCarriedOut(_ state: NodeRecord.State, by tag: NodeTag) async throws(LedgerError) {
        try await transaction { try $0.noteCarriedOut(state, by: tag) }
    }

    /// Returns the sentence for an operator whose server was refused (``Beginning/held(by:for:)``).
    ///
    /// - Parameter tag: the life that has the node number.
    public func explainHolder(_ tag: NodeTag) async throws(LedgerError) -> String {
        let found = try await run { try $0.process(of: tag) }
        return """
            Another server is node \(tag.node): \(found ?? "unknown"), life \(tag.life). Set another cluster.node for this server, or stop \
            that one. If it has just ended, wait a few seconds.
            """
    }

    // MARK: Running

    private func transaction<T: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> T
    ) async throws(LedgerError) -> T {
        try await run { connection in
            try connection.transaction(PostgresConnection.beginWriting) {
                try connection.prepareOperation()
                return try body(connection)
            }
        }
    }

    private func run<T: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> T
    ) async throws(LedgerError) -> T {
        do {
            return try await threads.run(within: limit) { try $0.attempt(body) }
        } catch {
            throw LedgerError(error)
        }
    }
}

extension LedgerError {
    /// Translates an error of storage. Whatever passes by itself is `.unreachable`.
    fileprivate init(_ error: any Error) {
        guard let error = error as? StorageError else {
            self.init(.unusable, "PostgreSQL gave an answer that Confab does not understand. (\(error))")
            return
        }
        self.init(error.isTemporary || error.code == .closed ? .unreachable : .unusable, "\(error)")
    }
}
