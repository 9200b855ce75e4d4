import Foundation
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

/// PostgreSQL is killed and started again.
@Suite(
    "PostgreSQL that goes away", .ownThreads, .serialized, .timeLimit(.minutes(5)),
    .enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
struct PostgresOutageTests: StorageFixtures {
    private func withCluster(_ body: (PostgresCluster) async throws -> Void) async throws {
        let cluster = try await blocking { try PostgresCluster(isDurable: true) }
        defer { cluster.stop() }
        try await body(cluster)
    }

    /// Reports that storage answered as stored, by their reason.
    private final class Answered: Sendable {
        let reasons = Mutex<[String]>([])
        let isDone = Atomic<Bool>(false)
        var count: Int { reasons.withLock { $0.count } }
    }

    /// Stores reports until `answered.isDone`, and repeats each one that failed because PostgreSQL was away, as the server does.
    private func store(_ name: Int, _ storage: PostgresStorage, _ answered: Answered) async throws {
        var number = 0
        while !answered.isDone.load(ordering: .relaxed), !Task.isCancelled {
            var made = report(lines: ["line"])
            made.reason = "\(name)-\(number)"
            number += 1
            while true {
                do {
                    try await storage.commit([.report(made), block(person(name), person(number))])
                    break
                } catch let error as StorageError where error.code == .unreachable {
                    try Task.checkCancellation()
                    await Task.yield()
                }
            }
            let reason = made.reason
            answered.reasons.withLock { $0.append(reason) }
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
                for name in 0..<16 { group.addTask { try await store(name, storage, answered) } }
                for round in 1...3 {
                    try await until("\(100 * round) reports are stored") { answered.count >= 100 * round }
                    try await blocking {
                        try cluster.kill()
                        try cluster.start()
                    }
                }
                let count = answered.count
                try await until("it works again") { answered.count >= count + 100 }
                answered.isDone.store(true, ordering: .relaxed)
                try await group.waitForAll()
            }
            let stored = try await storage.reports(includingClosed: true, limit: 1_000_000).map(\.report.reason)
            #expect(stored.sorted() == answered.reasons.withLock { $0.sorted() })
            try await storage.close()
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
