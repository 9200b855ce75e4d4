import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Storage of archives", .ownThreads)
struct StorageArchiveTests: StorageFixtures {
    private let session = SessionID("2_session")!
    private let other = SessionID("2_other")!

    private func archive(_ number: UInt64, _ change: (inout ArchiveRecord) -> Void = { _ in }) -> ArchiveRecord {
        var archive = ArchiveRecord(
            id: ArchiveID(high: 5, low: number), project: "1000", session: session, request: ArchiveRequest(),
            createdAt: now + .seconds(Int64(number)))
        change(&archive)
        return archive
    }

    private var full: ArchiveRecord {
        archive(1) { archive in
            archive.request.name = "Meeting \u{1F3A5} \"quoted\""
            (archive.request.output, archive.request.streamMode) = (.individual, .manual)
            (archive.request.hasAudio, archive.request.hasVideo) = (true, false)
            (archive.request.resolution, archive.request.tag) = ("1280x720", "tag")
            archive.request.layout = CompositionLayout("custom", stylesheet: "stream {}", screenshareType: "pip")
            (archive.request.maxBitrate, archive.request.quantization, archive.node) = (200_000, 20, "n2")
            (archive.status, archive.reason, archive.beganAt) = (.available, "user initiated", now + .seconds(2))
            (archive.updatedAt, archive.duration) = (now + .seconds(90), .milliseconds(61_001))
            archive.selection = [SelectedStream(StreamID(high: 1, low: 1), hasAudio: true, hasVideo: false)]
            archive.files = (0..<3).map { index in
                RecordedFile(
                    stream: StreamID(high: 1, low: UInt64(index)), name: "\(index).webm", size: 5_000_000_000,
                    start: .seconds(index), stop: .milliseconds(9500), connectionData: "name=\"Ann\"\n",
                    videoType: index == 0 ? nil : .screen)
            }
            archive.composed = ComposedFile(name: "archive.mp4", size: 77)
            archive.obstacle = .diskSpace
        }
    }

    @Test func `an archive is returned as it was stored last`() async throws {
        try await withStorage { storage in
            #expect(try await storage.archive(full.id) == nil)
            try await storage.commit([.archiveStored(archive(1))])
            #expect(try await storage.archive(full.id) == archive(1))
            try await storage.commit([.archiveStored(full)])
            #expect(try await storage.archive(full.id) == full)
            try await storage.commit([.archiveForgotten(full.id)])
            #expect(try await storage.archive(full.id) == nil)
        }
    }

    @Test func `lists are newest first, in pages, of one project or one of its sessions`() async throws {
        try await withStorage { storage in
            let all = (1...5).map { number in
                archive(UInt64(number)) { if number.isMultiple(of: 2) { $0.session = other } }
            }
            let foreign = archive(9) { $0.project = "2000" }
            try await storage.commit((all + [foreign]).map { .archiveStored($0) })
            var page = try await storage.archives(of: "1000", session: nil, offset: 0, limit: 2)
            #expect(page.count == 5 && page.records == [all[4], all[3]])
            page = try await storage.archives(of: "1000", session: nil, offset: 4, limit: 9)
            #expect(page.count == 5 && page.records == [all[0]])
            page = try await storage.archives(of: "1000", session: other, offset: 0, limit: 9)
            #expect(page.count == 2 && page.records == [all[3], all[1]])
            page = try await storage.archives(of: "1000", session: nil, offset: 9, limit: 9)
            #expect(page.count == 5 && page.records.isEmpty)
        }
    }

    @Test func `unfinished archives survive a restart, also from an earlier version`() async throws {
        try await withDatabases { open in
            var storage = try await open()
            let statuses = ArchiveStatus.allCases
            try await storage.commit(
                statuses.indices.map { index in .archiveStored(archive(UInt64(index)) { $0.status = statuses[index] }) }
            )
            try await storage.close()
            storage = try await open()
            #expect(try await storage.unfinishedArchives(of: "").map(\.status) == [.started, .paused, .stopped])
            try await storage.commit([.archiveStored(archive(9) { $0.node = "n2" })])
            #expect(try await storage.unfinishedArchives(of: "n2").map(\.id.low) == [9])
            try await storage.close()
        }
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            for table in ["archive", "broadcast"] { try await storage.execute("DROP TABLE \(table)") }
            try await storage.execute(
                "DELETE FROM grdb_migrations WHERE identifier LIKE 'v11 %' OR identifier LIKE 'v12 %'")
            try await storage.close()
            let upgraded = try SQLiteStorage(directory: directory)
            try await upgraded.commit([.archiveStored(full)])
            #expect(try await upgraded.archive(full.id) == full)
            try await upgraded.close()
        }
    }

    @Test func `available archives expire because of their age, or because their project was deleted`() async throws {
        try await withStorage { storage in
            let entry = AuditEntry(at: now, actor: "operator", action: "project.delete", subject: "2000")
            var generator = SystemRandomNumberGenerator()
            let project = StoredProject(apiKey: "2000", secret: .generated(using: &generator), createdAt: now)
            _ = try await storage.addProject(project, recording: entry)
            func available(_ number: UInt64, project: String = "1000") -> ArchiveRecord {
                archive(number) { archive in
                    (archive.status, archive.updatedAt) = (.available, now + .seconds(Int64(number)))
                    archive.project = project
                }
            }
            let all = [available(1), available(2), available(3, project: "2000"), archive(4) { $0.status = .failed }]
            try await storage.commit(all.map { .archiveStored($0) })
            let limit = now + .seconds(2)
            #expect(try await storage.archivesToExpire(availableBefore: limit, node: "", limit: 9) == [all[0]])
            #expect(try await storage.archivesToExpire(availableBefore: nil, node: "", limit: 9) == [])
            let every = try await storage.archivesToExpire(
                availableBefore: Timestamp(milliseconds: .max), node: "", limit: 9)
            #expect(every == Array(all.prefix(3)))
            _ = try await storage.removeProject("2000", recording: entry)
            #expect(try await storage.archivesToExpire(availableBefore: nil, node: "", limit: 9) == [all[2]])
            #expect(try await storage.archivesToExpire(availableBefore: limit, node: "", limit: 9) == [all[0], all[2]])
            #expect(try await storage.archivesToExpire(availableBefore: limit, node: "", limit: 1) == [all[0]])
            #expect(try await storage.archivesToExpire(availableBefore: limit, node: "n2", limit: 9) == [])
        }
    }

    @Test func `archives that wait for ffmpeg or disk space are found by when they stopped or by their project`()
        async throws
    {
        try await withStorage { storage in
            let entry = AuditEntry(at: now, actor: "operator", action: "project.delete", subject: "2000")
            var generator = SystemRandomNumberGenerator()
            let project = StoredProject(apiKey: "2000", secret: .generated(using: &generator), createdAt: now)
            _ = try await storage.addProject(project, recording: entry)
            func stopped(_ number: UInt64, _ obstacle: ComposingObstacle?, project: String = "1000") -> ArchiveRecord {
                archive(number) { archive in
                    (archive.status, archive.updatedAt) = (.stopped, now + .seconds(Int64(number)))
                    (archive.obstacle, archive.project) = (obstacle, project)
                }
            }
            let all = [
                stopped(1, nil), stopped(2, .otherProcess), stopped(3, .ffmpeg), stopped(4, .diskSpace),
                stopped(5, .ffmpeg, project: "2000"),
            ]
            try await storage.commit(all.map { .archiveStored($0) })
            func found(_ limit: Timestamp?, node: String = "", _ count: Int = 9) async throws -> [ArchiveRecord] {
                try await storage.waitingArchives(stoppedBefore: limit, node: node, limit: count)
            }
            #expect(try await found(now + .seconds(4)) == [all[2]])
            #expect(try await found(now + .seconds(9)) == Array(all[2...]))
            #expect(try await found(now + .seconds(9), 1) == [all[2]])
            #expect(try await found(now + .seconds(9), node: "n2") == [])
            #expect(try await found(nil) == [])
            _ = try await storage.removeProject("2000", recording: entry)
            #expect(try await found(nil) == [all[4]])
        }
    }

    @Test func `rows of expired archives are deleted after a while, and those of failed ones remain, which have files`()
        async throws
    {
        try await withStorage { storage in
            let failed = archive(3) { $0.status = .failed }
            let recent = archive(4) { ($0.status, $0.updatedAt) = (.expired, now + .seconds(99)) }
            let kept = [archive(1) { $0.status = .available }, failed, recent]
            let foreign = archive(5) { ($0.status, $0.node) = (.failed, "n2") }
            let old = archive(2) { $0.status = .expired }
            try await storage.commit((kept + [old, foreign]).map { .archiveStored($0) })
            let limit = now + .seconds(50)
            #expect(try await storage.deleteOld(.archives, olderThan: limit) == 1)
            for archive in kept { #expect(try await storage.archive(archive.id) == archive) }
            #expect(try await storage.failedArchives(before: limit, node: "", limit: 9) == [failed])
            #expect(try await storage.failedArchives(before: failed.updatedAt, node: "", limit: 9) == [])
            #expect(try await storage.failedArchives(before: limit, node: "n2", limit: 9) == [foreign])
        }
    }

    @Test func `rows of uploaded archives are deleted after a while, and at once without their project`() async throws {
        try await withStorage { storage in
            let entry = AuditEntry(at: now, actor: "operator", action: "project.delete", subject: "2000")
            var generator = SystemRandomNumberGenerator()
            let project = StoredProject(apiKey: "2000", secret: .generated(using: &generator), createdAt: now)
            _ = try await storage.addProject(project, recording: entry)
            func uploaded(_ number: UInt64, project: String = "1000") -> ArchiveRecord {
                archive(number) { archive in
                    (archive.status, archive.updatedAt) = (.uploaded, now + .seconds(Int64(number)))
                    archive.project = project
                }
            }
            let (old, recent, foreign) = (uploaded(1), uploaded(2), uploaded(3, project: "2000"))
            let others = [archive(4) { $0.status = .available }, archive(5) { $0.status = .expired }]
            try await storage.commit((others + [old, recent, foreign]).map { .archiveStored($0) })
            #expect(try await storage.deleteOld(.uploadedArchives, olderThan: .distantPast) == 0)
            #expect(try await storage.deleteOld(.uploadedArchives, olderThan: recent.updatedAt) == 1)
            #expect(try await storage.archive(old.id) == nil)
            _ = try await storage.removeProject("2000", recording: entry)
            #expect(try await storage.deleteOld(.uploadedArchives, olderThan: .distantPast) == 1)
            #expect(try await storage.archive(foreign.id) == nil)
            for archive in others + [recent] { #expect(try await storage.archive(archive.id) == archive) }
        }
    }

    @Test func `an archive that was edited by hand into nonsense is reported as damaged`() async throws {
        try await withDatabases { open in
            let storage = try await open()
            try await storage.commit([.archiveStored(full)])
            try await storage.execute("UPDATE archive SET status = 'smoke'")
            await expect(.corrupt) { _ = try await storage.archive(full.id) }
            #expect(try await storage.unfinishedArchives(of: "") == [])
            try await storage.close()
        }
    }

    @Test(arguments: ["", "{}", "[]", "null", #"{"request":{},"duration":1,"selection":[],"files":[]}"#])
    func `details that are not an archive's are refused`(_ text: String) {
        var archive = full
        #expect(!ArchiveDetail.read(Array(text.utf8), into: &archive))
    }

    @Test func `a webhook gets each status of an archive, as long as its outbox has room`() async throws {
        try await withStorage(StorageBounds(webhooks: 2)) { storage in
            func event(_ status: ArchiveStatus) -> Change {
                .webhook(
                    WebhookEvent(
                        project: "1000", session: session, at: now, .archive(archive(1) { $0.status = status })))
            }
            try await storage.commit([event(.started), event(.stopped), event(.available)])
            let entries = try await storage.webhooks(of: "1000", after: 0, limit: 9)
            #expect(entries.count == 2)
            #expect(try await storage.webhookBacklogs()["1000"]?.refused == 1)
            #expect(try await storage.endReportedSessions(at: now) == 0, "nothing has to end")
        }
    }
}
