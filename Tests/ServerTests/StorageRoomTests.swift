import Foundation
import GRDB
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Storage of rooms, both implementations", .ownThreads)
struct StorageRoomTests: StorageFixtures {
    private func room(_ number: UInt64, _ change: (inout StoredRoom) -> Void = { _ in }) throws -> StoredRoom {
        var options = RoomOptions()
        (options.capacity, options.persistent) = (25, true)
        var room = StoredRoom(
            id: RoomID(high: 9, low: number), name: try #require(RoomName("Room \(number)")), options: options,
            createdAt: now + .seconds(Int64(number)), usedAt: now)
        change(&room)
        return room
    }

    @Test(arguments: StorageKind.allCases)
    func `rooms are returned as they were stored last, oldest first`(_ kind: StorageKind) async throws {
        try await kind.withStorage { storage in
            let second = try room(2)
            let first = try room(1) { room in
                room.options.media = .mesh
                (room.options.locked, room.options.lobby, room.options.chat) = (true, true, false)
                (room.options.share, room.options.password) = (.hosts, true)
                room.password = RoomPassword(salt: [1, 2], digest: [3, 4, 5])
                (room.creator, room.hasHostTokens) = (alice, true)
                room.bans = [bob, carol]
                room.revokedTokens = [Array(0..<16), Array(16..<32)]
            }
            try await storage.commit([.roomStored(second), .roomStored(first)])
            #expect(try await storage.rooms() == [first, second])
            var changed = first
            (changed.password, changed.options.password, changed.bans) = (nil, false, [])
            try await storage.commit([.roomStored(changed), .roomForgotten(second.id)])
            #expect(try await storage.rooms() == [changed])
            try await storage.commit([.roomForgotten(second.id)])
        }
    }

    @Test(arguments: StorageKind.allCases)
    func `a person's rooms are exported, and stay without a creator when the person is deleted`(
        _ kind: StorageKind
    ) async throws {
        try await kind.withStorage { storage in
            let own = try room(1) { $0.creator = alice }
            let other = try room(2) { $0.creator = bob }
            try await storage.commit([.roomStored(own), .roomStored(other)])
            #expect(try await storage.everything(of: alice, at: now).rooms.map(\.name) == [own.name])
            try await storage.commit([.deleted(alice)])
            #expect(try await storage.rooms().map(\.creator) == [nil, bob])
        }
    }

    @Test func `rooms survive reopening, and an upgrade from the version before`() async throws {
        try await withDirectory { directory in
            let path = directory + "/" + SQLiteStorage.fileName
            let pool = try DatabasePool(path: path)
            try Migrations.all.migrate(pool, upTo: "v4 use of profiles")
            try pool.close()
            let stored = try room(1) { $0.bans = [alice] }
            let storage = try SQLiteStorage(directory: directory)
            #expect(try await storage.rooms() == [])
            try await storage.commit([.roomStored(stored)])
            try await storage.close()
            #expect(try MigrationSafety.copies(in: directory).count == 1, "the database was copied first")
            let reopened = try SQLiteStorage(directory: directory)
            #expect(try await reopened.rooms() == [stored])
            try await reopened.close()
        }
    }

    @Test func `a room that was edited by hand into nonsense is reported`() async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            try await storage.commit([.roomStored(try room(1))])
            try await storage.execute("UPDATE room SET name = 'a/b'")
            await expect(.corrupt) { _ = try await storage.rooms() }
            try await storage.close()
        }
    }
}
