import Foundation
import Signaling
import Testing
import Wire

@testable import Server

/// PostgreSQL is killed and started again.
@Suite(
    "PostgreSQL that goes away", .ownThreads, .serialized, .timeLimit(.minutes(15)),
    .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresOutageTests: StorageFixtures {
    /// How often PostgreSQL is killed under load.
    private static let rounds = Int(ProcessInfo.processInfo.environment["CONFAB_POSTGRES_KILLS"] ?? "") ?? 3

    /// The reports that storage answered as stored, by their reason, and the number of restarts of PostgreSQL.
    private actor Answered {
        private(set) var reasons: [String] = []
        private(set) var restarts = 0
        private(set) var isDone = false
        private var onRestart: [AsyncStream<Void>.Continuation] = []
        private var onCount: (count: Int, done: AsyncStream<Void>.Continuation)?

        func add(_ reason: String) {
            reasons.append(reason)
            guard let waiting = onCount, reasons.count >= waiting.count else { return }
            onCount = nil
            waiting.done.finish()
        }

        /// Waits until there are as many answers.
        func reach(_ count: Int) async {
            guard reasons.count < count, !isDone else { return }
            let (reached, done) = AsyncStream<Void>.makeStream()
            onCount = (count, done)
            for await _ in reached {}
        }

        func restarted() {
            restarts += 1
            for waiting in onRestart { waiting.finish() }
            onRestart = []
        }

        /// Waits until there were more restarts than `known`.
        func restart(after known: Int) async {
            guard restarts <= known else { return }
            let (restarted, done) = AsyncStream<Void>.makeStream()
            onRestart.append(done)
            for await _ in restarted {}
        }

        func finish() {
            isDone = true
            restarted()
            onCount?.done.finish()
        }
    }

    /// Stores reports until `answered.isDone`, and repeats each one that failed because PostgreSQL was away, as the server does.
    private func store(_ name: Int, _ storage: PostgresStorage, _ answered: Answered) async throws {
        var number = 0
        while await !answered.isDone, !Task.isCancelled {
            var made = report(lines: ["line"])
            made.reason = "\(name)-\(number)"
            number += 1
            while true {
                let restarts = await answered.restarts
                do {
                    try await storage.commit([.report(made), block(person(name), person(number))])
                    break
                } catch let error as StorageError where error.code == .unreachable {
                    try Task.checkCancellation()
                    await answered.restart(after: restarts)
                }
            }
            await answered.add(made.reason)
        }
    }

    @Test func `nothing that was answered is missing or stored twice after PostgreSQL was killed under load`()
        async throws
    {
        try await withCluster { cluster in
            let url = try await blocking { try cluster.newSchema() }
            let storage = try await blocking { try PostgresStorage(url: url, role: .server) }
            let answered = Answered()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for name in 0..<16 {
                    group.addTask {
                        do {
                            try await store(name, storage, answered)
                        } catch {
                            await answered.finish()
                            throw error
                        }
                    }
                }
                for _ in 0..<Self.rounds {
                    await answered.reach(answered.reasons.count + 50)
                    try await blocking {
                        try cluster.kill()
                        try cluster.start()
                    }
                    try await until("it works again") { (try? await storage.changeCounter()) != nil }
                    await answered.restarted()
                }
                await answered.reach(answered.reasons.count + 50)
                await answered.finish()
                try await group.waitForAll()
            }
            let stored = try await storage.reports(includingClosed: true, limit: 1_000_000).map(\.report.reason)
            #expect(await stored.sorted() == answered.reasons.sorted())
            try await storage.close()
        }
    }

    @Test func `closing while PostgreSQL is away does not wait for the outcome of a commit`() async throws {
        try await withCluster { cluster in
            let url = try await blocking { try cluster.newSchema() }
            let (pauses, paused) = AsyncStream<Void>.makeStream()
            // So long that only the closing can end it.
            let status = PostgresStatus(attemptPause: .seconds(86_400)) { paused.yield() }
            let storage = try await blocking {
                try PostgresStorage(url: url, role: .server, status: status, beforeTransaction: { _ in })
            }
            // COMMIT waits for a lock that another connection has.
            try await storage.execute(
                """
                CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    PERFORM pg_advisory_xact_lock(1);
                    RETURN NULL;
                END $$;
                CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON block DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION hold()
                """)
            let other = try await blocking { try PostgresStorage(url: url, role: .command) }
            try await other.execute("SELECT pg_advisory_lock(1)")
            let (lists, waiting) = ([[block(alice, bob)]], "SELECT pid FROM pg_locks WHERE NOT granted AND objid = 1")
            let commit = Task { await storage.commitEach(lists) }
            try await until("the commit waits") { try await other.read { try !$0.rows(waiting, []).isEmpty } }
            try await blocking { try cluster.kill() }
            for await _ in pauses { break }
            try await storage.close()
            #expect(await commit.value.map { $0?.code } == [.unsettled])
            try await other.close()
        }
    }

    @Test func `a server that is started before PostgreSQL says so, waits, and starts`() async throws {
        try await withCluster { cluster in
            let url = try await blocking { try cluster.newSchema() }
            try await blocking { try cluster.kill() }
            let lines = LogLines()
            async let isReady: Bool = TestServer.run(logger: lines.logger, { $0.storage.url = url }) { server in
                try await WHIPPlace(server).ask("GET", "/ready").status == 200
            }
            try await until("it waits") { lines.contains("PostgreSQL cannot be reached") }
            #expect(lines.contains("The server waits for it, for at most 60 s."))
            try await blocking { try cluster.start() }
            #expect(try await isReady)
        }
    }

    @Test func `a server is not ready while PostgreSQL is away, keeps running, and recovers`() async throws {
        try await withCluster { cluster in
            let url = try await blocking { try cluster.newSchema() }
            try await TestServer.run({
                $0.storage.url = url
                $0.storage.pollInterval = .milliseconds(20)
            }) { server in
                let place = try WHIPPlace(server)
                func becomes(_ status: Int) async throws {
                    try await until("/ready is \(status)") { try await place.ask("GET", "/ready").status == status }
                }
                try await becomes(200)
                try await blocking { try cluster.kill() }
                try await becomes(503)
                #expect(
                    try await place.ask("GET", "/ready").text == "{\"status\":\"unready\",\"parts\":[\"storage\"]}\n")
                #expect(try await place.ask("GET", "/health").status == 200)
                try await blocking { try cluster.start() }
                try await becomes(200)
            }
        }
    }
}
