import Cluster
import Foundation
import Signaling
import Testing
import Wire

@testable import Server

/// The storage of a node in a cluster: a fenced life stores nothing, and several nodes use one database.
@Suite(
    "The storage of nodes", .ownThreads, .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresNodeTests: StorageFixtures {
    private func call(_ number: UInt64) throws -> StoredCall {
        StoredCall(
            id: CallID(high: 9, low: number), session: try #require(SessionID("1_call\(number)")), caller: alice,
            callee: bob, callerName: "A", calleeName: "B", video: true, placedAt: now + .seconds(Int64(number)),
            ringsUntil: now + .seconds(60))
    }

    /// Ends the connections that hold the lock of nodes.
    private func endWriters(_ bench: LedgerBench) async throws {
        let schema = "CAST(hashtext(current_schema()) AS BIGINT) & 4294967295"
        let ended = try await bench.number(
            """
            SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'
                AND CAST(classid AS BIGINT) = \(0x434F_4E46) AND CAST(objid AS BIGINT) = \(schema)
            """)
        #expect(ended > 0)
    }

    // MARK: The fence

    @Test func `nothing of a fenced life is stored`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            let (mine, other) = (try await bench.storage(first), try await bench.storage(second))
            try await mine.commit([block(alice, bob)])
            try await bench.settle()
            try await bench.expire(first)
            #expect(try await bench.ledger.fence(first, heir: second))
            let error = await expect(.fenced) { try await mine.commit([block(alice, carol)]) }
            #expect(error?.message.contains("Node 1") == true)
            await expect(.fenced) { try await mine.addBan(Ban(subject: .identity(bob), reason: "", createdAt: now)) }
            await expect(.fenced) { _ = try await mine.deleteOld(.reports, olderThan: now) }
            try await other.commit([block(bob, carol)])
            #expect(try await other.person(alice, at: now).blocked == [bob])
            #expect(try await other.bans(at: now).isEmpty)
            // Nor after it has connected again.
            try await endWriters(bench)
            await expect(.fenced) { try await mine.commit([block(alice, carol)]) }
            // Its new life stores.
            let next = try await bench.begin(1)
            let again = try await bench.storage(next)
            try await again.commit([block(alice, carol)])
            #expect(try await other.person(alice, at: now).blocked == [bob, carol])
            for storage in [mine, other, again] { try await storage.close() }
        }
    }

    @Test func `a fence waits for a commit under way, and a renewal does not`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            let storage = try await bench.storage(first)
            try await bench.settle()
            let lock = 7_100_002
            try await bench.execute("SELECT pg_advisory_lock(\(lock))")
            let (written, who) = (block(alice, bob), alice)
            let commit = Task {
                try await storage.write { db in
                    try db.apply(written, StorageBounds())
                    try db.command("SELECT pg_advisory_xact_lock(\(lock))")
                }
            }
            try await until("the commit is under way") {
                try await bench.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND objid = \(lock)") == 1
            }
            #expect(try await bench.ledger.renew(first) == .renewed)
            try await bench.expire(first)
            // It does not wait for long, because renewals of its own node come after it.
            await expectLedger(.unreachable) { _ = try await bench.ledger.fence(first, heir: second) }
            #expect(try await bench.number("SELECT count(*) FROM node WHERE fenced") == 0)
            try await bench.execute("SELECT pg_advisory_unlock(\(lock))")
            try await commit.value
            #expect(try await bench.ledger.fence(first, heir: second))
            #expect(try await storage.person(who, at: now).blocked == [bob])
            try await storage.close()
        }
    }

    @Test func `a statement of any kind that fences a life waits for its commit`() async throws {
        try await withLedger { bench in
            let first = try await bench.begin(1)
            let other = try await blocking { try PostgresStorage(url: bench.url, role: .command) }
            try await other.write { db in
                _ = try db.rows("SELECT life FROM node FOR KEY SHARE", [])
                let second = try PostgresConnection(PostgresAddress(bench.url), .ledger)
                // Not a word of a lock in it: the key does it.
                let fence = "UPDATE node SET fenced = TRUE, heir = '2-2', voidFrom = now()"
                let error = #expect(throws: StorageError.self) { try second.run(fence, []) }
                #expect(error?.code == .busy)
                try second.run("UPDATE node SET aliveUntil = now()", [])
            }
            #expect(try await bench.ledger.renew(first) == .renewed)
            try await other.close()
        }
    }

    // MARK: Connections

    @Test func `nodes and a server without a cluster keep each other out`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            func openAlone() async throws -> PostgresStorage {
                try await blocking { try PostgresStorage(url: bench.url, role: .server, lockTimeout: .zero) }
            }
            let nodes = [try await bench.storage(first), try await bench.storage(second)]
            await expect(.busy) { _ = try await openAlone() }
            for node in nodes { try await node.close() }
            let alone = try await openAlone()
            let error = await expect(.busy) { _ = try await bench.storage(first) }
            #expect(error?.message.contains("not part of the cluster") == true)
            try await alone.close()
        }
    }

    @Test func `a node connects again and continues, and so do its readers`() async throws {
        try await withLedger { bench in
            let tag = try await bench.begin(1)
            let storage = try await bench.storage(tag)
            try await storage.commit([block(alice, bob)])
            try await endWriters(bench)
            try await storage.commit([block(alice, carol)])
            #expect(try await storage.person(alice, at: now).blocked == [bob, carol])
            try await storage.close()
        }
    }

    @Test func `a life that the ledger does not have opens no storage`() async throws {
        try await withLedger { bench in
            let tag = try await bench.begin(1)
            for wrong in [NodeTag(node: 2, life: tag.life), NodeTag(node: 1, life: tag.life + 1)] {
                await expect(.fenced) { _ = try await bench.storage(try #require(wrong)) }
            }
        }
    }

    // MARK: What nodes share

    @Test func `a node sees the bans of another by polling`() async throws {
        try await withLedger { bench in
            let (first, second) = (
                try await bench.storage(try await bench.begin(1)), try await bench.storage(try await bench.begin(2))
            )
            let before = try await first.changeCounter()
            #expect(try await first.changeCounter() == before)
            try await second.addBan(Ban(subject: .identity(bob), reason: "", createdAt: now))
            #expect(try await first.changeCounter() != before)
            #expect(try await first.bans(at: now).map(\.subject) == [.identity(bob)])
            try await first.close()
            try await second.close()
        }
    }

    @Test func `the heir takes over the calls of a life that is over, and no others`() async throws {
        try await withLedger { bench in
            // From before the cluster.
            let alone = try await blocking { try PostgresStorage(url: bench.url, role: .server, lockTimeout: .zero) }
            try await alone.commit([.callPlaced(call(0))])
            #expect(try await alone.openCalls().map(\.id.low) == [0])
            try await alone.close()
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            let (mine, other) = (try await bench.storage(first), try await bench.storage(second))
            try await mine.commit([.callPlaced(call(1)), .callPlaced(call(2))])
            try await other.commit([.callPlaced(call(3))])
            #expect(try await mine.openCalls().map(\.id.low) == [0])
            #expect(try await other.openCalls(of: first.life).map(\.id.low) == [1, 2])
            #expect(try await other.takeOverCalls(of: first.life).map(\.id.low) == [1, 2, 3])
            #expect(try await other.openCalls(of: first.life).isEmpty)
            #expect(try await other.takeOverCalls(of: 0).map(\.id.low) == [0, 1, 2, 3])
            try await other.commit([.callOver(CallID(high: 9, low: 1), people: [alice, bob])])
            #expect(try await mine.openCalls(of: second.life).map(\.id.low) == [0, 2, 3])
            #expect(try await bench.number("SELECT count(*) FROM callLife") == 3)
            try await mine.close()
            try await other.close()
        }
    }

    @Test func `storage knows which node has a call, for the people in it`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            let (mine, other) = (try await bench.storage(first), try await bench.storage(second))
            try await mine.commit([.callPlaced(call(1))])
            let id = try call(1).id
            for person in [alice, bob] {
                let home = try await other.home(of: id, of: person)
                #expect(home == .node(first))
            }
            #expect(try await other.home(of: id, of: IdentityID(high: 77, low: 77)) == nil)
            #expect(try await other.home(of: try call(2).id, of: alice) == nil)
            try await mine.close()
            try await bench.settle()
            try await bench.expire(first)
            #expect(try await bench.ledger.fence(first, heir: second))
            #expect(try await other.home(of: id, of: bob) == .changing)
            _ = try await other.takeOverCalls(of: first.life)
            #expect(try await other.home(of: id, of: bob) == .node(second))
            try await other.close()
        }
    }

    @Test func `one node at a time deletes old records`() async throws {
        try await withLedger { bench in
            let storage = try await bench.storage(try await bench.begin(1))
            try await storage.commit([.report(report())])
            let lock = "(\(0x434F_4E52), hashtext(current_schema()))"
            try await bench.execute("SELECT pg_advisory_lock\(lock)")
            #expect(try await storage.deleteOld(.reports, olderThan: now + .seconds(1)) == 0)
            #expect(try await storage.reports(includingClosed: true, limit: 10).count == 1)
            try await bench.execute("SELECT pg_advisory_unlock\(lock)")
            #expect(try await storage.deleteOld(.reports, olderThan: now + .seconds(1)) == 1)
            // It has released the lock.
            #expect(try await bench.number("SELECT CAST(pg_try_advisory_lock\(lock) AS INTEGER)") == 1)
            try await storage.close()
        }
    }

    @Test func `a node that stops in the middle of a transaction does not hold it for long`() async throws {
        try await withLedger { bench in
            let storage = try await bench.storage(try await bench.begin(1))
            let settings = try await storage.write { db in
                try db.rows("SELECT current_setting('idle_in_transaction_session_timeout') AS value", []).first?
                    .value("value") as String?
            }
            #expect(settings == "2s")
            try await storage.close()
        }
    }
}
