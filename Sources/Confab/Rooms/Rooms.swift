import Wire

/// Rooms, in which several people talk. Each room has a name. A client is in one room at a time.
///
/// ```swift
/// let room = try await client.rooms.join("garden", displayName: "Ada")
/// try await room.publish(engine.capture(.camera()))
/// for await event in room.events {
///     if case .said(let message) = event { print("\(message.name): \(message.text)") }
/// }
/// ```
public actor Rooms {
    private let feature: FeatureCore<RoomsMachine>
    private let media: RoomMedia

    init(_ desk: FeatureDesk) {
        let media = RoomMedia(desk.core)
        let feature = FeatureCore(
            RoomsMachine(random: desk.core.dependencies.random), desk, tell: { media.tell($0) },
            perform: { media.perform($0) })
        media.weakFeature.set(feature)
        (self.feature, self.media) = (feature, media)
    }

    /// The room that this person is in; nil if there is none.
    nonisolated public var room: Room? { media.room }

    /// Joins a room, or creates it. Returns when this person is in the room and the room's session is connected. If a
    /// host must admit this person first, the method waits for that. Connects the client if needed. If the task is
    /// canceled, this person does not join, or stops waiting.
    ///
    /// - Parameters:
    ///   - name: the room's name, 1 to 64 characters; nil for a new room with a random name.
    ///   - displayName: the name that others see; empty for a generated one.
    ///   - password: the room's password; nil if there is none. If a password is given but the room has none,
    ///     joining fails with `room_no_password`, because it may not be the room the person meant.
    ///   - settings: the settings of the room if this call creates it.
    ///   - routedOnly: whether to fail for a mesh room, whose members see each other's IP addresses. Ask the person
    ///     before you pass false.
    ///   - onWaiting: called when a host must admit this person.
    /// - Throws: `room_full`, `room_locked`, `room_password`, `room_refused`, `room_mesh`, `room_no_password`,
    ///   `invalid_name` and others, or `left` after ``leave()``.
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

    /// Joins a room with a token that the application's server issued for it.
    ///
    /// - Parameters:
    ///   - token: the token, which contains the room's name. It must be valid for as long as the SDK may have to
    ///     rejoin.
    ///   - onWaiting: called when a host must admit this person.
    /// - Throws: `token_*`, `room_not_found` and others, or `left` after ``leave()``.
    public func join(token: String, onWaiting: (@Sendable () -> Void)? = nil) async throws(ConfabError) -> Room {
        try await join(.init(name: nil, displayName: "", token: token), onWaiting)
    }

    private func join(
        _ request: RoomVerb.Join, _ onWaiting: (@Sendable () -> Void)?
    ) async throws(ConfabError) -> Room {
        try await feature.desk.core.connect()
        let listening = media.onWaiting(onWaiting)
        try await feature.ask(.join(request))
        guard let room = media.room else { throw .roomLeft }
        withExtendedLifetime(listening) {}
        return room
    }

    /// Leaves the room, or stops waiting to be admitted.
    public func leave() async throws(ConfabError) { try await feature.ask(.leave) }
}

/// A room that this person is in. The object can still be used after the client has reconnected and rejoined the room.
public actor Room {
    /// Something that happened in a room.
    public enum Event: Sendable {
        /// The settings changed.
        case settings(RoomSettings)
        /// A person joined, left, lost the connection, reconnected, raised or lowered a hand, or changed roles.
        case person(RoomMember)
        /// This person's role changed.
        case role(RoomMember.Role)
        /// A person sent a chat message.
        case said(RoomMessage)
        /// A file was deleted, and its message was removed from the chat.
        case fileRemoved(RoomFileID)
        /// A person sent a reaction.
        case reacted(ConnectionID, String)
        /// A person waits to be admitted, or no longer waits.
        case knock(RoomKnock, isWaiting: Bool)
        /// A stream can be shown or played. Sent again whenever ``MediaSubscriber/video`` or a property of the stream
        /// changes. A person who sends only audio has a stream whose ``MediaStream/hasVideo`` is false.
        case video(MediaStream, MediaSubscriber)
        /// A stream ended.
        case videoGone(MediaStream)
        /// The connection or the room's session was lost. The SDK reconnects, and rejoins the room if necessary.
        case reconnecting
        /// A host must admit this person again.
        case waiting
        /// This person is in the room again.
        case reconnected
        /// Publishing or receiving a stream failed. The SDK retries if that can help.
        case failed(ConfabError)
        /// This person is no longer in the room, for the given reason. The error is nil if no error caused it. No
        /// events follow.
        case ended(RoomEnding, ConfabError?)
    }

    let feature: FeatureCore<RoomsMachine>
    private let media: RoomMedia
    private let source: EventSource<Event>

    init(_ feature: FeatureCore<RoomsMachine>, _ media: RoomMedia, _ source: EventSource<Event>) {
        (self.feature, self.media, self.source) = (feature, media, source)
    }

    nonisolated var isCurrent: Bool { media.source === source }

    /// The events of the room.
    nonisolated public var events: Events<Event> { source.events }

    nonisolated private func read<Value: Sendable>(_ body: (RoomState) -> Value) -> Value? {
        isCurrent ? feature.read { machine in machine.room.map(body) } : nil
    }

    /// The room's name, in its creator's spelling; empty once this person is no longer in the room.
    nonisolated public var name: String { read(\.name.text) ?? "" }
    /// Everyone in the room, in the order of joining.
    nonisolated public var people: [RoomMember] { read(\.people) ?? [] }
    /// People who wait to be admitted; empty unless this person may admit them.
    nonisolated public var knocks: [RoomKnock] { read(\.knocks) ?? [] }
    /// The most recent chat messages, oldest first; empty once this person is no longer in the room.
    nonisolated public var chat: [RoomMessage] { read { $0.chat.lines.map(RoomMessage.init) } ?? [] }
    /// This person's role; `guest` once this person is no longer in the room.
    nonisolated public var role: RoomMember.Role { read { .init($0.role) } ?? .guest }
    /// The settings; nil once this person is no longer in the room.
    nonisolated public var settings: RoomSettings? { read { RoomSettings($0.options) } }
    /// The id of this person's connection; nil once this person is no longer in the room.
    nonisolated public var connection: ConnectionID? { read(\.connection) ?? nil }
    /// The current session of the room, which carries its media; nil while there is none. Rejoining replaces it.
    nonisolated public var session: Session? { isCurrent ? media.session : nil }

    /// Publishes this media in the room instead of the previous media, also after rejoining; nil stops publishing. The
    /// SDK does not stop the media itself: the application calls ``LocalMedia/stop()`` when it is done.
    public func publish(_ own: (any LocalMedia)?) { if isCurrent { media.use(own) } }

    /// The path, the key and the size limit for files; nil if the server does not accept files, and once this person
    /// is no longer in the room.
    nonisolated var access: RoomFileAccess? { read(\.files) ?? nil }

    func send(_ verb: RoomVerb) async throws(ConfabError) {
        guard isCurrent else { throw .roomLeft }
        try await feature.ask(.verb(verb))
    }

    /// Leaves immediately, even if the server cannot be reached.
    public func leave() async throws(ConfabError) { if isCurrent { try await feature.ask(.leave) } }

    /// Starts (true) or stops (false) sending audio and video, and notifies everyone; nil changes nothing. This applies
    /// until the room ends, also to media that is published later.
    public func setSending(audio: Bool? = nil, video: Bool? = nil) {
        if isCurrent { media.setSending(audio: audio, video: video) }
    }

    /// Sends a chat message to everyone.
    ///
    /// - Parameter text: 1 to 4096 bytes.
    public func say(_ text: String) async throws(ConfabError) { try await send(.say(.init(text: text))) }

    /// Raises or lowers this person's hand. It stays raised after rejoining.
    public func raiseHand(_ isRaised: Bool = true) async throws(ConfabError) {
        try await send(.hand(.init(raised: isRaised)))
    }

    /// Shows a reaction, such as an emoji, to everyone.
    public func react(_ reaction: String) async throws(ConfabError) {
        try await send(.react(.init(reaction: reaction)))
    }

    /// Admits a waiting person. Hosts and cohosts only.
    public func admit(_ person: ConnectionID) async throws(ConfabError) {
        try await send(.admit(.init(connection: person)))
    }

    /// Denies a waiting person entry. Hosts and cohosts only.
    public func deny(_ person: ConnectionID) async throws(ConfabError) {
        try await send(.deny(.init(connection: person)))
    }

    /// Changes settings. Hosts and cohosts only.
    public func set(_ settings: RoomSettingsChange) async throws(ConfabError) {
        try await send(.set(.init(options: settings.wire)))
    }

    /// Mutes one person; nil mutes everyone else. Muted people can unmute themselves. Hosts and cohosts only.
    public func mute(_ person: ConnectionID? = nil) async throws(ConfabError) {
        try await send(.mute(.init(connection: person)))
    }

    /// Ends the screen sharing of one person; nil ends that of everyone else. Hosts and cohosts only.
    public func stopSharing(_ person: ConnectionID? = nil) async throws(ConfabError) {
        try await send(.stopShare(.init(connection: person)))
    }

    /// Removes a person. Hosts can remove anyone, cohosts only guests.
    ///
    /// - Parameters:
    ///   - person: the id of the person's connection.
    ///   - forGood: whether to ban the person from this room. The ban applies as long as the room exists, or only
    ///     until the room is empty if this person is host in place of an absent owner.
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
