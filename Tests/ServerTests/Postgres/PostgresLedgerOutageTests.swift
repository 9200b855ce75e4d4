import Cluster
import Foundation
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

/// PostgreSQL is killed, started again and stopped while nodes renew their leases.
@Suite(
    "A ledger whose PostgreSQL goes away", .ownThreads, .serialized, .timeLimit(.minutes(10)),
    .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresLedgerOutageTests: StorageFixtures {
    /// How often PostgreSQL is killed during renewals.
    private static let rounds = Int(ProcessInfo.processInfo.environment["CONFAB_POSTGRES_KILLS"] ?? "") ?? 3

    private final class Progress: Sendable {
        let isDone = Atomic<Bool>(false)
        let renewals = Atomic<Int>(0)

        var count: Int { renewals.load(ordering: .relaxed) }
    }

    @Test
    func
        `after PostgreSQL was killed during renewals they go on, nobody is fenced for five seconds, and no life is given twice`()
        async throws
    {
        try await withCluster { cluster in
            let bench = try await LedgerBench(blocking { try cluster.newSchema() })
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            var lives: Set<UInt32> = [first.life, second.life]
            let progress = Progress()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    while !progress.isDone.load(ordering: .relaxed), !Task.isCancelled {
                        do throws(LedgerError) {
                            let renewal = try await bench.ledger.renew(first)
                            #expect(renewal == .renewed)
                            progress.renewals.add(1, ordering: .relaxed)
                        } catch {
                            guard error.code == .unreachable else { throw error }
                            await Task.yield()
                        }
                    }
                }
                for round in 0..<Self.rounds {
                    let before = progress.count
                    try await until("it renews") { progress.count > before + 20 }
                    try await blocking {
                        try cluster.kill()
                        try cluster.start()
                    }
                    // The first life's lease may have expired meanwhile, and the second one's has.
                    try await until("it works again") { (try? await bench.ledger.look()) != nil }
                    try await bench.expire(second)
                    #expect(try await bench.ledger.fence(second, heir: first) == false)
                    let life = try await bench.begin(UInt16(100 + round)).life
                    #expect(lives.insert(life).inserted, "\(life) is given twice")
                }
                progress.isDone.store(true, ordering: .relaxed)
                try await group.waitForAll()
            }
            try await bench.settle()
            try await bench.expire(second)
            #expect(try await bench.ledger.fence(second, heir: first))
            await bench.close()
        }
    }

    @Test func `an operation fails while PostgreSQL does not answer, and the next ones work when it does`() async throws
    {
        try await withCluster { cluster in
            let bench = try await LedgerBench(blocking { try cluster.newSchema() })
            let tag = try await bench.begin(1)
            // The bench's own ledger waits 12 s for an answer.
            let ledger = PostgresLedger(try PostgresAddress(bench.url), process: "first machine")
            try await until("it renews") { (try? await ledger.renew(tag)) == .renewed }
            try await cluster.whileStopped {
                // The second one cannot even connect.
                await expectLedger(.unreachable) { _ = try await ledger.renew(tag) }
                await expectLedger(.unreachable) { _ = try await ledger.renew(tag) }
            }
            try await until("it renews again") { (try? await ledger.renew(tag)) == .renewed }
            await ledger.close()
            await bench.close()
        }
    }

    @Test func `a node whose commit was cut off by a restart of PostgreSQL stores it once`() async throws {
        try await withCluster { cluster in
            let bench = try await LedgerBench(blocking { try cluster.newSchema() })
            let storage = try await bench.storage(try await bench.begin(1))
            try await storage.commit([.report(report(lines: ["first"]))])
            try await blocking {
                try cluster.kill()
                try cluster.start()
            }
            try await until("it stores again") {
                do {
                    try await storage.commit([.report(report(lines: ["second"]))])
                    return true
                } catch let error as StorageError where error.code == .unreachable {
                    return false
                }
            }
            #expect(try await storage.reports(includingClosed: true, limit: 10).count == 2)
            try await storage.close()
            await bench.close()
        }
    }
}
