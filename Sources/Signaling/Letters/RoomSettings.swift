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
    init(media: RoomMedia, capacity: Int) {
        options = RoomOptions()
        (options.media, options.capacity) = (media, capacity)
        lasting = options
    }

    /// Restores the settings of a stored room.
    init(_ stored: StoredRoom) {
        (options, password) = (stored.options, stored.password)
        options.password = password != nil
        lasting = options
    }

    /// Changes options. Changes nothing if it throws.
    ///
    /// - Parameters:
    ///   - password: the hash of the password in the changes; nil if they remove the password or do not mention it.
    ///   - lasts: whether the change stays in effect when the room is empty.
    mutating func apply(_ changes: RoomChanges, password: RoomPassword?, lasts: Bool) throws(WireError) {
        guard changes.media.map({ $0 == options.media }) ?? true else {
            throw WireError(.notPermitted, "The media mode of a room cannot be changed. Create another room.")
        }
        let limit = options.maxCapacity
        guard changes.capacity.map({ $0 <= limit }) ?? true else {
            throw WireError(.notPermitted, "The capacity of a \(options.media) room must not exceed \(limit).")
        }
        if changes.password != nil { self.password = password }
        options.apply(changes, hasPassword: self.password != nil)
        if lasts { lasting.apply(changes, hasPassword: self.password != nil) }
    }

    /// Reverts changes made by stand-ins.
    mutating func endTemporary() { options = lasting }
}

extension RoomOptions {
    /// The highest capacity of a room of this kind. There are never more people in it.
    var maxCapacity: Int { media == .routed ? Limits.routedRoom : Limits.meshRoom }

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
