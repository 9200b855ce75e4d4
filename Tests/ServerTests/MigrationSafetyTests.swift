import Foundation
import GRDB
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The copy before a migration", .ownThreads) struct MigrationSafetyTests: StorageFixtures {
    /// The schema of a database before the last migration, and its version.
    private static let oldSchema = "v2 people and calls"
    private static let oldVersion = 2

    /// Makes a database of an older version with `blocks` blocks, as a single file.
    private func makeOld(_ directory: String, blocks: Int = 2000) throws {
        let pool = try DatabasePool(path: file(directory))
        try Migrations.all.migrate(pool, upTo: Self.oldSchema)
        try pool.write { db in
            for number in 0..<blocks {
                try db.execute(
                    sql: "INSERT INTO block (owner, blocked, createdAt) VALUES (?, ?, 1)",
                    arguments: [Data(alice.bytes), Data(person(number).bytes)])
            }
        }
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
        try pool.close()
    }

    private func file(_ directory: String) -> String { directory + "/" + SQLiteStorage.fileName }
    private func copies(_ directory: String) throws -> [String] { try MigrationSafety.copies(in: directory) }

    private func open(_ directory: String, _ safety: MigrationSafety) throws -> SQLiteStorage {
        try SQLiteStorage(directory: directory, safety: safety, beforeTransaction: { _ in })
    }

    private func schema(_ path: String) throws -> Set<String> {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        return try queue.read { try Migrations.all.appliedIdentifiers($0) }
    }

    private func at(_ seconds: Double) -> MigrationSafety {
        MigrationSafety(now: { Date(timeIntervalSince1970: seconds) })
    }

    @Test func `an older database is copied, then migrated, and the copy has everything that was there`() async throws {
        try await withDirectory { directory in
            try makeOld(directory)
            let storage = try open(directory, at(1_800_000_000))
            #expect(try copies(directory) == ["confab-v2-20270115T080000Z.sqlite"])
            let copy = directory + "/confab-v2-20270115T080000Z.sqlite"
            #expect(storage.notes.contains { $0.contains(copy) })
            #expect(try mode(copy) == 0o600)
            #expect(try !schema(copy).contains { $0.hasPrefix("v3") })
            #expect(try await storage.person(alice, at: now).blocked.count == 2000)
            try await storage.close()
            #expect(try schema(file(directory)).count == Migrations.all.migrations.count)

            // What an operator does to go back: the copy alone is a complete database of the old version.
            try FileManager.default.removeItem(atPath: file(directory))
            try FileManager.default.moveItem(atPath: copy, toPath: file(directory))
            let restored = try open(directory, at(1_800_000_001))
            #expect(try await restored.person(alice, at: now).blocked.count == 2000)
            try await restored.close()
        }
    }

    @Test func `a new database and one of the current version are not copied`() async throws {
        try await withDirectory { directory in
            for _ in 0..<2 {
                let storage = try SQLiteStorage(directory: directory)
                #expect(storage.notes.isEmpty)
                try await storage.close()
            }
            #expect(try copies(directory).isEmpty)
        }
    }

    @Test func `the last two copies are kept, and no other file is deleted`() async throws {
        try await withDirectory { directory in
            let others = ["confab-backup.sqlite", "confab-v1-notes.txt", "confab-v9-20200101T000000Z.sqlite.old"]
            for name in others { try Data("mine".utf8).write(to: URL(filePath: directory + "/" + name)) }
            let earlier = ["confab-v10-20200101T000000Z.sqlite", "confab-v1-20210101T000000Z.sqlite"]
            for name in earlier { try Data("old".utf8).write(to: URL(filePath: directory + "/" + name)) }
            try makeOld(directory)
            try await open(directory, at(1_800_000_000)).close()
            #expect(try copies(directory) == [earlier[1], "confab-v2-20270115T080000Z.sqlite"])
            // A clock that is behind.
            let last = "confab-v3-19700101T000100Z.sqlite"
            #expect(FileManager.default.createFile(atPath: directory + "/" + last, contents: nil))
            try MigrationSafety.deleteOldCopies(beside: directory + "/" + last)
            #expect(try copies(directory) == [last, "confab-v2-20270115T080000Z.sqlite"])
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(Set(others).isSubset(of: names))
        }
    }

    @Test func `the copy of a version replaces an earlier one, so that failing upgrades do not fill the disk`()
        async throws
    {
        try await withDirectory { directory in
            let earlier = "confab-v2-20200101T000000Z.sqlite"
            try Data("old".utf8).write(to: URL(filePath: directory + "/" + earlier))
            try makeOld(directory)
            try await open(directory, at(1_800_000_000)).close()
            #expect(try copies(directory) == ["confab-v2-20270115T080000Z.sqlite"])
        }
    }

    @Test(arguments: [256 << 20, 0])
    func `a damaged database is neither migrated nor changed`(largeSize: Int) async throws {
        try await withDirectory { directory in
            try makeOld(directory)
            var bytes = try Data(contentsOf: URL(filePath: file(directory)))
            // Spoil a page in the middle, but not the schema, so that the file still opens.
            let page = 4096
            let middle = bytes.count / page / 2 * page
            bytes.replaceSubrange(middle..<middle + page, with: Data(repeating: 0xA5, count: page))
            try bytes.write(to: URL(filePath: file(directory)))
            let error = await expect(.corrupt) { _ = try open(directory, MigrationSafety(largeSize: largeSize)) }
            #expect(error?.message.contains("Restore a backup") == true, "\(String(describing: error))")
            #expect(try copies(directory).isEmpty)
            #expect(try schema(file(directory)).count == Self.oldVersion)
        }
    }

    @Test func `without enough space the database is not migrated, and the message says how much is needed`()
        async throws
    {
        try await withDirectory { directory in
            try makeOld(directory)
            let error = await expect(.diskFull) { _ = try open(directory, MigrationSafety(freeSpace: { _ in 1000 })) }
            #expect(error?.message.contains("1 MiB of free space") == true, "\(String(describing: error))")
            #expect(try copies(directory).isEmpty)
            #expect(try schema(file(directory)).count == Self.oldVersion)
            // With space it continues where it stopped.
            try await open(directory, MigrationSafety()).close()
            #expect(try copies(directory).count == 1)
        }
    }

    @Test func `what an interrupted copy left behind is replaced`() async throws {
        try await withDirectory { directory in
            try makeOld(directory)
            let left = directory + "/confab-v2-20270115T080000Z.sqlite.unfinished"
            try Data("half".utf8).write(to: URL(filePath: left))
            try await open(directory, at(1_800_000_000)).close()
            #expect(!FileManager.default.fileExists(atPath: left))
            #expect(try schema(directory + "/" + copies(directory)[0]).count == Self.oldVersion)
        }
    }
}
