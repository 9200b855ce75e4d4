import Cluster
import Foundation
import GRDB
import Signaling
import Synchronization
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
        try await withDatabases { open in
            let storage = try await open()
            try await refuse("block", when: "NEW.createdAt = 13", in: storage)
            let events = Samples.visit(1).map { Change.webhook($0) }
            await expect(.rejected) {
                try await storage.commit(events + [block(alice, bob, at: Timestamp(milliseconds: 13))])
            }
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
        try await withDatabases { open in
            var last: Int64 = 0
            for _ in 0..<3 {
                let storage = try await open()
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
        try await withDatabases { open in
            var storage = try await open()
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
            storage = try await open()
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

    @Test func `when a life ends, its streams and connections end, and sessions with people on other nodes continue`()
        async throws
    {
        try await withDatabases { open in
            let storage = try await open()
            let (first, second) = (try #require(NodeTag(node: 1, life: 7)), try #require(NodeTag(node: 1, life: 8)))
            func connection(_ tag: NodeTag, _ number: UInt64) -> ConnectionInfo {
                ConnectionInfo(
                    id: ConnectionID(high: tag.rawValue << 24 | 5, low: number), createdAt: Samples.at, data: "")
            }
            var stream = StreamInfo()
            (stream.id, stream.connection) = (StreamID(high: first.rawValue << 24, low: 1), connection(first, 1).id)
            let shared = try #require(SessionID("2_shared"))
            // More than one transaction ends.
            let many = (10..<600).map { Samples.event(.connectionCreated(connection(first, $0)), shared) }
            try await storage.commit(
                ([
                    Samples.event(.sessionCreated), Samples.event(.connectionCreated(connection(first, 1))),
                    Samples.event(.streamCreated(stream, of: connection(first, 1))),
                    Samples.event(.sessionCreated, shared),
                    Samples.event(.connectionCreated(connection(second, 2)), shared),
                ] + many).map { .webhook($0) })
            #expect(try await storage.endReportedSessions(of: first, at: Samples.at + .seconds(9)) == 593)
            #expect(storage.webhookSignal.take() == [Samples.project])
            let all = try await storage.webhooks(of: Samples.project, after: 0, limit: 10_000)
            let own = all.filter { $0.session == Samples.session }
            var ends: [String] = []
            for entry in own.suffix(3) {
                let body = try #require(try await storage.webhookMessage(entry.id)).body
                ends += ["streamDestroyed", "connectionDestroyed", "sessionDestroyed"].filter {
                    String(decoding: body, as: UTF8.self).contains($0)
                }
            }
            #expect(ends == ["streamDestroyed", "connectionDestroyed", "sessionDestroyed"])
            #expect(try await storage.endReportedSessions(of: first, at: now) == 0)
            #expect(try await storage.endReportedSessions(of: second, at: now) == 2)
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

    /// A connection whose data takes as much space in JSON as is possible.
    private func largest(_ number: Int) -> ConnectionInfo {
        ConnectionInfo(
            id: ConnectionID(high: 8, low: UInt64(number)), createdAt: Samples.at,
            data: String(repeating: "\u{1}", count: Wire.Limits.connectionData))
    }

    private func integer(_ sql: String, _ storage: SQLiteStorage) async throws -> Int {
        try await storage.read { try Int.fetchOne($0, sql: sql) ?? 0 }
    }

    @Test func `events with the largest connection data stay within the bytes of the limit, on disk too`()
        async throws
    {
        try await withDirectory { directory in
            let bounds = StorageBounds(webhooks: 1000, connections: 0)
            let storage = try SQLiteStorage(directory: directory, bounds: bounds)
            let empty = try await integer("PRAGMA page_count", storage)
            let connections = (0..<200).map { largest($0) }
            for connection in connections {
                var stream = Samples.stream
                stream.id = StreamID(high: 1, low: connection.id.low)
                try await storage.commit([
                    .webhook(Samples.event(.connectionCreated(connection))),
                    .webhook(Samples.event(.streamCreated(stream, of: connection))),
                ])
            }
            let begun = try #require(try await storage.webhookBacklogs()[Samples.project])
            #expect(begun.waiting > 20 && begun.refused == 400 - begun.waiting)
            let waiting = try await integer("SELECT bytes FROM webhookBacklog", storage)
            let full = try await integer("SELECT bytes + reserved FROM webhookBacklog", storage)
            // The last beginning, with the space for its end, may exceed the limits.
            let one = 4 * 6 * Wire.Limits.connectionData
            #expect(waiting >= bounds.webhookBytes && waiting < bounds.webhookBytes + one)
            #expect(full < bounds.webhookBytesOfAll + one)
            #expect(try await storage.endReportedSessions(at: now) == begun.waiting)
            let ended = try await integer("SELECT bytes + reserved FROM webhookBacklog", storage)
            #expect(ended <= full)
            #expect(try await ended == integer("SELECT SUM(length(body) + 512) FROM webhookEvent", storage))
            let pages = try await integer("PRAGMA page_count", storage) - empty
            #expect(pages * 4096 < 2 * full)
            print("webhooks: \(2 * begun.waiting) large events: \(ended) bytes counted, \(pages * 4096) on disk")
            for entry in try await storage.webhooks(of: Samples.project, after: 0, limit: 10_000) {
                try await storage.removeWebhook(entry.id)
            }
            #expect(try await integer("SELECT bytes + reserved FROM webhookBacklog", storage) == 0)
            try await storage.close()
        }
    }

    @Test func `however many connections there are, another one is reported while nothing waits`() async throws {
        let bounds = StorageBounds(webhooks: 1000)
        // Only with SQLite, because it takes a minute with PostgreSQL.
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory, bounds: bounds)
            let (batch, count) = (900, bounds.connections)
            for first in stride(from: 0, to: count, by: batch) {
                try await storage.commit(
                    (first..<min(first + batch, count)).map {
                        .webhook(Samples.event(.connectionCreated(Samples.connection($0))))
                    })
                _ = try await storage.removeWebhooks(of: Samples.project, before: Samples.at + .seconds(1))
                #expect(try await storage.webhookBacklogs()[Samples.project] == .init(waiting: 0, refused: 0))
            }
            try await storage.commit([.webhook(Samples.event(.connectionCreated(Samples.connection(count))))])
            #expect(try await storage.webhookBacklogs()[Samples.project] == .init(waiting: 1, refused: 0))
            #expect(try await storage.endReportedSessions(at: now) == count + 1)
            try await storage.close()
        }
    }

    @Test func `projects that fill the outbox leave a share to each other project`() async throws {
        try await withDirectory { directory in
            let bounds = StorageBounds(webhooks: 1000, connections: 0)
            let storage = try SQLiteStorage(directory: directory, bounds: bounds)
            for project in 1...6 {
                try await storage.commit(
                    (0..<60).map {
                        .webhook(Samples.event(.connectionCreated(largest(60 * project + $0)), project: "\(project)"))
                    })
            }
            let backlogs = try await storage.webhookBacklogs()
            #expect((1...3).allSatisfy { backlogs["\($0)"]!.waiting > 40 })
            #expect((5...6).allSatisfy { backlogs["\($0)"] == .init(waiting: 1, refused: 59) })
            let total = try await integer("SELECT SUM(bytes + reserved) FROM webhookBacklog", storage)
            #expect(total < bounds.webhookBytesOfAll + 6 * 4 * 6 * Wire.Limits.connectionData)
            try await storage.close()
        }
    }

    @Test func `while the disk is nearly full beginnings are refused, and the ends of those before arrive`()
        async throws
    {
        try await withStorage { storage in
            try await storage.commit([.webhook(Samples.event(.connectionCreated(Samples.connection(1))))])
            storage.webhookSignal.isDiskLow.store(true, ordering: .relaxed)
            try await storage.commit([
                .webhook(Samples.event(.connectionCreated(Samples.connection(2)))),
                .webhook(Samples.event(.sessionCreated, project: "2000")),
                .webhook(Samples.event(.connectionDestroyed(Samples.connection(1), .clientDisconnected))),
                .webhook(Samples.event(.connectionDestroyed(Samples.connection(2), .clientDisconnected))),
            ])
            #expect(
                try await storage.webhookBacklogs() == [
                    Samples.project: .init(waiting: 2, refused: 1), "2000": .init(waiting: 0, refused: 1),
                ])
            storage.webhookSignal.isDiskLow.store(false, ordering: .relaxed)
            try await storage.commit([.webhook(Samples.event(.connectionCreated(Samples.connection(3))))])
            #expect(try await storage.webhookBacklogs()[Samples.project]?.waiting == 3)
        }
    }

    @Test func `the size of an outbox from an older version is counted when it is opened`() async throws {
        try await withDirectory { directory in
            try await SQLiteStorage(directory: directory).close()
            let path = directory + "/" + SQLiteStorage.fileName
            try FileManager.default.removeItem(atPath: path)
            let queue = try DatabaseQueue(path: path)
            try Migrations.all.migrate(queue, upTo: "v8 outbox of webhooks")
            try await queue.write { db in
                for number in 0..<3 {
                    try db.execute(
                        sql: """
                            INSERT INTO webhookEvent (project, session, at, body) VALUES (?, '1_session', 5, zeroblob(100));
                            INSERT INTO webhookOpen (project, session, kind, subject, detail)
                            VALUES (?, '1_session', 1, ?, zeroblob(10));
                            """, arguments: ["\(number / 2)", "\(number / 2)", "\(number)"])
                }
            }
            try queue.close()
            let storage = try SQLiteStorage(directory: directory)
            for (project, count) in [("0", 2), ("1", 1)] {
                let row = "FROM webhookBacklog WHERE project = '\(project)'"
                #expect(try await integer("SELECT bytes \(row)", storage) == count * (100 + 512))
                #expect(try await integer("SELECT reserved \(row)", storage) == count * (2 * 10 + 1536))
            }
            try await storage.close()
        }
    }

    @Test func `old events are removed wherever they are in the queue, and counted`() async throws {
        try await withStorage { storage in
            let events = (0..<1300).map { number in
                let time = number % 13 == 0 ? Samples.at : Samples.at - .seconds(number + 1)
                return Change.webhook(
                    Samples.event(.connectionCreated(Samples.connection(number)), at: time))
            }
            try await storage.commit(
                events + [.webhook(Samples.event(.sessionCreated, project: "2000", at: Samples.at - .seconds(9)))])
            #expect(try await storage.removeWebhooks(of: Samples.project, before: Samples.at) == 1200)
            let left = try await storage.webhooks(of: Samples.project, after: 0, limit: 2000)
            #expect(left.count == 100 && left.allSatisfy { $0.at == Samples.at })
            #expect(try await storage.removeWebhooks(of: Samples.project, before: Samples.at) == 0)
            #expect(try await storage.webhookBacklogs()["2000"]?.waiting == 1)
        }
    }

    @Test func `the events of a webhook that was set again in the meantime are not removed`() async throws {
        try await withStorage { storage in
            var random = SystemRandomNumberGenerator()
            var project = StoredProject(name: "x", createdAt: now, using: &random)
            project.setWebhook("https://example.org/", using: &random)
            let key = project.apiKey
            let entry = AuditEntry(at: now, actor: AuditEntry.operatorActor, action: "project.set", subject: key)
            #expect(try await storage.addProject(project, recording: entry))
            try await storage.commit(Samples.visit(1, project: key).map { .webhook($0) })
            try await storage.removeWebhooks(of: key)
            #expect(try await storage.webhookBacklogs()[key]?.waiting == 4)
            _ = try await storage.changeProject(key, or: nil, recording: entry) { $0.webhookURL = nil }
            try await storage.removeWebhooks(of: key)
            #expect(try await storage.webhookBacklogs()[key] == nil)
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
