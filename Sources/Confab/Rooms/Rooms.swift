import Wire

/// Rooms: places with a name where several people talk. A client is in one room at a time.
///
/// ```swift
/// let room = try await client.rooms.join("garden", displayName: "Ada")
/// try await room.publish(engine.capture(.camera()))
/// for await event in room.events {
///     if case .said(let message) = event { print("\(message.name): \(message.text)") }
/// }
/// ```
public actor Rooms {
    private let way: WayCore<RoomsMachine>
    private let media: RoomMedia

    init(_ desk: WayDesk) {
        let media = RoomMedia(desk.core)
        let way = WayCore(
            RoomsMachine(random: desk.core.surroundings.random), desk, tell: { media.tell($0) },
            perform: { media.perform($0) })
        media.attach(way)
        (self.way, self.media) = (way, media)
    }

    /// The room that this person is in.
    nonisolated public var room: Room? { media.room }

    /// Joins a room, or creates it. Returns when this person is in and the session is connected, also if a host had to let them
    /// in first. Connects the client if needed. If the task is cancelled, this person does not join, or no longer waits.
    ///
    /// - Parameters:
    ///   - name: the room's name, 1 to 64 characters; nil for a new room with a random name.
    ///   - displayName: the name that others see; empty for a generated one.
    ///   - password: the room's password; nil if there is none. With a password, a room that has none is not joined
    ///     (`room_no_password`), because it may be another one than the person means.
    ///   - settings: the settings of the room, if this creates it.
    ///   - routedOnly: whether to refuse a mesh room, whose members see each other's addresses. Ask the person before you pass
    ///     false.
    ///   - onWaiting: called when a host must let this person in.
    /// - Throws: `room_full`, `room_locked`, `room_password`, `room_refused`, `room_mesh`, `invalid_name` and others, or `left`
    ///   after ``leave()``.
    public func join(
        _ name: String?, displayName: String = "", password: String? = nil, settings: RoomSettingsChange? = nil,
        routedOnly: Bool = true, onWaiting: (@Sendable () -> Void)? = nil
    ) async throws(ConfabError) -> Room {
        let wireName = try name.map { text throws(ConfabError) in
            guard let name = RoomName(text) else { throw .roomNameInvalid }
            return name
        }
        var request = RoomVerb.Join(
            name: wireName, displayName: displayName, password: password, options: settings?.wire)
        if routedOnly { request.routedOnly = true }
        return try await join(request, onWaiting)
    }

    /// Joins a room with a token that the application's server made for it.
    ///
    /// - Parameters:
    ///   - token: the token, which names the room. It must be valid for as long as the person may have to join again.
    ///   - onWaiting: called when a host must let this person in.
    /// - Throws: `token_*`, `room_not_found` and others, or `left` after ``leave()``.
    public func join(token: String, onWaiting: (@Sendable () -> Void)? = nil) async throws(ConfabError) -> Room {
        try await join(.init(name: nil, displayName: "", token: token), onWaiting)
    }

    private func join(
        _ request: RoomVerb.Join, _ onWaiting: (@Sendable () -> Void)?
    ) async throws(ConfabError) -> Room {
        try await way.desk.core.connect()
        let listening = media.onWaiting(onWaiting)
        try await way.ask(.join(request))
        guard let room = media.room else { throw .roomLeft }
        withExtendedLifetime(listening) {}
        return room
    }

    /// Leaves the room, or stops waiting to be let in.
    public func leave() async throws(ConfabError) { try await way.ask(.leave) }
}

/// A room that this person is in. It stays the same when the client reconnects and joins the room again.
public actor Room {
    /// Something that happened in a room.
    public enum Event: Sendable {
        /// The settings changed.
        case settings(RoomSettings)
        /// Somebody joined, left, dropped, came back, raised a hand or has another role.
        case person(RoomMember)
        /// This person has another role.
        case role(RoomMember.Role)
        /// Somebody wrote.
        case said(RoomMessage)
        /// A file was deleted, and its line left the chat.
        case fileRemoved(RoomFileID)
        /// Somebody reacted.
        case reacted(ConnectionID, String)
        /// Somebody waits to be let in, or no longer does.
        case knock(RoomKnock, isWaiting: Bool)
        /// A stream can be seen or heard. It is told again when ``MediaSubscriber/video`` or a property of the stream has
        /// changed. A person who sends only sound has a stream whose ``MediaStream/hasVideo`` is false.
        case video(MediaStream, MediaSubscriber)
        /// A stream ended.
        case videoGone(MediaStream)
        /// The connection was lost, and the room is joined again.
        case reconnecting
        /// Joined again, but a host must let this person in.
        case waiting
        /// The room is joined again.
        case reconnected
        /// A stream failed. It is tried again if that can help.
        case failed(ConfabError)
        /// This person is no longer in the room. No events follow.
        case ended(RoomEnding, ConfabError?)
    }

    let way: WayCore<RoomsMachine>
    private let media: RoomMedia
    private let source: EventSource<Event>

    init(_ way: WayCore<RoomsMachine>, _ media: RoomMedia, _ source: EventSource<Event>) {
        (self.way, self.media, self.source) = (way, media, source)
    }

    nonisolated var isCurrent: Bool { media.source === source }

    /// What happens in the room.
    nonisolated public var events: Events<Event> { source.events }

    nonisolated private func read<Value: Sendable>(_ body: (RoomState) -> Value) -> Value? {
        isCurrent ? way.read { machine in machine.room.map(body) } : nil
    }

    /// The room's name, as its creator wrote it.
    nonisolated public var name: String { read(\.name.text) ?? "" }
    /// Everyone, in the order of joining.
    nonisolated public var people: [RoomMember] { read(\.people) ?? [] }
    /// People who wait, if this person may let them in.
    nonisolated public var knocks: [RoomKnock] { read(\.knocks) ?? [] }
    /// The last messages, oldest first.
    nonisolated public var chat: [RoomMessage] { read { $0.chat.lines.map(RoomMessage.init) } ?? [] }
    /// What this person may do.
    nonisolated public var role: RoomMember.Role { read { .init($0.role) } ?? .guest }
    /// The settings; nil after the end.
    nonisolated public var settings: RoomSettings? { read { RoomSettings($0.options) } }
    /// This person's connection; nil after the end.
    nonisolated public var connection: ConnectionID? { read(\.connection) ?? nil }
    /// The session of this stay, in which media are exchanged. Another one after joining again.
    nonisolated public var session: Session? { isCurrent ? media.session : nil }

    /// Publishes this media from now on, also after reconnecting; nil publishes nothing. It belongs to the application.
    public func publish(_ own: (any LocalMedia)?) { if isCurrent { media.use(own) } }

    /// What this person needs for files; nil if the server takes none.
    nonisolated var access: RoomFileAccess? { read(\.files) ?? nil }

    func send(_ verb: RoomVerb) async throws(ConfabError) {
        guard isCurrent else { throw .roomLeft }
        try await way.ask(.verb(verb))
    }

    /// Leaves at once, also while the server cannot be reached.
    public func leave() async throws(ConfabError) { if isCurrent { try await way.ask(.leave) } }

    /// Sends audio and video or stops to send them, and tells everyone; nil changes nothing. It holds until the end of the
    /// room, also for media that is published later.
    public func setSending(audio: Bool? = nil, video: Bool? = nil) {
        if isCurrent { media.setSending(audio: audio, video: video) }
    }

    /// Writes to everyone.
    ///
    /// - Parameter text: 1 to 4096 bytes.
    public func say(_ text: String) async throws(ConfabError) { try await send(.say(.init(text: text))) }

    /// Raises or lowers this person's hand. It stays raised after joining again.
    public func raiseHand(_ isRaised: Bool = true) async throws(ConfabError) {
        try await send(.hand(.init(raised: isRaised)))
    }

    /// Shows a reaction, such as an emoji, to everyone.
    public func react(_ reaction: String) async throws(ConfabError) {
        try await send(.react(.init(reaction: reaction)))
    }

    /// Lets a person in who waits. Hosts and cohosts only.
    public func admit(_ person: ConnectionID) async throws(ConfabError) {
        try await send(.admit(.init(connection: person)))
    }

    /// Sends a person away who waits. Hosts and cohosts only.
    public func deny(_ person: ConnectionID) async throws(ConfabError) {
        try await send(.deny(.init(connection: person)))
    }

    /// Changes settings. Hosts and cohosts only.
    public func set(_ settings: RoomSettingsChange) async throws(ConfabError) {
        try await send(.set(.init(options: settings.wire)))
    }

    /// Mutes one person, or everyone else. They can unmute themselves. Hosts and cohosts only.
    public func mute(_ person: ConnectionID? = nil) async throws(ConfabError) {
        try await send(.mute(.init(connection: person)))
    }

    /// Ends the screens that one person, or everyone else, shares. Hosts and cohosts only.
    public func stopSharing(_ person: ConnectionID? = nil) async throws(ConfabError) {
        try await send(.stopShare(.init(connection: person)))
    }

    /// Removes a person. Hosts only; cohosts can remove guests.
    ///
    /// - Parameters:
    ///   - person: the person's connection.
    ///   - forGood: whether the person can never join this room again.
    public func remove(_ person: ConnectionID, forGood: Bool = false) async throws(ConfabError) {
        try await send(.remove(.init(connection: person, ban: forGood)))
    }

    /// Changes a person's role. Hosts only.
    public func setRole(_ role: RoomMember.Role, of person: ConnectionID) async throws(ConfabError) {
        try await send(.role(.init(connection: person, role: role.wire)))
    }
}

extension ConfabError {
    fileprivate static let roomNameInvalid = ConfabError(
        .invalidName, "A room's name has 1 to 64 characters, without \"/\" and invisible characters.")
    static let roomLeft = ConfabError(.notJoined, "You are no longer in the room. Join it again.")
}
