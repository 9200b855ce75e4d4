import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("SQLite storage", .ownThreads)
struct SQLiteStorageTests: StorageFixtures {
    @Test func `all data survives reopening`() async throws {
        try await withDirectory { directory in
            let ban = Ban(subject: .identity(bob), reason: "spam", createdAt: now, expiresAt: now + .seconds(60))
            let first = try SQLiteStorage(directory: directory)
            try await first.commit([block(bob, carol), block(bob, alice), .report(report(lines: ["a", "b"]))])
            try await first.addBan(ban)
            let reports = try await first.reports(includingClosed: true, limit: 9)
            try await first.close()

            let second = try SQLiteStorage(directory: directory)
            #expect(try await second.person(bob, at: now) == PersonRecord(blocked: [carol, alice], ban: ban))
            #expect(try await second.reports(includingClosed: true, limit: 9) == reports)
            #expect(reports.count == 1)
            try await second.close()
        }
    }

    @Test func `commits survive a power failure, and files are private`() async throws {
        try await withDirectory { parent in
            let directory = parent + "/data"
            let storage = try SQLiteStorage(directory: directory)
            try await storage.commit([block(alice, bob)])
            #expect(try await storage.pragma("journal_mode") == "wal")
            #expect(try await storage.pragma("synchronous") == "2", "FULL")
            #expect(try await storage.pragma("foreign_keys") == "1")
            #expect(try mode(directory) == 0o700)
            for suffix in ["", "-wal", "-shm"] { #expect(try mode(directory + "/confab.sqlite" + suffix) == 0o600) }
            try await storage.close()
        }
    }

    @Test func `a ban by another process changes the counter and the list`() async throws {
        try await withDirectory { directory in
            let server = try SQLiteStorage(directory: directory)
            let command = try SQLiteStorage(directory: directory)
            let ban = Ban(subject: .address("203.0.113.7"), reason: "", createdAt: now)
            let before = try await server.changeCounter()
            try await server.addBan(Ban(subject: .identity(carol), reason: "", createdAt: now))
            #expect(try await server.changeCounter() == before, "the server's own changes do not count")
            try await command.addBan(ban)
            let after = try await server.changeCounter()
            #expect(after != before)
            #expect(try await server.bans(at: now).last == ban)
            #expect(try await server.changeCounter() == after)
            try await command.removeBan(ban.subject)
            #expect(try await server.changeCounter() != after)
            try await command.close()
            try await server.close()
        }
    }

    @Test func `several processes can create the same file at the same time`() async throws {
        try await withDirectory { directory in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let storage = try SQLiteStorage(directory: directory)
                        try await storage.commit([block(alice, person(number))])
                        try await storage.close()
                    }
                }
                try await group.waitForAll()
            }
            let storage = try SQLiteStorage(directory: directory)
            #expect(try await storage.person(alice, at: now).blocked.count == 8)
            try await storage.close()
        }
    }

    @Test func `a backup during writes is consistent`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            try await storage.commit((0..<500).map { .report(report(lines: Array(repeating: "line", count: $0 % 20))) })
            // Each commit contains both directions of a block. An inconsistent copy could contain only one direction.
            let writing = Task {
                var number = 0
                while !Task.isCancelled {
                    let other = person(number)
                    try await storage.commit([block(alice, other), block(other, alice)])
                    number += 1
                }
                return number
            }
            try await until("the first commits are stored") {
                try await storage.person(alice, at: now).blocked.count >= 3
            }
            let copies = directory + "/copy"
            try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
            try await storage.backup(to: copies + "/" + SQLiteStorage.fileName)
            writing.cancel()
            let written = try await writing.value
            #expect(try FileManager.default.contentsOfDirectory(atPath: copies) == [SQLiteStorage.fileName])
            #expect(try mode(copies + "/" + SQLiteStorage.fileName) == 0o600)

            let copy = try SQLiteStorage(directory: copies)
            let blocked = try await copy.person(alice, at: now).blocked
            #expect(blocked.count >= 3 && blocked.count <= written)
            for number in 0..<written {
                let isBlocked = blocked.contains(person(number))
                #expect(try await copy.person(person(number), at: now).blocked == (isBlocked ? [alice] : []))
            }
            #expect(try await copy.reports(includingClosed: true, limit: 1000).count == 500)
            #expect(try await copy.pragma("integrity_check") == "ok")
            try await copy.close()
            try await storage.close()
        }
    }

    @Test func `a backup does not change an existing file`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            let target = directory + "/precious"
            try Data("mine".utf8).write(to: URL(filePath: target))
            await expect(.targetExists) { try await storage.backup(to: target) }
            await expect(.targetExists) { try await storage.backup(to: directory + "/" + SQLiteStorage.fileName) }
            await expect(.notAccessible) { try await storage.backup(to: directory + "/nowhere/backup") }
            #expect(try Data(contentsOf: URL(filePath: target)) == Data("mine".utf8))
            try await storage.close()
            await expect(.closed) { try await storage.backup(to: directory + "/late") }
            #expect(!FileManager.default.fileExists(atPath: directory + "/late"))
        }
    }

    @Test func `a file of a newer version is rejected with advice`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            try await storage.execute("INSERT INTO grdb_migrations VALUES ('v99 something to come')")
            try await storage.close()
            let error = await expect(.newerSchema) { _ = try SQLiteStorage(directory: directory) }
            #expect(error?.message.contains("Install that version") == true)
        }
    }

    @Test func `a file that is not a database is rejected and not changed`() async throws {
        try await withDirectory { directory in
            let file = URL(filePath: directory + "/" + SQLiteStorage.fileName)
            let text = Data(String(repeating: "not a database ", count: 100).utf8)
            try text.write(to: file)
            await expect(.corrupt) { _ = try SQLiteStorage(directory: directory) }
            #expect(try Data(contentsOf: file) == text)
        }
    }

    @Test func `a commit is atomic`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            try await storage.execute(refusing(carol))
            await expect(.rejected) { try await storage.commit([block(alice, bob), block(alice, carol)]) }
            #expect(try await storage.person(alice, at: now).blocked == [])
            try await storage.close()
        }
    }

    @Test func `what an operator does is not stored without its audit entry`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            let (first, second) = (BanSubject.identity(bob), BanSubject.identity(carol))
            let entry = AuditEntry(at: now, actor: AuditEntry.operatorActor, action: "ban.add", subject: "\(bob)")
            try await storage.commit([.report(report())])
            let id = try #require(try await storage.reports(includingClosed: false, limit: 1).first?.id)
            let kept = Ban(subject: first, reason: "", createdAt: now)
            try await storage.addBan(kept)
            try await storage.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'refused'); END")
            await expect(.rejected) {
                try await storage.addBan(Ban(subject: second, reason: "", createdAt: now), recording: entry)
            }
            await expect(.rejected) { try await storage.removeBan(first, recording: entry) }
            await expect(.rejected) { try await storage.closeReport(id: id, at: now, recording: entry) }
            #expect(try await storage.bans(at: now) == [kept])
            #expect(try await storage.reports(includingClosed: false, limit: 1).map(\.id) == [id])
            try await storage.close()
        }
    }

    @Test func `commits that arrive during a transaction share the next one`() async throws {
        try await withDirectory { directory in
            let gate = StorageGate()
            let storage = try SQLiteStorage(directory: directory, beforeTransaction: { await gate.enter($0) })
            try await storage.execute(refusing(carol))
            let first = Task { try await storage.commit([block(alice, bob)]) }
            try await until("the first transaction began") { await gate.sizes == [1] }
            let others = (0..<50).map { number in Task { try await storage.commit([block(bob, person(number))]) } }
            try await until("the others wait") { await storage.writer.waitingCount == 50 }
            // Canceling one caller must not undo the shared transaction.
            others[7].cancel()
            await gate.open()
            try await first.value
            for other in others { try await other.value }
            #expect(await gate.sizes == [1, 50])
            #expect(try await storage.person(bob, at: now).blocked.count == 50)
            try await storage.close()
        }
    }

    @Test func `an invalid change does not fail the others in its transaction`() async throws {
        try await withDirectory { directory in
            let gate = StorageGate()
            let storage = try SQLiteStorage(directory: directory, beforeTransaction: { await gate.enter($0) })
            try await storage.execute(refusing(carol))
            let first = Task { try await storage.commit([block(alice, bob)]) }
            try await until("the first transaction began") { await gate.sizes == [1] }
            var good: [Task<Void, any Error>] = []
            for number in [1, 2] {
                good.append(Task { try await storage.commit([block(bob, person(number))]) })
                try await until("it waits") { await storage.writer.waitingCount == number }
            }
            let bad = Task { try await storage.commit([block(bob, alice), block(bob, carol)]) }
            try await until("all wait") { await storage.writer.waitingCount == 3 }
            await gate.open()
            try await first.value
            for commit in good { try await commit.value }
            await expect(.rejected) { try await bad.value }
            #expect(await gate.sizes == [1, 4, 1, 3, 1, 2], "first one commit, then the group, then its halves")
            #expect(try await storage.person(bob, at: now).blocked.sorted() == [person(1), person(2)])
            try await storage.close()
        }
    }

    @Test func `closing waits for earlier commits`() async throws {
        try await withDirectory { directory in
            let gate = StorageGate()
            let storage = try SQLiteStorage(directory: directory, beforeTransaction: { await gate.enter($0) })
            let commit = Task { try await storage.commit([block(alice, bob)]) }
            try await until("the transaction began") { await gate.sizes == [1] }
            let closing = Task { try await storage.close() }
            try await until("new commits are rejected") {
                do { try await storage.commit([]) } catch { return true }
                return false
            }
            await gate.open()
            try await commit.value
            try await closing.value
        }
    }
}

@Suite("Group commit", .ownThreads)
struct GroupCommitWriterTests: StorageFixtures {
    @Test func `a locked file fails a whole group once instead of once per commit`() async throws {
        let gate = StorageGate()
        let writer = GroupCommitWriter<Change> { changes in
            await gate.enter(changes.count)
            if changes.count > 1 { throw StorageError(.busy, "locked") }
        }
        let first = Task { try await writer.commit([block(alice, bob)]) }
        try await until("the first transaction began") { await gate.sizes == [1] }
        let others = (0..<5).map { _ in Task { try await writer.commit([block(alice, bob)]) } }
        try await until("the others wait") { await writer.waitingCount == 5 }
        await gate.open()
        try await first.value
        for other in others { await expect(.busy) { try await other.value } }
        #expect(await gate.sizes == [1, 5])
    }

    @Test func `a bad commit in a large group is found by halves, and only that commit fails`() async throws {
        let gate = StorageGate()
        let bad = block(carol, bob)
        let writer = GroupCommitWriter<Change> { changes in
            await gate.enter(changes.count)
            if changes.contains(bad) { throw StorageError(.rejected, "refused") }
        }
        var lists = Array(repeating: [block(alice, bob)], count: 128)
        lists[77] = [bad]
        await gate.open()
        let results = await writer.commitEach(lists)
        #expect(results.indices.filter { results[$0] != nil } == [77])
        #expect(results[77]?.code == .rejected)
        let sizes = await gate.sizes
        #expect(sizes.count == 15, "two transactions for each halving, instead of 129: \(sizes)")
    }
}
