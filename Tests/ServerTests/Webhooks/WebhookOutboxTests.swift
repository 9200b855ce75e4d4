import GRDB
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The outbox of webhooks", .ownThreads) struct WebhookOutboxTests: StorageFixtures {
    private typealias Samples = WebhookSamples

    private func names(_ storage: any Storage, project: String = Samples.project) async throws -> [String] {
        var names: [String] = []
        for entry in try await storage.webhooks(of: project, after: 0, limit: 1000) {
            let body = try #require(try await storage.webhookMessage(entry.id)).body
            guard case .object(let object) = try JSONReader.parse(body), case .string(let name)? = object["event"]
            else {
                continue
            }
            if case .string(let reason)? = object["reason"] {
                names.append("\(name) \(reason)")
            } else {
                names.append(name)
            }
        }
        return names
    }

    @Test func `events are stored in order with the changes they report, or not at all`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            try await storage.execute(refusing(bob))
            let events = Samples.visit(1).map { Change.webhook($0) }
            await expect(.rejected) { try await storage.commit(events + [block(alice, bob)]) }
            #expect(try await names(storage) == [])
            try await storage.commit(events + [block(alice, carol)])
            #expect(
                try await names(storage) == [
                    "sessionCreated", "connectionCreated", "connectionDestroyed clientDisconnected", "sessionDestroyed",
                ])
            #expect(storage.webhookSignal.take() == [Samples.project])
            let entries = try await storage.webhooks(of: Samples.project, after: 0, limit: 2)
            #expect(entries.count == 2 && entries[0].session == Samples.session && entries[0].at == Samples.at)
            #expect(try await storage.webhooks(of: Samples.project, after: entries[1].id, limit: 10).count == 2)
            #expect(try await storage.webhook(following: entries[0]) == entries[1])
            try await storage.removeWebhook(entries[0].id)
            #expect(try await storage.webhookMessage(entries[0].id) == nil)
            #expect(try await storage.webhookBacklogs()[Samples.project]?.waiting == 3)
            try await storage.close()
        }
    }

    @Test func `a number is never used again, and an event keeps its delivery ID`() async throws {
        try await withDirectory { directory in
            var last: Int64 = 0
            for _ in 0..<3 {
                let storage = try SQLiteStorage(directory: directory)
                try await storage.commit(Samples.visit(1).map { .webhook($0) })
                let entries = try await storage.webhooks(of: Samples.project, after: 0, limit: 10)
                #expect(entries.count == 4 && entries.allSatisfy { $0.id > last })
                last = entries.last?.id ?? 0
                var deliveries: Set<[UInt8]> = []
                for entry in entries {
                    let message = try #require(try await storage.webhookMessage(entry.id))
                    #expect(try await storage.webhookMessage(entry.id) == message)
                    deliveries.insert(message.delivery)
                    try await storage.removeWebhook(entry.id)
                }
                #expect(deliveries.count == 4 && deliveries.allSatisfy { $0.count == 16 })
                try await storage.close()
            }
        }
    }

    @Test func `an end is reported only if its beginning was, and once`() async throws {
        try await withStorage { storage in
            let (created, destroyed): (Change, Change) = (
                .webhook(Samples.event(.connectionCreated(Samples.connection))),
                .webhook(Samples.event(.connectionDestroyed(Samples.connection, .networkDisconnected)))
            )
            try await storage.commit([
                destroyed, created, destroyed, destroyed, .webhook(Samples.event(.sessionDestroyed)),
            ])
            #expect(try await names(storage) == ["connectionCreated", "connectionDestroyed networkDisconnected"])
        }
    }

    @Test func `what was not destroyed before a crash is destroyed at the start: streams, connections, sessions`()
        async throws
    {
        try await withDirectory { directory in
            var storage = try SQLiteStorage(directory: directory)
            let other = try #require(SessionID("2_other"))
            // More than one transaction ends at the start.
            let many = (0..<600).map {
                Change.webhook(Samples.event(.connectionCreated(Samples.connection($0)), other))
            }
            try await storage.commit(
                [
                    .webhook(Samples.event(.sessionCreated)),
                    .webhook(Samples.event(.connectionCreated(Samples.connection))),
                    .webhook(Samples.event(.streamCreated(Samples.stream, of: Samples.connection))),
                    .webhook(Samples.event(.sessionCreated, other)),
                ] + many + Samples.visit(7, session: try #require(SessionID("3_ended"))).map { .webhook($0) })
            try await storage.close()
            storage = try SQLiteStorage(directory: directory)
            let later = Samples.at + .seconds(100)
            #expect(try await storage.endReportedSessions(at: later) == 604)
            #expect(storage.webhookSignal.take() == [Samples.project])
            #expect(try await storage.endReportedSessions(at: later) == 0)
            let all = try await storage.webhooks(of: Samples.project, after: 0, limit: 10_000)
            let own = all.filter { $0.session == Samples.session }
            var bodies: [String] = []
            for entry in own {
                bodies.append(
                    String(decoding: try #require(try await storage.webhookMessage(entry.id)).body, as: UTF8.self))
            }
            #expect(own.suffix(3).allSatisfy { $0.at == later })
            let ends: [WebhookEvent.Kind] = [
                .streamDestroyed(Samples.stream, of: Samples.connection, .networkDisconnected),
                .connectionDestroyed(Samples.connection, .networkDisconnected), .sessionDestroyed,
            ]
            #expect(
                Array(bodies.suffix(3))
                    == ends.map { String(decoding: WebhookBody(Samples.event($0, at: later)).bytes, as: UTF8.self) })
            #expect(all.filter { $0.session == other }.count == 1202)
            try await storage.close()
        }
    }

    @Test func `beyond the limit beginnings are refused and counted, and ends are stored`() async throws {
        try await withStorage(StorageBounds(webhooks: 3)) { storage in
            let connections = (0..<5).map { Samples.connection($0) }
            try await storage.commit(connections.map { .webhook(Samples.event(.connectionCreated($0))) })
            #expect(try await storage.webhookBacklogs() == [Samples.project: .init(waiting: 3, refused: 2)])
            // Another project is not affected.
            try await storage.commit([.webhook(Samples.event(.sessionCreated, project: "2000"))])
            try await storage.commit(
                connections.map { .webhook(Samples.event(.connectionDestroyed($0, .clientDisconnected))) })
            #expect(try await storage.webhookBacklogs()[Samples.project] == .init(waiting: 6, refused: 2))
            #expect(try await storage.webhookBacklogs()["2000"] == .init(waiting: 1, refused: 0))
            #expect(try await storage.endReportedSessions(at: now) == 1)
        }
    }

    @Test func `removing a project's events leaves those of others`() async throws {
        try await withStorage { storage in
            for number in 0..<300 {
                try await storage.commit(
                    Samples.visit(number).map { .webhook($0) }
                        + [.webhook(Samples.event(.connectionCreated(Samples.connection(1000 + number)), project: "1"))]
                )
            }
            try await storage.commit([.webhook(Samples.event(.sessionCreated, project: Samples.project))])
            try await storage.removeWebhooks(of: Samples.project)
            #expect(try await storage.webhookBacklogs() == ["1": .init(waiting: 300, refused: 0)])
            #expect(try await storage.webhooks(of: Samples.project, after: 0, limit: 10).isEmpty)
            #expect(try await storage.endReportedSessions(at: now) == 300)
        }
    }

    @Test func `the head of a session is found without reading other events`() async throws {
        try await withDirectory { directory in
            try await SQLiteStorage(directory: directory).close()
            let queue = try DatabaseQueue(path: directory + "/" + SQLiteStorage.fileName)
            let entry = WebhookEntry(id: 1, project: "1", session: Samples.session, at: now)
            let plans = try await queue.read { db in
                var statements: [String] = []
                db.trace { event in
                    if case .statement(let statement) = event { statements.append(statement.expandedSQL) }
                }
                _ = try db.webhook(following: entry)
                _ = try db.webhooks(of: "1", after: 5, limit: 10)
                _ = try db.webhookMessage(1)
                db.trace()
                return try statements.flatMap { sql in
                    try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql).map { row -> String in row["detail"] }
                }
            }
            try queue.close()
            #expect(plans.count == 3 && plans.allSatisfy { $0.hasPrefix("SEARCH webhookEvent USING ") }, "\(plans)")
        }
    }
}
