import Wire

/// The options of a room, with its password.
public struct RoomSettings: Equatable, Sendable {
    private(set) var options: RoomOptions
    private(set) var password: RoomPassword?

    /// Creates the settings of a new room.
    init(_ changes: RoomChanges?, _ turn: inout Turn) throws(WireError) {
        options = RoomOptions()
        options.media = changes?.media ?? (turn.rules.routesMedia ? .routed : .mesh)
        guard turn.rules.routesMedia || options.media == .mesh else {
            throw WireError(.mediaUnavailable, "This server does not route media. Create a mesh room.")
        }
        options.capacity = options.media == .routed ? turn.rules.roomCapacity : turn.rules.meshRoomCapacity
        if let changes { try apply(changes, &turn) }
    }

    /// Restores the settings of a stored room.
    init(_ stored: StoredRoom) {
        (options, password) = (stored.options, stored.password)
        options.password = password != nil
    }

    /// Changes options. Changes nothing if it throws.
    mutating func apply(_ changes: RoomChanges, _ turn: inout Turn) throws(WireError) {
        guard changes.media.map({ $0 == options.media }) ?? true else {
            throw WireError(.notPermitted, "How media travels is fixed when a room is created. Create another room.")
        }
        let limit = options.media == .routed ? Limits.routedRoom : Limits.meshRoom
        guard changes.capacity.map({ $0 <= limit }) ?? true else {
            throw WireError(.notPermitted, "A \(options.media) room can have at most \(limit) people.")
        }
        options.capacity = changes.capacity ?? options.capacity
        options.locked = changes.locked ?? options.locked
        options.lobby = changes.lobby ?? options.lobby
        options.chat = changes.chat ?? options.chat
        options.share = changes.share ?? options.share
        options.persistent = changes.persistent ?? options.persistent
        guard let text = changes.password else { return }
        password = text.isEmpty ? nil : RoomPassword(text, turn.project.serverKey, using: &turn.random)
        options.password = password != nil
    }

    /// Returns true if the room has no password, or this one.
    func accepts(_ text: String?, _ key: ServerKey) -> Bool {
        guard let password else { return true }
        return text.map { password.matches($0, key) } ?? false
    }
}
