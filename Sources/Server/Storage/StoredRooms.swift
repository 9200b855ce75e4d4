import Logging
public import Signaling
public import Wire

/// The persistent rooms in storage.
public struct StoredRooms: Sendable {
    /// A room that cannot be read, for example because its row was edited by hand. Its row stays as it is.
    public struct Unreadable: Sendable {
        /// The room's id; nil if not even the id can be read.
        public var id: RoomID?
        public var error: StorageError

        public init(id: RoomID?, error: StorageError) { (self.id, self.error) = (id, error) }
    }

    /// The rooms that could be read, oldest first.
    public var rooms: [StoredRoom]
    public var unreadable: [Unreadable]

    public init(_ rooms: [StoredRoom] = [], unreadable: [Unreadable] = []) {
        (self.rooms, self.unreadable) = (rooms, unreadable)
    }

    /// Logs which rooms could not be read, without their names: anyone who knows the name of an open room can enter it.
    func logUnreadable(_ logger: Logger) {
        for room in unreadable {
            logger.error(
                "A persistent room cannot be read. It is unavailable until its row in the table room is repaired.",
                metadata: ["id": "\(room.id.map { "\($0)" } ?? "unreadable")", "error": "\(room.error)"])
        }
    }
}
