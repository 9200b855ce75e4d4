import Wire

/// The options of a room and its password.
///
/// Invariant: options that stand-ins may not change (`RoomRights`) are the same in `options` and `lasting`.
public struct RoomSettings: Equatable, Sendable {
    /// The options in effect.
    private(set) var options: RoomOptions
    /// The options as the owners set them. These are stored, and an empty room returns to them.
    private(set) var lasting: RoomOptions
    private(set) var password: RoomPassword?

    /// Creates the settings of a new room.
    init(_ changes: RoomChanges?, _ context: inout Context) throws(WireError) {
        options = RoomOptions()
        options.media = changes?.media ?? (context.rules.routesMedia ? .routed : .mesh)
        guard context.rules.routesMedia || options.media == .mesh else {
            throw WireError(.mediaUnavailable, "This server does not route media. Create a mesh room.")
        }
        options.capacity = options.media == .routed ? context.rules.roomCapacity : context.rules.meshRoomCapacity
        lasting = options
        if let changes { try apply(changes, lasts: true, &context) }
    }

    /// Restores the settings of a stored room.
    init(_ stored: StoredRoom) {
        (options, password) = (stored.options, stored.password)
        options.password = password != nil
        lasting = options
    }

    /// Changes options. Changes nothing if it throws.
    ///
    /// - Parameter lasts: whether the change stays in effect when the room is empty.
    mutating func apply(_ changes: RoomChanges, lasts: Bool, _ context: inout Context) throws(WireError) {
        guard changes.media.map({ $0 == options.media }) ?? true else {
            throw WireError(.notPermitted, "The media mode of a room cannot be changed. Create another room.")
        }
        let limit = options.media == .routed ? Limits.routedRoom : Limits.meshRoom
        guard changes.capacity.map({ $0 <= limit }) ?? true else {
            throw WireError(.notPermitted, "The capacity of a \(options.media) room must not exceed \(limit).")
        }
        if let text = changes.password {
            password = text.isEmpty ? nil : RoomPassword(text, context.project.serverKey, using: &context.random)
        }
        options.apply(changes, hasPassword: password != nil)
        if lasts { lasting.apply(changes, hasPassword: password != nil) }
    }

    /// Reverts changes made by stand-ins.
    mutating func endTemporary() { options = lasting }

    /// Returns true if the room has no password, or if this is its password.
    func accepts(_ text: String?, _ key: ServerKey) -> Bool {
        guard let password else { return true }
        return text.map { password.matches($0, key) } ?? false
    }
}

extension RoomOptions {
    fileprivate mutating func apply(_ changes: RoomChanges, hasPassword: Bool) {
        capacity = changes.capacity ?? capacity
        locked = changes.locked ?? locked
        lobby = changes.lobby ?? lobby
        chat = changes.chat ?? chat
        share = changes.share ?? share
        persistent = changes.persistent ?? persistent
        password = hasPassword
    }
}
