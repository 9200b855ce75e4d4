import Wire

/// A request from an operator or application, made over HTTP with the API secret. Answered exactly once, with
/// `Effect.answer`.
public struct OperatorRequest: Equatable, Sendable {
    /// The operation that the request asks for.
    public enum Action: Equatable, Sendable {
        case create(RoomCreationRequest)
        case describe(RoomName)
        case change(RoomName, RoomChanges)
        case close(RoomName)
        /// Creates a token with which a person can join the room.
        case token(RoomName, RoomTokenRequest)
        /// A person sends or downloads a file of the room. The secret in the action authorizes this, not the API
        /// secret.
        case file(RoomName, RoomFileID, RoomFileAction)
        /// Lists the rooms after this position; nil for the first page.
        case list(after: RoomCursor?, limit: Int)
        /// Checks whether this client could join now. Changes nothing.
        case check(RoomApplication)
        case session(SessionID, SessionOperation)
    }

    /// The HTTP request that is waiting for the answer.
    public var socket: SocketID
    public var action: Action

    public init(socket: SocketID, _ action: Action) { (self.socket, self.action) = (socket, action) }
}

/// The answer to an `OperatorRequest`.
public enum OperatorReply: Equatable, Sendable {
    indirect case room(RoomDescription)
    case rooms(RoomList)
    case token(RoomToken)
    case file(RoomFileInfo)
    case closed
    case streams([StreamDescription])
    indirect case archive(ArchiveRecord)
    indirect case broadcast(BroadcastRecord)
    /// The operation on a session is done.
    case done
    /// The client could join.
    case admissible
    case refused(WireError)
}

/// A position in the list of rooms, which is sorted by age. It stays valid when rooms are created or end.
public struct RoomCursor: Hashable, Comparable, Sendable {
    public var createdAt: Timestamp
    public var id: RoomID

    public init(createdAt: Timestamp, id: RoomID) { (self.createdAt, self.id) = (createdAt, id) }

    /// Parses ``text``. Returns nil if the text is invalid.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let time = Int64(parts[0], radix: 16), time >= 0, let id = RoomID(parts[1]) else {
            return nil
        }
        self.init(createdAt: Timestamp(milliseconds: time), id: id)
    }

    public var text: String { "\(String(max(0, createdAt.milliseconds), radix: 16))-\(id)" }

    public static func < (left: Self, right: Self) -> Bool {
        (left.createdAt, left.id) < (right.createdAt, right.id)
    }
}

/// The purpose of an HTTP request for a file.
public enum RoomFileAction: Equatable, Sendable {
    /// Begins the upload that has this secret.
    case begin(RoomFileKey)
    /// Checks that the upload has not been removed since `begin`. The shell sends this after it has created the file
    /// on disk: an attempt to delete the file before that had no effect.
    case check(RoomFileKey)
    /// Ends the upload, because all its bytes are stored (`isComplete`) or because it failed.
    case end(RoomFileKey, isComplete: Bool)
    /// A member with this key downloads the file.
    case download(RoomFileKey)
}

/// A file, with the properties that the shell needs.
public struct RoomFileInfo: Equatable, Sendable {
    public var name: String
    public var size: Int

    public init(name: String, size: Int) { (self.name, self.size) = (name, size) }
}

/// A list of rooms that travels from room to room. Each room adds itself, and after the last one the request is answered.
public struct RoomTour: Equatable, Sendable {
    public var socket: SocketID
    public var list = RoomList()
    /// The rooms that have not been visited yet, the next one last.
    public var rest: [RoomName]
}
