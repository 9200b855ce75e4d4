import Foundation
import Signaling
import Wire

/// SQL statements for persistent rooms. Each runs in the caller's transaction.
extension SQLTransaction {
    func store(_ room: StoredRoom) throws {
        let options = room.options
        let (salt, hash) = (room.password.map { Data($0.salt) }, room.password.map { Data($0.digest) })
        let (bans, tokens) = (Data(room.bans.flatMap(\.bytes)), Data(room.revokedTokens.flatMap { $0 }))
        try upsert(
            "room", key: "id",
            [
                "id": room.id.blob, "name": room.name.text, "media": options.media.rawValue,
                "capacity": options.capacity, "locked": options.locked, "lobby": options.lobby, "chat": options.chat,
                "share": options.share.rawValue, "passwordSalt": salt, "passwordHash": hash,
                "creator": room.creator?.blob, "hasHostTokens": room.hasHostTokens, "bans": bans,
                "revokedTokens": tokens, "createdAt": room.createdAt.milliseconds,
                "usedAt": room.usedAt.milliseconds, "formerID": room.formerID?.blob,
            ])
    }

    /// Returns all persistent rooms. A row with an invalid value does not prevent reading the others.
    func rooms() throws -> StoredRooms {
        var found = StoredRooms()
        for row in try rows("SELECT * FROM room ORDER BY createdAt, id", []) {
            do {
                found.rooms.append(try StoredRoom(row: row))
            } catch let error as StorageError {
                found.unreadable.append(StoredRooms.Unreadable(id: try? row.id("id"), error: error))
            }
        }
        return found
    }

    /// Compares names here, because the database does not fold them as we do. Reads only the row of the room that it returns.
    func room(named name: RoomName) throws -> StoredRoom? {
        for row in try rows("SELECT id, name FROM room ORDER BY createdAt DESC, id DESC", []) {
            guard let other = RoomName(try row.value("name") as String), other == name else { continue }
            let found = try rows("SELECT * FROM room WHERE id = ?", [try row.value("id") as Data])
            return try found.first.map { try StoredRoom(row: $0) }
        }
        return nil
    }

    func roomsCreated(by id: IdentityID) throws -> [PersonData.CreatedRoom] {
        try rows("SELECT name, createdAt FROM room WHERE creator = ? ORDER BY createdAt, id", [id.blob]).map { row in
            PersonData.CreatedRoom(name: try row.room("name"), at: try row.time("createdAt"))
        }
    }
}

extension StoredRoom {
    fileprivate init(row: SQLRow) throws {
        let password = try row.roomPassword()
        var options = try row.roomOptions()
        options.password = password != nil
        let bans: [IdentityID] = try row.pieces("bans").compactMap { IdentityID(bytes: $0) }
        self.init(
            id: try row.id("id"), formerID: try row.optionalID("formerID"), name: try row.room("name"),
            options: options, password: password, creator: try row.optionalID("creator"),
            hasHostTokens: try row.value("hasHostTokens"), bans: bans, revokedTokens: try row.pieces("revokedTokens"),
            createdAt: try row.time("createdAt"), usedAt: try row.time("usedAt"))
    }
}

extension SQLRow {
    fileprivate func room(_ column: String) throws -> RoomName {
        guard let name = RoomName(try value(column) as String) else { throw Self.unreadable(column) }
        return name
    }

    fileprivate func roomOptions() throws -> RoomOptions {
        var options = RoomOptions()
        options.media = try choice("media")
        options.capacity = try value("capacity")
        options.locked = try value("locked")
        options.lobby = try value("lobby")
        options.chat = try value("chat")
        options.share = try choice("share")
        options.persistent = true
        return options
    }

    fileprivate func roomPassword() throws -> RoomPassword? {
        let salt: Data? = try optional("passwordSalt")
        let digest: Data? = try optional("passwordHash")
        guard let salt, let digest else { return nil }
        return RoomPassword(salt: Array(salt), digest: Array(digest))
    }

    fileprivate func optionalID<ID: Identifier128>(_ column: String) throws -> ID? {
        let blob: Data? = try optional(column)
        return blob == nil ? nil : try id(column)
    }

    /// Splits a column that contains a list of 16-byte values.
    fileprivate func pieces(_ column: String) throws -> [[UInt8]] {
        let bytes = Array(try value(column) as Data)
        return stride(from: 0, to: bytes.count, by: 16).map { Array(bytes[$0...].prefix(16)) }
    }
}
