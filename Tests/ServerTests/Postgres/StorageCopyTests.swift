import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Copying storage", .ownThreads) struct StorageCopyTests: StorageFixtures {
    /// Stores something in every table.
    private func fill(_ storage: any SQLStorage) async throws {
        let device = LinkedDevice(identity: IdentityID(high: 7, low: 7), label: "Phone 👋🏽", linkedAt: now)
        let call = StoredCall(
            id: CallID(high: 3, low: 1), session: try #require(SessionID("1_call")), caller: alice, callee: bob,
            callerName: "A", calleeName: "B", video: true, placedAt: now, ringsUntil: now + .seconds(30))
        let record = CallRecord(
            call: CallID(high: 3, low: 2), other: bob, otherName: "B", direction: .incoming, outcome: .missed,
            video: false, at: now, duration: nil, isSeen: false)
        var options = RoomOptions()
        (options.capacity, options.persistent) = (25, true)
        var room = StoredRoom(
            id: RoomID(high: 9, low: 1), name: try #require(RoomName("Tea")), options: options, createdAt: now,
            usedAt: now)
        (room.password, room.bans) = (RoomPassword(salt: [0, 1], digest: [255]), [carol])
        let session = try #require(SessionID("1_session"))
        try await storage.commit(
            (0..<2500).map { block(person($0 / 900), person(10_000 + $0)) }
                + (0..<3).map { number -> Change in
                    var written = report(lines: ["a", "ü\n\(number)"])
                    written.sample = ReportedSample(
                        jpeg: [0xFF, 0xD8, UInt8(number)], at: now, verdict: .warn, warnings: 1)
                    return .report(written)
                }
                + [
                    .profile(alice, PersonID(high: 5, low: 5), Profile(name: "Ünï", isVisible: true), at: now),
                    .linked(device, to: alice), .keptInTouch(alice, bob, names: ["A", "B"], at: now), .callPlaced(call),
                    .callLogged(record, of: alice), .roomStored(room), .muted(session, true, by: .server, at: now),
                    .revoked(
                        Revocation(
                            session: session, fingerprint: [1, 0, 255], expiresAt: now + .seconds(9),
                            by: .application("1"), of: bob, at: now)),
                    .archiveStored(
                        ArchiveRecord(
                            id: ArchiveID(high: 5, low: 1), project: "1", session: session, request: ArchiveRequest(),
                            createdAt: now)),
                    .broadcastStored(
                        BroadcastRecord(
                            id: BroadcastID(high: 6, low: 1), project: "1", session: session,
                            request: BroadcastRequest(), key: BroadcastKey(high: 7, low: 1), createdAt: now)),
                    .webhook(WebhookSamples.event(.sessionCreated)),
                    .webhook(WebhookSamples.event(.connectionCreated(WebhookSamples.connection))),
                ])
        try await storage.addPushEndpoint(
            PushRegistration(kind: .apns, endpoint: "ab", sandbox: true), of: alice, device: alice, at: now)
        try await storage.addBan(Ban(subject: .address("203.0.113.7"), reason: "x", createdAt: now))
        var random = SystemRandomNumberGenerator()
        for name in ["kept", "deleted"] {
            let project = StoredProject(name: name, createdAt: now, using: &random)
            let entry = AuditEntry(at: now, actor: "x", action: name, subject: project.apiKey)
            _ = try await storage.addProject(project, recording: entry)
            if name == "deleted" { _ = try await storage.removeProject(project.apiKey, recording: entry) }
        }
        // The number of the last report must not be used again.
        try await storage.execute("DELETE FROM report WHERE id = (SELECT max(id) FROM report)")
    }

    /// Returns all rows of all tables. Booleans are numbers, as in SQLite.
    private func content(_ storage: some SQLStorage) async throws -> [String: [[SQLValue]]] {
        try await storage.read { transaction in
            var found: [String: [[SQLValue]]] = [:]
            for table in StoredTable.all {
                let key = table.key.joined(separator: ", ")
                found[table.name] = try transaction.rows("SELECT * FROM \(table.name) ORDER BY \(key)", []).map { row in
                    zip(row.columns, row.values).sorted { $0.0.lowercased() < $1.0.lowercased() }.map { _, value in
                        if case .boolean(let value) = value { .integer(value ? 1 : 0) } else { value }
                    }
                }
            }
            return found
        }
    }

    private func check(_ source: some SQLStorage, _ target: some SQLStorage) async throws {
        let (before, after) = (try await content(source), try await content(target))
        for table in StoredTable.all {
            #expect(before[table.name]?.isEmpty == false, "\(table.name) has rows")
            #expect(before[table.name] == after[table.name], "\(table.name)")
        }
        // Numbers continue where they were.
        for storage in [source as any SQLStorage, target] {
            try await storage.commit([.report(report()), block(alice, carol)])
            let reports = try await storage.reports(includingClosed: true, limit: 10)
            #expect(reports.map(\.id).max() == 4)
            #expect(try await storage.person(alice, at: now).blocked == [carol])
        }
    }

    @Test func `a copy between two SQLite databases has the same rows and numbers`() async throws {
        try await withDirectory { first in
            try await withDirectory { second in
                let (source, target) = (try SQLiteStorage(directory: first), try SQLiteStorage(directory: second))
                try await fill(source)
                let done = try await StorageCopy.run(source, target) { _ in }
                #expect(done.first { $0.table == "block" } == .init(table: "block", copied: 2500, total: 2500))
                try await check(source, target)
                await expect(.targetExists) { _ = try await StorageCopy.run(source, target) { _ in } }
                try await source.close()
                try await target.close()
            }
        }
    }

    @Test(.enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
    func `a copy to PostgreSQL and back has the same rows and numbers`() async throws {
        try await withPostgres { url in
            try await withDirectory { first in
                let source = try SQLiteStorage(directory: first)
                try await fill(source)
                try await source.close()
                let key = SecretText(Data(repeating: 7, count: 32).base64EncodedString())
                _ = try ServerKeyFile.create(first, key)
                let there = try await blocking { try StorageCopy(from: .directory(first), to: .postgres(url)) }
                _ = try await there.run { _ in }
                try await there.close()
                let before = try SQLiteStorage(directory: first)
                try await withDirectory { second in
                    let back = try await blocking { try StorageCopy(from: .postgres(url), to: .directory(second)) }
                    _ = try await back.run { _ in }
                    #expect(try back.notes().count == 1, "the key is missing")
                    try await back.close()
                    let returned = try SQLiteStorage(directory: second)
                    let postgres = try await blocking { try PostgresStorage(url: url) }
                    #expect(try await postgres.serverKey() == ServerKeyFile.fingerprint(of: key))
                    #expect(try await content(before) == content(returned))
                    try await check(before, postgres)
                    try await returned.close()
                    try await postgres.close()
                }
                try await before.close()
            }
        }
    }

    @Test(.enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
    func `a copy between places with different server keys is refused`() async throws {
        try await withPostgres { url in
            try await withDirectory { directory in
                try await SQLiteStorage(directory: directory).close()
                _ = try ServerKeyFile.create(directory, SecretText(Data(repeating: 7, count: 32).base64EncodedString()))
                let other = ServerKeyFile.fingerprint(of: SecretText("another"))
                try await blocking { try PostgresStorage(url: url, role: .server, serverKey: other) }.close()
                let copy = try await blocking { try StorageCopy(from: .directory(directory), to: .postgres(url)) }
                let error = await expect(.notAccessible) { _ = try await copy.run { _ in } }
                #expect(error?.message.contains("server.key") == true)
                try await copy.close()
            }
        }
    }

    @Test
    func `a command without the URL refuses to use the data directory after a move, until the data is moved back`()
        async throws
    {
        try await withDirectory { directory in
            var configuration = ConfabConfiguration()
            configuration.dataDirectory = directory
            try await configuration.openStorage().close()
            try MovedData.mark(directory)
            let error = await expect(.notAccessible) { _ = try configuration.openStorage() }
            #expect(error?.message.contains("CONFAB_STORAGE_URL") == true)
            MovedData.unmark(directory)
            try await configuration.openStorage().close()
        }
    }

    @Test(.enabled(if: PostgresCluster.isInstalled, "\(PostgresCluster.missing)"))
    func
        `a move to PostgreSQL marks the data directory, a move back removes the mark, and a server with a URL marks too`()
        async throws
    {
        try await withPostgres { url in
            try await withDirectory { directory in
                var configuration = ConfabConfiguration()
                configuration.dataDirectory = directory
                _ = try ProjectFile.open(configuration)
                func isRefused() async -> Bool {
                    do {
                        try await configuration.openStorage().close()
                        return false
                    } catch {
                        return true
                    }
                }
                func copy(_ source: StorageCopy.Place, _ target: StorageCopy.Place) async throws {
                    let copy = try await blocking { try StorageCopy(from: source, to: target) }
                    _ = try await copy.run { _ in }
                    try await copy.close()
                }
                #expect(await !isRefused())
                try await copy(.directory(directory), .postgres(url))
                #expect(await isRefused())
                try FileManager.default.removeItem(atPath: directory + "/" + SQLiteStorage.fileName)
                try await copy(.postgres(url), .directory(directory))
                #expect(await !isRefused())
                try await TestServer.run(dataDirectory: directory, { $0.storage.url = url }) { _ in }
                #expect(await isRefused())
            }
        }
    }

    @Test func `a copy is refused while a server uses the data directory, and from a directory without a database`()
        async throws
    {
        try await withDirectory { directory in
            await expect(.notAccessible) {
                _ = try StorageCopy(from: .directory(directory), to: .directory(directory + "/new"))
            }
            let lock = try DirectoryLock(directory: directory)
            try await SQLiteStorage(directory: directory).close()
            #expect(throws: DataDirectoryError.self) {
                _ = try StorageCopy(from: .directory(directory), to: .directory(directory + "/new"))
            }
            withExtendedLifetime(lock) {}
        }
    }
}
