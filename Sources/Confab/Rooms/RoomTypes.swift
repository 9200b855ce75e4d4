import Foundation
import Wire

/// A person in a room. Names need not be unique, but connection ids are.
public struct RoomMember: Hashable, Sendable, Identifiable {
    /// A person's role in a room.
    public enum Role: String, Hashable, Sendable, CaseIterable {
        /// May do everything, including choosing hosts and cohosts.
        case host
        /// May do everything that a host may, except change roles or remove hosts and cohosts.
        case cohost
        /// May publish, subscribe and write in the chat.
        case guest

        init(_ role: RoomRole) { self = Role(rawValue: role.rawValue) ?? .guest }
        var wire: RoomRole { RoomRole(rawValue: rawValue) ?? .guest }
    }

    /// Whether a person is in a room.
    public enum Presence: String, Hashable, Sendable, CaseIterable {
        /// The person is in the room.
        case connected
        /// The connection dropped. The person keeps their place and may reconnect.
        case reconnecting
        /// The person is no longer in the room.
        case left
    }

    /// The id of the person's connection, in the room and in its session.
    public let id: ConnectionID
    /// The name to show.
    public let name: String
    /// The person's role.
    public let role: Role
    /// Whether the person is in the room.
    public internal(set) var presence: Presence
    /// Whether the person currently has a hand raised, to show the others that they would like to speak.
    public let hasRaisedHand: Bool

    init(_ person: RoomPerson) {
        (id, name, role) = (person.connection, person.displayName, Role(person.role))
        presence = Presence(rawValue: person.state.rawValue) ?? .connected
        hasRaisedHand = person.handAt != nil
    }
}

/// A message in a room's chat.
public struct RoomMessage: Hashable, Sendable {
    /// The id of the connection that sent the message.
    public let sender: ConnectionID
    /// The name that the person had when they sent the message.
    public let name: String
    /// The text, at most 4096 bytes; the name of the file if there is a ``file``.
    public let text: String
    /// The file that the person sent; nil for a text message.
    public let file: SharedFile?
    /// When the server received the message.
    public let sentAt: Date

    init(_ line: RoomLine) {
        (sender, name) = (line.connection, line.displayName)
        file = line.file.map { SharedFile($0, named: line.text) }
        text = file?.name ?? line.text
        sentAt = line.at.date
    }
}

/// A person who waits to be admitted.
public struct RoomKnock: Hashable, Sendable, Identifiable {
    /// The id of the person's connection.
    public let id: ConnectionID
    /// The name to show.
    public let name: String
}

/// The options of a room.
public struct RoomSettings: Hashable, Sendable {
    /// Whether media goes directly between devices, so that people see each other's IP addresses.
    public let isMesh: Bool
    /// The maximum number of people in the room.
    public let capacity: Int
    /// Whether the room is locked: nobody else can join.
    public let isLocked: Bool
    /// Whether people wait until a host or cohost admits them.
    public let hasLobby: Bool
    /// Whether joining requires a password.
    public let hasPassword: Bool
    /// Whether the room has a chat.
    public let hasChat: Bool
    /// Whether only hosts and cohosts may share a screen.
    public let onlyHostsShare: Bool
    /// Whether the room is kept when it is empty.
    public let isPersistent: Bool

    init(_ options: RoomOptions) {
        (isMesh, capacity, isLocked) = (options.media == .mesh, options.capacity, options.locked)
        (hasLobby, hasPassword, hasChat) = (options.lobby, options.password, options.chat)
        (onlyHostsShare, isPersistent) = (options.share == .hosts, options.persistent)
    }
}

/// Options for a new room, or changes to the options of an existing one. Nil means the default for a new room, and the
/// current value for an existing one.
public struct RoomSettingsChange: Hashable, Sendable {
    /// Whether media goes directly between devices. This can be set only for a new room.
    public var isMesh: Bool?
    /// The maximum number of people: 1 to 100, or 1 to 6 in a mesh room.
    public var capacity: Int?
    /// Whether the room is locked: nobody else can join.
    public var isLocked: Bool?
    /// Whether people wait until a host or cohost admits them.
    public var hasLobby: Bool?
    /// The password for joining, at most 128 bytes; empty for none.
    public var password: String?
    /// Whether the room has a chat.
    public var hasChat: Bool?
    /// Whether only hosts and cohosts may share a screen.
    public var onlyHostsShare: Bool?
    /// Whether the room is kept when it is empty.
    public var isPersistent: Bool?

    /// Creates a change that changes nothing.
    public init() {}

    var wire: RoomChanges {
        var changes = RoomChanges()
        changes.media = isMesh.map { $0 ? .mesh : .routed }
        (changes.capacity, changes.locked, changes.lobby) = (capacity, isLocked, hasLobby)
        (changes.password, changes.chat, changes.persistent) = (password, hasChat, isPersistent)
        changes.share = onlyHostsShare.map { $0 ? .hosts : .all }
        return changes
    }
}

/// Why this person is no longer in a room. If rejoining failed for a reason that is not listed here, the raw value is
/// the error's code.
public struct RoomEnding: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: String) { rawValue = value }

    /// This person left.
    public static let left: RoomEnding = "left"
    /// A host removed this person.
    public static let removed = RoomEnding(rawValue: RoomEndReason.removed.rawValue)
    /// A host banned this person.
    public static let banned = RoomEnding(rawValue: RoomEndReason.banned.rawValue)
    /// An operator ended the room.
    public static let closed = RoomEnding(rawValue: RoomEndReason.closed.rawValue)
    /// The room ended while the connection was lost, and another room has its name now. Ask the person before you join
    /// the other room.
    public static let otherRoom = RoomEnding(rawValue: WireError.Code.roomOther.rawValue)
    /// This person joined the room again over another connection.
    public static let replaced = RoomEnding(rawValue: RoomEndReason.replaced.rawValue)
    /// The connection to the server was lost, and the client has given up reconnecting.
    public static let connectionLost: RoomEnding = "connectionLost"
}
