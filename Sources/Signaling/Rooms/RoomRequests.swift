import Wire

/// A request from an operator or application, made over HTTP with the API secret. Answered exactly once, with
/// `Effect.answer`.
public struct OperatorRequest: Equatable, Sendable {
    public enum Action: Equatable, Sendable {
        case create(RoomCreationRequest)
        case describe(RoomName)
        case change(RoomName, RoomChanges)
        case close(RoomName)
        /// Creates a token for joining.
        case token(RoomName, RoomTokenRequest)
        /// A person sends or downloads a file of the room. The secret in the action authorizes this, not the API
        /// secret.
        case file(RoomName, RoomFileID, RoomFileAction)
        /// Lists the rooms after this position; nil for the first page.
        case list(after: RoomCursor?, limit: Int)
    }

    /// The HTTP request that is waiting for the answer.
    public var socket: SocketID
    public var action: Action

    public init(socket: SocketID, _ action: Action) { (self.socket, self.action) = (socket, action) }
}

/// The answer to a `OperatorRequest`.
public enum OperatorReply: Equatable, Sendable {
    indirect case room(RoomDescription)
    case rooms(RoomList)
    case token(RoomToken)
    case file(RoomFileInfo)
    case closed
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

/// Answers operators and applications. They are not in the room, so no role restricts them.
extension Room {
    mutating func perform(_ request: OperatorRequest, _ context: inout Context) {
        let reply: OperatorReply
        do throws(WireError) { reply = try self.reply(to: request.action, &context) } catch { reply = .refused(error) }
        context.answer(request.socket, reply)
    }

    private mutating func reply(to action: OperatorRequest.Action, _ context: inout Context) throws(WireError)
        -> OperatorReply
    {
        switch action {
        case .change(_, let changes): try change(changes, lasts: true, &context)
        case .token(_, let wish): return .token(try makeToken(wish, &context))
        case .file(_, let id, let action): return try perform(action, id, &context)
        case .close:
            end(&context)
            return .closed
        // The registry has created the room, and the hub answers `list`.
        case .create, .describe, .list: break
        }
        return .room(description)
    }

    private mutating func makeToken(_ wish: RoomTokenRequest, _ context: inout Context) throws(WireError) -> RoomToken {
        guard let displayName = PersonName.normalized(wish.displayName) else { throw PersonName.invalid }
        if wish.role == .host { noteHostToken(&context) }
        let lifetime = wish.lifetime.map { Duration.seconds($0) } ?? context.rules.matchTokenLifetime
        let claims = RoomTokenClaims(
            room: name, id: id, role: wish.role, displayName: displayName, lifetime: lifetime)
        let token = context.project.makeRoomToken(claims, now: context.wallNow, using: &context.random)
        return RoomToken(
            token: token, expiresAt: context.wallNow + lifetime, path: "/room/\(name.pathComponent)#token=\(token)")
    }

    var summary: RoomSummary {
        var summary = RoomSummary()
        (summary.name, summary.id, summary.options, summary.createdAt) = (name, id, options, createdAt)
        (summary.peopleCount, summary.waitingCount) = (roster.count, lobby.waiting.count)
        return summary
    }

    var cursor: RoomCursor { RoomCursor(createdAt: createdAt, id: id) }

    private var description: RoomDescription {
        var description = RoomDescription()
        (description.summary, description.session, description.people) = (summary, session, roster.people)
        return description
    }
}

extension Hub {
    /// Lists rooms for an operator. Reads the rooms directly instead of sending a letter to each, because no decision
    /// is needed.
    func listRooms(after cursor: RoomCursor?, limit: Int) -> RoomList {
        var found: [(cursor: RoomCursor, name: RoomName)] = []
        rooms.forEach { room in
            if cursor.map({ $0 < room.cursor }) ?? true { found.append((room.cursor, room.name)) }
        }
        found.sort { $0.cursor < $1.cursor }
        let page = found.prefix(max(1, min(limit, Limits.roomsPage)))
        var list = RoomList()
        list.rooms = page.compactMap { entry in rooms.read(entry.name) { $0.summary } }
        list.next = found.count > page.count ? page.last?.cursor.text : nil
        return list
    }
}
