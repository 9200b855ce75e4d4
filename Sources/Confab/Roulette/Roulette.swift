import Wire

/// Chats with strangers. Finds partners who are online now, one after the other.
///
/// ```swift
/// let events = client.roulette.events
/// try await client.roulette.start(interests: ["chess"])
/// for await event in events {
///     if case .matched(let match) = event { try await match.say("Hello") }
/// }
/// ```
///
/// The search and the local media survive a restart of the connection: the chat ends with `connectionLost`, and the
/// next search starts automatically.
public actor Roulette {
    /// The kind of chat. People meet only others who chose the same kind.
    public enum Mode: String, Hashable, Sendable, CaseIterable {
        /// With camera and microphone.
        case video
        /// With text only.
        case text
    }

    /// Something that happened in the roulette.
    public enum Event: Sendable {
        /// Searching for a partner. After many quick skips, the search starts only after `retryAfter`; nil if it has
        /// started.
        case waiting(retryAfter: Duration?)
        /// A partner was found.
        case matched(Match)
        /// The partner has entered the chat. From this point, the partner receives messages.
        case entered
        /// The partner's connection dropped, or was restored.
        case partner(isConnected: Bool)
        /// A line of the text chat, from either person.
        case message(ChatLine)
        /// The partner started or stopped typing.
        case typing(Bool)
        /// Media from the partner has started to arrive. Sent again whenever its source changes.
        case receiving(MediaSubscriber)
        /// The partner's video has arrived. Sent again whenever its source changes.
        case video(any VideoSource)
        /// The partner's audio has arrived, and the partner is not sending video. ``video(_:)`` follows if that
        /// changes.
        case audioOnly
        /// No media from the partner has arrived in time. The chat continues.
        case noStream
        /// The chat ended. Unless the reason is final (``MatchEnding/isFinal``), `waiting` follows.
        case ended(MatchEnding)
        /// The partner of the current or last chat wants to keep in touch: see ``Roulette/keepInTouch()``.
        case contactAsked
        /// The operator of the server, or their program, warns this person. Show it; a chat that it ends is followed by
        /// ``ended(_:)``. It can also come outside of a chat.
        case warned(RouletteWarning)
        /// The partner's video must not be shown, or only blurred (true), or may be shown again (false). Each chat begins with
        /// false.
        case partnerBlurred(Bool)
        /// The partner sees this person's video blurred (true), or no longer (false).
        case ownVideoBlurred(Bool)
        /// The search continues after the connection was replaced.
        case recovered
        /// Something failed. If the server ended the search, ``Roulette/state`` is idle.
        case failed(ConfabError)
    }

    /// Whether this device is searching or in a chat.
    public enum State: String, Hashable, Sendable {
        // `idle` → `waiting` → `matched`; `matched` → `waiting`, `idle`; `waiting` → `idle`.
        /// Not in the roulette: neither searching nor in a chat.
        case idle
        /// Searching for a partner.
        case waiting
        /// In a chat.
        case matched
    }

    private let feature: FeatureCore<RouletteMachine>
    private let media: RouletteMedia
    private let source: EventSource<Event>
    private let contacts: Contacts

    init(_ desk: FeatureDesk, _ contacts: Contacts) {
        let source = EventSource<Event>(holdsMedia: true, fold: Self.fold)
        let media = RouletteMedia(desk.core, source)
        let feature = FeatureCore(
            RouletteMachine(), desk, tell: { media.tell($0) }, perform: { media.perform($0) })
        media.weakFeature.set(feature)
        (self.feature, self.media, self.source, self.contacts) = (feature, media, source, contacts)
        desk.onClose { [weak media] in
            media?.releaseIfIdle()
            source.finish()
        }
    }

    /// The events. An iteration begins with those that describe the current search or chat.
    nonisolated public var events: Events<Event> { source.events }
    /// The current state of this device in the roulette.
    nonisolated public var state: State { feature.read(\.state) }
    /// The current chat; nil while there is none.
    nonisolated public var match: Match? { feature.read(\.currentMatch).map { Match($0, media) } }
    /// Whether video chats go through this server or directly between the two people; nil before the first connection.
    nonisolated public var mediaMode: Session.MediaMode? {
        feature.desk.core.welcome.map { $0.media?.roulette == .routed ? .routed : .relayed }
    }

    /// The time between two images of a camera that clients are asked to send in video chats; nil if the server checks none, and before
    /// the first connection. This SDK sends none. Mention the check in the rules that people agree to if your application does.
    nonisolated public var samplingInterval: Duration? { feature.desk.core.welcome?.sampling?.interval }

    /// Publishes this media in every video chat, including the current one. The media belongs to the application, which
    /// can show it before the search starts. Audio or video that the application disables in it stays disabled in later
    /// chats. Nil stops publishing; the next ``start(_:interests:name:)`` then captures media itself.
    public func preview(_ own: (any LocalMedia)?) { media.use(own) }

    /// Starts searching for a partner. Connects the client if needed. A video chat without ``preview(_:)`` captures a
    /// camera and a microphone until the search ends.
    ///
    /// - Parameters:
    ///   - mode: with video, or text only.
    ///   - interests: topics such as "chess". The server prefers partners who share one.
    ///   - name: the name that partners see; nil for the client's name.
    /// - Throws: `banned`, `elsewhere`, `invalid_interests`, an error of the media engine or of the connection.
    public func start(_ mode: Mode = .video, interests: [String] = [], name: String? = nil) async throws(ConfabError) {
        try await feature.desk.core.connect()
        if mode == .video { try await media.capture() }
        let search = RouletteVerb.Start(mode: mode == .text ? .text : .video, interests: interests, name: name)
        defer { media.releaseIfIdle() }
        try await feature.ask(.start(search))
    }

    /// Ends the chat and searches for the next partner.
    public func next() async throws(ConfabError) { try await feature.ask(.next) }

    /// Starts (true) or stops (false) sending audio and video, and notifies the partner; nil changes nothing. This also
    /// applies to all later chats.
    public func setSending(audio: Bool? = nil, video: Bool? = nil) { media.setSending(audio: audio, video: video) }

    /// Ends the chat and the search.
    public func stop() async throws(ConfabError) {
        defer { media.releaseIfIdle() }
        try await feature.ask(.stop)
    }

    /// Reports a partner to the server's operator, and includes the most recent lines of the chat.
    ///
    /// - Parameters:
    ///   - reason: what happened, at most 500 bytes.
    ///   - match: the id of the chat, which may have ended up to 60 s ago; nil for the current or last chat.
    public func report(_ reason: String, match: MatchID? = nil) async throws(ConfabError) {
        try await feature.ask(.report(reason, match))
    }

    /// Blocks a partner permanently. The chat ends, and the search continues.
    ///
    /// - Parameter match: the id of the chat, which may have ended up to 60 s ago; nil for the current or last chat.
    public func block(match: MatchID? = nil) async throws(ConfabError) { try await feature.ask(.block(match)) }

    /// Offers to keep in touch with the partner of the current or last chat. If both people do this, they become
    /// contacts.
    ///
    /// - Throws: `not_matched` before the first chat, `not_found` if it ended too long ago, or `not_permitted` if this
    ///   person has blocked the partner or already has 500 contacts.
    public func keepInTouch() async throws(ConfabError) {
        guard let match = feature.read(\.lastMatch) else { throw .notMatched }
        try await contacts.keep(match: match)
    }

    /// Returns how many people are connected, and how many of them wait for a partner.
    public func count() async throws(ConfabError) -> (online: Int, waiting: Int) {
        guard case .roulette(.count(let count)) = try await feature.ask(.count) else { throw .noAnswer }
        return (count.online, count.waiting)
    }

    /// Notifies the partner that this person is typing or has stopped. Call this method on every key press; the SDK
    /// limits how often the notification is sent.
    public func setTyping(_ isTyping: Bool) async { _ = try? await feature.ask(.typing(isTyping)) }

    /// Sends a line to the partner.
    ///
    /// - Throws: `not_matched` without a partner, `not_permitted` if the partner's app has no text chat.
    public func say(_ text: String) async throws(ConfabError) {
        guard let match else { throw .notMatched }
        try await match.say(text)
    }

    /// Updates the events that a new iteration begins with.
    @Sendable private static func fold(_ present: inout [Event], _ event: Event) {
        switch event {
        case .waiting, .matched: present = [event]
        case .entered: present.append(event)
        case .receiving: present = present.filter { !$0.isArrival && !$0.isReceiving } + [event]
        case .video, .audioOnly: present = present.filter { !$0.isArrival } + [event]
        case .ended: present = []
        default: break
        }
    }
}

/// A warning by the operator of the server, or by their program that checks video chats.
public struct RouletteWarning: Hashable, Sendable {
    /// Whether an operator warns, after a report. Otherwise their program does.
    public let isByOperator: Bool
    /// Whether the chat ends because of it.
    public let endsChat: Bool
    /// A sentence for the person; nil for the application's own.
    public let text: String?

    init(_ notice: RouletteNotice.Warning) {
        (isByOperator, endsChat, text) = (notice.source == .operator, notice.ends, notice.text)
    }
}

/// A chat with a stranger.
public struct Match: Sendable, Identifiable {
    /// The id of the match, for ``Roulette/report(_:match:)`` and ``Roulette/block(match:)``.
    public let id: MatchID
    /// The kind of chat.
    public let mode: Roulette.Mode
    /// The partner's name; may be empty.
    public let partnerName: String
    /// The interests that both people share.
    public let sharedInterests: [String]
    /// Whether there is a text chat. The partner's app may have none.
    public let hasTextChat: Bool
    private let send: @Sendable (String) async throws(ConfabError) -> Void

    init(_ matched: RouletteNotice.Matched, _ media: RouletteMedia) {
        (id, mode) = (matched.match, matched.mode == .text ? .text : .video)
        (partnerName, sharedInterests) = (matched.partner.name, matched.partner.interests ?? [])
        hasTextChat = matched.textChat
        let id = matched.match
        send = { [weak media] text throws(ConfabError) in
            guard let media else { throw .notMatched }
            try await media.say(text, in: id)
        }
    }

    /// Sends a line to the partner, and returns when the server has accepted it.
    ///
    /// - Throws: `not_matched` if the chat is over, `not_permitted` if the partner's app has no text chat.
    public func say(_ text: String) async throws(ConfabError) {
        guard hasTextChat else { throw .noTextChat }
        try await send(text)
    }
}

/// A line of a text chat.
public struct ChatLine: Hashable, Sendable, CustomStringConvertible {
    /// The text of the line.
    public let text: String
    /// Whether this person wrote the line.
    public let isMine: Bool
    /// The text, for `print`.
    public var description: String { text }
}

extension Roulette.Event {
    fileprivate var isReceiving: Bool { if case .receiving = self { true } else { false } }

    /// Whether this event reports which media of the partner has arrived.
    fileprivate var isArrival: Bool {
        switch self {
        case .video, .audioOnly: true
        default: false
        }
    }
}

extension ConfabError {
    fileprivate static let notMatched = ConfabError(.notMatched, "You have no partner. Wait for the next one.")
    fileprivate static let noTextChat = ConfabError(
        .notPermitted, "Your partner's app has no text chat. Use audio, or search for the next partner.")
    static let noAnswer = ConfabError(
        .unexpectedAnswer,
        "The server sent an answer that this version does not support. Update the client or the server.")
}
