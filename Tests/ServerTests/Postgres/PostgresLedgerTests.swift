import Cluster
import Foundation
import Signaling
import Testing
import Wire

@testable import Server

/// The ledger says which node lives. PostgreSQL's clock decides.
@Suite("The ledger in PostgreSQL", .ownThreads, .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresLedgerTests: StorageFixtures {
    // MARK: Requests

    @Test func `a request to another node is in the view until that node has carried it out`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            #expect(try await bench.life(second)?.requested == nil)
            #expect(try await bench.ledger.request(.draining, of: second))
            #expect(try await bench.life(second)?.requested == .draining)
            #expect(try await bench.life(first)?.requested == nil)
            #expect(try await bench.ledger.request(.serving, of: second), "a later request replaces it")
            try await bench.ledger.noteCarriedOut(.draining, by: second)
            #expect(try await bench.life(second)?.requested == .serving)
            try await bench.ledger.noteCarriedOut(.serving, by: second)
            try await bench.ledger.noteCarriedOut(.serving, by: second)
            #expect(try await bench.life(second)?.requested == nil)
        }
    }

    @Test func `nothing is requested of a life that is over, and its requests are forgotten`() async throws {
        try await withLedger { bench in
            let first = try await bench.begin(1)
            #expect(try await bench.ledger.request(.draining, of: first))
            let next = try await bench.begin(1, former: first)
            #expect(try await bench.ledger.request(.draining, of: first) == false)
            #expect(try await bench.life(next)?.requested == nil)
            #expect(try await bench.number("SELECT count(*) FROM nodeRequest") == 0)
            let unknown = try #require(NodeTag(node: 9, life: next.life))
            #expect(try await bench.ledger.request(.draining, of: unknown) == false)
        }
    }

    // MARK: Lives

    @Test func `a life is fenced only after its lease has expired by the clock of the server`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            try await bench.settle()
            #expect(try await bench.ledger.fence(first, heir: second) == false)
            #expect(try await bench.ledger.renew(first) == .renewed)
            try await bench.expire(first)
            // A renewal that comes before the fence saves the life, however late it is.
            #expect(try await bench.ledger.renew(first) == .renewed)
            #expect(try await bench.ledger.fence(first, heir: second) == false)
            try await bench.expire(first)
            #expect(try await bench.ledger.fence(first, heir: second))
            #expect(try await bench.ledger.fence(first, heir: second), "again")
            #expect(try await bench.ledger.renew(first) == .fenced(heir: second))
            #expect(try await bench.ledger.renew(second) == .renewed)
        }
    }

    @Test func `a fenced life is nobody's heir, so two lives do not fence each other`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            try await bench.settle()
            try await bench.expire(first)
            try await bench.expire(second)
            #expect(try await bench.ledger.fence(first, heir: second))
            #expect(try await bench.ledger.fence(second, heir: first) == false)
            #expect(try await bench.ledger.renew(second) == .renewed)
        }
    }

    @Test func `a node number has one life at a time, and the holder is named to the operator of a second one`()
        async throws
    {
        try await withLedger { bench in
            let first = try await bench.begin(7)
            try await bench.settle()
            guard case .held(by: first, for: let duration) = try await bench.ledger.begin(node: 7, former: nil) else {
                Issue.record("the number was given twice")
                return
            }
            #expect(duration > .zero && duration <= Terms.leaseDuration)
            let sentence = try await bench.ledger.explainHolder(first)
            #expect(sentence.contains("node 7: first machine, life \(first.life)"))
            #expect(sentence.contains("cluster.node"))
            try await bench.expire(first)
            let second = try await bench.begin(7)
            #expect(second.life > first.life)
            #expect(try await bench.ledger.renew(first) == .fenced(heir: second))
        }
    }

    @Test
    func `a node that proves that its former process has ended begins at once, also after a restart of PostgreSQL`()
        async throws
    {
        try await withLedger { bench in
            let (first, other) = (try await bench.begin(3), try await bench.begin(4))
            try await bench.replaceServer()
            guard case .held(by: first, for: let duration) = try await bench.ledger.begin(node: 3, former: other) else {
                Issue.record("the proof is of another life")
                return
            }
            #expect(duration > Terms.leaseDuration, "no life is fenced yet")
            let second = try await bench.begin(3, former: first)
            #expect(try await bench.ledger.renew(first) == .fenced(heir: second))
        }
    }

    @Test func `starts of one node number that meet have one winner`() async throws {
        try await withLedger { bench in
            let others = try await blocking {
                try (0..<4).map { _ in
                    PostgresLedger(try PostgresAddress(bench.url), process: "other machine")
                }
            }
            let beginnings = try await withThrowingTaskGroup(of: Beginning.self) { group in
                for ledger in others { group.addTask { try await ledger.begin(node: 9, former: nil) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let begun = beginnings.compactMap { if case .begun(let tag) = $0 { tag } else { nil } }
            #expect(begun.count == 1)
            for case .held(let holder, _) in beginnings { #expect(holder == begun.first) }
            for ledger in others { await ledger.close() }
        }
    }

    @Test func `a life is never given twice, even after a failover that has lost the last ones`() async throws {
        try await withLedger { bench in
            let lives = try await withThrowingTaskGroup(of: NodeTag.self) { group in
                for node in 1...12 { group.addTask { try await bench.begin(UInt16(node)) } }
                return try await group.reduce(into: []) { $0.append($1.life) }
            }
            #expect(Set(lives).count == 12)
            // The standby has not heard of the last five.
            let last = try #require(lives.max())
            try await bench.execute(
                "DELETE FROM node WHERE life > \(last - 5); SELECT setval('nodeLife', \(last - 5))")
            try await bench.replaceServer()
            #expect(try await bench.begin(100).life > last)
        }
    }

    @Test func `when no number is left, no life begins`() async throws {
        try await withLedger { bench in
            // The first look skips numbers, as after a failover.
            _ = try await bench.ledger.look()
            try await bench.execute("SELECT setval('nodeLife', \(NodeTag.lastLife - 1))")
            #expect(try await bench.begin(1).life == NodeTag.lastLife)
            await expectLedger(.unusable) { _ = try await bench.begin(2) }
        }
    }

    @Test func `the last fenced lives are kept, fewer are shown, and a life that is missing is over`() async throws {
        try await withLedger { bench in
            let first = try await bench.begin(1)
            let second = try await bench.begin(1, former: first)
            let many = 1000
            try await bench.execute(
                """
                INSERT INTO node (node, life, process, started, aliveUntil, fenced, heir, voidFrom)
                SELECT 5, 10000 + number, '', now(), now(), TRUE, '1-1', clock_timestamp() + INTERVAL '2 s'
                FROM generate_series(1, \(many)) AS number
                """)
            #expect(try await bench.ledger.renew(first) == .fenced(heir: second))
            let third = try await bench.begin(2)
            #expect(try await bench.number("SELECT count(*) FROM node WHERE fenced") == many)
            let view = try await bench.ledger.look()
            #expect(view.lives.count == 64 + 2)
            #expect(Set([second, third]).isSubset(of: view.lives.map(\.tag)))
            #expect(try await bench.ledger.renew(first) == .fenced(heir: nil))
            try await bench.settle()
            #expect(try await bench.ledger.fence(first, heir: third) == false)
        }
    }

    // MARK: Another server

    @Test func `for five seconds after a start or a failover of PostgreSQL no life is fenced and no place is void`()
        async throws
    {
        try await withLedger { bench in
            let (first, second, third) = (
                try await bench.begin(1), try await bench.begin(2), try await bench.begin(3)
            )
            try await bench.settle()
            try await bench.expire(third)
            #expect(try await bench.ledger.fence(third, heir: second))
            try await bench.pass(seconds: 3, "node", "voidFrom")
            try await bench.expire(first)
            try await bench.replaceServer()
            #expect(try await bench.ledger.fence(first, heir: second) == false)
            let view = try await bench.ledger.look()
            #expect(view.age < .seconds(5))
            guard case .fenced(heir: second, let voidIn) = view.lives.first(where: { $0.tag == third })?.state else {
                Issue.record("\(view.lives)")
                return
            }
            #expect(voidIn > .zero)
            try await bench.settle()
            #expect(try await bench.ledger.fence(first, heir: second))
        }
    }

    @Test func `times in the future are brought back, because the clock may have been set`() async throws {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            try await bench.settle()
            try await bench.expire(first)
            #expect(try await bench.ledger.fence(first, heir: second))
            try await bench.ledger.beginEpoch(of: "a", by: first)
            for column in ["aliveUntil", "started", "voidFrom"] { try await bench.pass(seconds: -3600, "node", column) }
            try await bench.pass(seconds: -3600, "epoch", "since")
            try await bench.pass(seconds: -3600, "judge", "since")
            let view = try await bench.ledger.look()
            #expect(view.age >= .zero && view.epochAge >= .zero)
            #expect(view.lives.count == 2)
            for life in view.lives {
                switch life.state {
                case .unfenced(let expiresIn): #expect(expiresIn <= Terms.leaseDuration)
                case .fenced(_, let voidIn): #expect(voidIn <= Terms.settlingOfServer)
                }
            }
            let later = ["node WHERE started", "epoch WHERE since", "judge WHERE since"]
            for later in later {
                #expect(try await bench.number("SELECT count(*) FROM \(later) > clock_timestamp()") == 0, "\(later)")
            }
        }
    }

    // MARK: Looking

    @Test func `a look shows lives, the epoch and ages`() async throws {
        try await withLedger { bench in
            var view = try await bench.ledger.look()
            #expect(view.lives.isEmpty && view.epoch == nil && view.epochAge == .zero)
            let first = try await bench.begin(1)
            let second = try await bench.begin(1, former: first)
            try await bench.ledger.beginEpoch(of: "run:replica", by: first)
            let epoch = try #require(try await bench.ledger.look().epoch)
            #expect(epoch == Epoch(number: 1, store: "run:replica"))
            #expect(try await bench.ledger.register(second, under: epoch))
            let clock = view.clock
            view = try await bench.ledger.look()
            #expect(view.clock > clock)
            #expect(view.lives.map(\.tag) == [first, second])
            #expect(view.lives.map(\.epoch) == [nil, 1])
            guard case .fenced(heir: second, let voidIn) = view.lives[0].state,
                case .unfenced(let expiresIn) = view.lives[1].state
            else {
                Issue.record("\(view.lives)")
                return
            }
            #expect(voidIn > .zero && expiresIn > .zero && expiresIn <= Terms.leaseDuration)
            try await bench.pass(seconds: 3600, "epoch", "since")
            #expect(try await bench.ledger.look().epochAge < .seconds(60), "not longer than this server is the ledger")
        }
    }

    // MARK: Epochs

    @Test func `a replaced store does not become current again while the other one is used`()
        async throws
    {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            for store in ["a", "a", "b", "a"] { try await bench.ledger.beginEpoch(of: store, by: first) }
            let epoch = Epoch(number: 2, store: "b")
            #expect(try await bench.ledger.look().epoch == epoch)
            #expect(try await bench.ledger.register(second, under: epoch))
            try await bench.pass(seconds: 60, "epoch", "since")
            try await bench.pass(seconds: 60, "judge", "since")
            try await bench.ledger.beginEpoch(of: "a", by: first)
            #expect(try await bench.ledger.look().epoch == epoch)
        }
    }

    @Test func `a store becomes current again for a life that has left the store which replaced it`() async throws {
        try await withLedger { bench in
            let tag = try await bench.begin(1)
            for store in ["a", "b"] { try await bench.ledger.beginEpoch(of: store, by: tag) }
            #expect(try await bench.ledger.register(tag, under: Epoch(number: 2, store: "b")))
            for _ in 0..<2 { try await bench.ledger.beginEpoch(of: "a", by: tag) }
            let epoch = Epoch(number: 3, store: "a")
            #expect(try await bench.ledger.look().epoch == epoch)
            #expect(try await bench.life(tag)?.epoch == 2, "it has to register again")
            #expect(try await bench.ledger.register(tag, under: epoch))
        }
    }

    @Test func `a store becomes current again if nobody has registered under the other one in time`()
        async throws
    {
        try await withLedger { bench in
            let (first, second) = (try await bench.begin(1), try await bench.begin(2))
            for store in ["a", "b"] { try await bench.ledger.beginEpoch(of: store, by: first) }
            #expect(try await bench.ledger.register(second, under: Epoch(number: 2, store: "b")))
            try await bench.expire(second)
            try await bench.settle()
            #expect(try await bench.ledger.fence(second, heir: first))
            try await bench.ledger.beginEpoch(of: "a", by: first)
            #expect(try await bench.ledger.look().epoch?.store == "b", "another life can still register")
            try await bench.pass(seconds: 60, "epoch", "since")
            try await bench.pass(seconds: 60, "judge", "since")
            try await bench.ledger.beginEpoch(of: "a", by: first)
            #expect(try await bench.ledger.look().epoch == Epoch(number: 3, store: "a"))
        }
    }

    @Test func `nodes that begin epochs at the same time do not take one number`() async throws {
        try await withLedger { bench in
            let other = try PostgresLedger(PostgresAddress(bench.url), process: "")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    let ledger = number % 2 == 0 ? bench.ledger : other
                    group.addTask { try await ledger.beginEpoch(of: "\(number)", by: NodeTag(node: 1, life: 1)!) }
                }
                try await group.waitForAll()
            }
            #expect(try await bench.ledger.look().epoch?.number == 20)
            await other.close()
        }
    }

    @Test func `a life registers only under the current epoch`() async throws {
        try await withLedger { bench in
            let tag = try await bench.begin(1)
            try await bench.ledger.beginEpoch(of: "a", by: tag)
            let first = try #require(try await bench.ledger.look().epoch)
            #expect(try await bench.ledger.register(tag, under: first))
            try await bench.ledger.beginEpoch(of: "b", by: tag)
            #expect(try await bench.ledger.register(tag, under: first) == false)
            #expect(try await bench.ledger.register(tag, under: Epoch(number: 2, store: "a")) == false)
            #expect(try await bench.life(tag)?.epoch == 1)
            #expect(try await bench.ledger.register(tag, under: Epoch(number: 2, store: "b")))
            #expect(try await bench.life(tag)?.epoch == 2)
        }
    }

    @Test
    func
        `lives that do not register in time are fenced although they renew, and their places are void after three seconds`()
        async throws
    {
        try await withLedger { bench in
            let (first, second, new) = (try await bench.begin(1), try await bench.begin(2), try await bench.begin(3))
            try await bench.ledger.beginEpoch(of: "earlier", by: first)
            #expect(try await bench.ledger.register(first, under: Epoch(number: 1, store: "earlier")))
            try await bench.ledger.beginEpoch(of: "a", by: first)
            for column in ["started", "aliveUntil"] { try await bench.pass(seconds: 60, "node", column) }
            #expect(try await bench.ledger.renew(first) == .renewed)
            func hasFenced() async throws -> Bool {
                try await bench.ledger.fenceUnregistered(heir: second)
                return try await bench.ledger.renew(first) == .fenced(heir: second)
            }
            try await bench.pass(seconds: 60, "judge", "since")
            #expect(try await !hasFenced(), "the epoch is new")
            try await bench.pass(seconds: 60, "epoch", "since")
            #expect(try await !hasFenced(), "the heir has not registered")
            #expect(try await bench.ledger.register(second, under: Epoch(number: 2, store: "a")))
            try await bench.replaceServer()
            #expect(try await !hasFenced(), "PostgreSQL has just started")
            try await bench.pass(seconds: 60, "judge", "since")
            #expect(try await hasFenced())
            guard case .fenced(_, let voidIn) = try await bench.life(first)?.state else { return }
            #expect(voidIn > .seconds(1) && voidIn <= Terms.leaseDuration)
            #expect(try await bench.ledger.renew(second) == .renewed)
            #expect(try await bench.ledger.renew(new) == .renewed, "a life that has never registered has no places")
        }
    }

    // MARK: Locks and rights

    @Test func `a renewal that waits for a lock fails, and nothing of it stays on the server`() async throws {
        try await withLedger { bench in
            let tag = try await bench.begin(1)
            let lock = 7_100_001
            try await bench.execute("SELECT pg_advisory_lock(\(lock))")
            let other = try await blocking { try PostgresStorage(url: bench.url, role: .command) }
            // It locks the row until the test releases the advisory lock.
            let holding = Task {
                try await other.write { db in
                    _ = try db.rows("SELECT life FROM node FOR UPDATE", [])
                    try db.command("SELECT pg_advisory_xact_lock(\(lock))")
                }
            }
            try await until("the row is locked") {
                try await bench.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND objid = \(lock)") == 1
            }
            await expectLedger(.unreachable) { _ = try await bench.ledger.renew(tag) }
            #expect(
                try await bench.number(
                    "SELECT count(*) FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation WHERE relname = 'node' "
                        + "AND relnamespace = current_schema()::regnamespace AND NOT granted") == 0)
            try await bench.execute("SELECT pg_advisory_unlock(\(lock))")
            try await holding.value
            #expect(try await bench.ledger.renew(tag) == .renewed)
            try await other.close()
        }
    }

    @Test func `a user without special rights can keep the ledger`() async throws {
        try await withLedger { bench in
            let schema = try #require(bench.url.revealed.split(separator: "csearch_path%3D").last)
            try await bench.execute(
                """
                CREATE ROLE plain_\(schema) LOGIN;
                GRANT USAGE ON SCHEMA \(schema) TO plain_\(schema);
                GRANT ALL ON ALL TABLES IN SCHEMA \(schema) TO plain_\(schema);
                GRANT ALL ON ALL SEQUENCES IN SCHEMA \(schema) TO plain_\(schema)
                """)
            let url = SecretText(bench.url.revealed.replacing("user=confab", with: "user=plain_\(schema)"))
            let ledger = PostgresLedger(try PostgresAddress(url), process: "")
            try await bench.replaceServer()
            guard case .begun(let tag) = try await ledger.begin(node: 1, former: nil) else { return }
            #expect(try await ledger.renew(tag) == .renewed)
            #expect(try await ledger.look().lives.map(\.tag) == [tag])
            await ledger.close()
        }
    }

    @Test func `a ledger that was closed or lacks its tables says what kind of error that is`() async throws {
        try await withPostgres { url in
            let ledger = PostgresLedger(try PostgresAddress(url), process: "")
            await expectLedger(.unusable) { _ = try await ledger.look() }
            await ledger.close()
            await expectLedger(.unreachable) { _ = try await ledger.look() }
        }
    }
}
