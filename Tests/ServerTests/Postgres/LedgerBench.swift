import Cluster
import Foundation
import Testing
import Wire

@testable import Server

/// A ledger in an empty schema, and a second connection with which a test changes what it says. Times are changed instead of waited
/// for.
struct LedgerBench: Sendable {
    let url: SecretText
    let ledger: PostgresLedger
    private let threads: PostgresThreads

    init(_ url: SecretText) async throws {
        self.url = url
        let address = try PostgresAddress(url)
        // Migrates the database.
        await (try await blocking { try PostgresLedger(url: url, process: "first machine") }).close()
        var timeouts = PostgresTimeouts.ledger
        (timeouts.statement, timeouts.answer, timeouts.idleSession) = (.seconds(10), .seconds(12), .zero)
        ledger = PostgresLedger(address, process: "first machine", timeouts: timeouts)
        threads = PostgresThreads(count: 1, name: "test") {
            PostgresSession(address, PostgresStatus(), isWriter: true)
        }
    }

    func close() async {
        await ledger.close()
        await threads.close()
    }

    /// Runs statements on the other connection, without a transaction around them. It keeps its session, and what that has locked.
    func execute(_ sql: String) async throws {
        try await onConnection { try $0.command(sql) }
    }

    func number(_ sql: String) async throws -> Int64 {
        try await onConnection {
            try $0.rows("SELECT CAST((\(sql)) AS BIGINT) AS number", []).first?.value("number") ?? 0
        }
    }

    /// Runs `body` on the other connection, and again on a new one if PostgreSQL has been restarted since.
    private func onConnection<T: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) throws -> T
    ) async throws -> T {
        do {
            return try await threads.run { try $0.attempt(body) }
        } catch let error as StorageError where error.code == .unreachable {
            return try await threads.run { try $0.attempt(body) }
        }
    }

    /// Begins a life of a node.
    func begin(_ node: UInt16, former: NodeTag? = nil) async throws -> NodeTag {
        let beginning = try await ledger.begin(node: node, former: former)
        guard case .begun(let tag) = beginning else {
            Issue.record("\(beginning)")
            throw CancellationError()
        }
        return tag
    }

    /// Makes this server the ledger for longer than lives are spared after a start.
    func settle() async throws { try await pass(seconds: 6, "judge", "since") }

    /// Makes the lease of a life expire.
    func expire(_ tag: NodeTag) async throws {
        try await execute("UPDATE node SET aliveUntil = clock_timestamp() - INTERVAL '1 ms' WHERE life = \(tag.life)")
    }

    /// Makes a stored time earlier, as if time had passed.
    func pass(seconds: Int, _ table: String, _ column: String) async throws {
        try await execute("UPDATE \(table) SET \(column) = \(column) - INTERVAL '\(seconds) seconds'")
    }

    /// Makes the ledger believe that another server was it before.
    func replaceServer() async throws { try await execute("UPDATE judge SET timeline = 'another'") }

    func life(_ tag: NodeTag) async throws -> LedgerView.Life? {
        try await ledger.look().lives.first { $0.tag == tag }
    }

    /// Opens the storage of a node.
    func storage(_ tag: NodeTag) async throws -> PostgresStorage {
        let url = url
        return try await blocking { try PostgresStorage(url: url, role: .node(tag), lockTimeout: .zero) }
    }
}

extension StorageFixtures {
    /// Runs `body` with a PostgreSQL server of its own, which may be killed.
    func withCluster(_ body: (PostgresCluster) async throws -> Void) async throws {
        let cluster = try await blocking { try PostgresCluster(isDurable: true) }
        defer { cluster.stop() }
        try await body(cluster)
    }

    /// Runs `body` with a ledger in an empty schema of the cluster that the suites share.
    func withLedger(_ body: (LedgerBench) async throws -> Void) async throws {
        try await withPostgres { url in
            let bench = try await LedgerBench(url)
            try await body(bench)
            await bench.close()
        }
    }

    @discardableResult
    func expectLedger(
        _ code: LedgerError.Code, at location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async -> LedgerError? {
        let error = await #expect(throws: LedgerError.self, sourceLocation: location) { try await body() }
        #expect(error?.code == code, sourceLocation: location)
        return error
    }
}
