import Foundation
import GRDB
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Storage of rooms", .ownThreads)
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

    @Test func `rooms are returned as they were stored last, oldest first`() async throws {
        try await withStorage { storage in
            let second = try room(2)
            let first = try room(1) { room in
                room.options.media = .mesh
                (room.options.locked, room.options.lobby, room.options.chat) = (true, true, false)
                (room.options.share, room.options.password) = (.hosts, true)
                room.password = RoomPassword(salt: [1, 2], digest: [3, 4, 5])
                (room.creator, room.hasHostTokens) = (alice, true)
                room.formerID = RoomID(high: 8, low: 1)
                room.bans = [bob, carol]
                room.revokedTokens = [Array(0..<16), Array(16..<32)]
            }
            try await storage.commit([.roomStored(second), .roomStored(first)])
            #expect(try await storage.rooms().rooms == [first, second])
            var changed = first
            (changed.password, changed.options.password, changed.bans) = (nil, false, [])
            try await storage.commit([.roomStored(changed), .roomForgotten(second.id)])
            #expect(try await storage.rooms().rooms == [changed])
            try await storage.commit([.roomForgotten(second.id)])
        }
    }

    @Test func `a room is found by its name in any spelling, the newest first`() async throws {
        try await withStorage { storage in
            let old = try room(1) { $0.name = RoomName("Kitchen")! }
            let new = try room(2) { $0.name = RoomName("KITCHEN")! }
            try await storage.commit([.roomStored(new), .roomStored(old), .roomStored(try room(3))])
            #expect(try await storage.room(named: try #require(RoomName("kitchen"))) == new)
            #expect(try await storage.room(named: try #require(RoomName("cellar"))) == nil)
            try await storage.commit([.roomForgotten(new.id)])
            #expect(try await storage.room(named: try #require(RoomName("kitchen"))) == old)
        }
    }

    @Test func `a person's rooms are exported, and stay without a creator when the person is deleted`() async throws {
        try await withStorage { storage in
            let own = try room(1) { $0.creator = alice }
            let other = try room(2) { $0.creator = bob }
            try await storage.commit([.roomStored(own), .roomStored(other)])
            #expect(try await storage.everything(of: alice, at: now).rooms.map(\.name) == [own.name])
            try await storage.commit([.deleted(alice)])
            #expect(try await storage.rooms().rooms.map(\.creator) == [nil, bob])
        }
    }

    /// A room in memory kept its deleted creator, and stored it again.
    @Test func `an upgrade clears creators who were deleted, but not those who unlinked their first device`()
        async throws
    {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            let people = [alice, bob, carol]
            let rooms = try people.indices.map { index in
                try room(UInt64(index) + 1) { $0.creator = people[index] }
            }
            let device = LinkedDevice(identity: IdentityID(high: 7, low: 7), label: "phone", linkedAt: now)
            try await storage.commit([.deleted(alice), .linked(device, to: bob), .retired(bob)])
            try await storage.commit(rooms.map { .roomStored($0) })
            try await storage.execute("DELETE FROM grdb_migrations WHERE identifier LIKE 'v9 %'")
            try await storage.execute("DROP TABLE deletedProject")
            try await storage.close()
            let upgraded = try SQLiteStorage(directory: directory)
            #expect(try await upgraded.rooms().rooms.map(\.creator) == [nil, bob, carol])
            try await upgraded.close()
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
            #expect(try await storage.rooms().rooms == [])
            try await storage.commit([.roomStored(stored)])
            try await storage.close()
            #expect(try MigrationSafety.copies(in: directory).count == 1, "the database was copied first")
            let reopened = try SQLiteStorage(directory: directory)
            #expect(try await reopened.rooms().rooms == [stored])
            try await reopened.close()
        }
    }

    @Test func `rooms that cannot be loaded again are not taken for rooms that are not stored`() async throws {
        try await withStorage { storage in
            let handler = QueryHandler(storage: storage, pushNotifier: nil, logger: LogLines().logger)
            #expect(await handler.rooms()?.isEmpty == true)
            try await storage.close()
            #expect(await handler.rooms() == nil)
        }
    }

    /// Values of the wrong kind, and values that the rules do not know.
    @Test(arguments: ["name = 'a/b'", "media = 'smoke'", "capacity = 'many'", "createdAt = 'soon'", "share = ''"])
    func `a room that was edited by hand into nonsense is named, stays stored, and does not hide the others`(
        _ edit: String
    ) async throws {
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            let (bad, good) = (try room(1), try room(2))
            try await storage.commit([.roomStored(bad), .roomStored(good)])
            try await storage.execute("UPDATE room SET \(edit) WHERE id = X'\(bad.id)'")
            let found = try await storage.rooms()
            #expect(found.rooms == [good])
            #expect(found.unreadable.map(\.id) == [bad.id])
            let column = try #require(edit.split(separator: " ").first)
            #expect(found.unreadable.allSatisfy { $0.error.code == .corrupt && $0.error.message.contains(column) })
            try await storage.commit([.roomForgotten(good.id)])
            #expect(try await storage.rooms().unreadable.map(\.id) == [bad.id])
            try await storage.close()
        }
    }
}

@Suite("Stored rooms when the server starts", .ownThreads, .timeLimit(.minutes(3)))
struct RestoredRoomTests: StorageFixtures {
    /// The names of the rooms of a server, which logs to `lines`.
    private func rooms(_ directory: String, _ lines: LogLines = LogLines()) async throws -> [String] {
        try await TestServer.run(dataDirectory: directory, logger: lines.logger) { server in
            try await RoomsPlace(server).ask("GET", "/v1/rooms").rooms().rooms.map(\.name.text)
        }
    }

    private func edit(_ directory: String, _ sql: String) async throws {
        let storage = try SQLiteStorage(directory: directory)
        try await storage.execute(sql)
        try await storage.close()
    }

    @Test func `a room that cannot be read is logged without its name, and is back when its row is repaired`()
        async throws
    {
        try await withDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { server in
                let place = try RoomsPlace(server)
                for name in ["Bluebell", "Snowdrop"] {
                    let body = #"{"name": "\#(name)", "options": {"persistent": true}}"#
                    #expect(try await place.ask("POST", "/v1/rooms", body).status == 201)
                }
            }
            try await edit(directory, "UPDATE room SET capacity = 'many' WHERE name = 'Bluebell'")
            let lines = LogLines()
            #expect(try await rooms(directory, lines) == ["Snowdrop"])
            let errors = lines.all.filter { $0.contains("A persistent room cannot be read") }
            #expect(errors.count == 1 && errors[0].contains("capacity"), "\(lines.all)")
            #expect(!lines.contains("Bluebell"))
            try await edit(directory, "UPDATE room SET capacity = 5 WHERE name = 'Bluebell'")
            #expect(try await rooms(directory).sorted() == ["Bluebell", "Snowdrop"])
        }
    }

    @Test func `of two stored rooms with one name, the newer comes back`() async throws {
        try await withDirectory { directory in
            try await TestServer.run(dataDirectory: directory) { _ in }
            let storage = try SQLiteStorage(directory: directory)
            for (number, text) in [(1, "TEA"), (2, "Tea"), (0, "tea")] {
                var options = RoomOptions()
                (options.capacity, options.persistent) = (25, true)
                try await storage.commit([
                    .roomStored(
                        StoredRoom(
                            id: RoomID(high: 9, low: UInt64(5 - number)), name: try #require(RoomName(text)),
                            options: options, createdAt: now + .seconds(Int64(number)), usedAt: now))
                ])
            }
            try await storage.close()
            #expect(try await rooms(directory) == ["Tea"])
        }
    }
}
