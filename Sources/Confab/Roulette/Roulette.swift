import Wire

/// Chats with strangers: finds partners who are there now, one after the other.
///
/// ```swift
/// let events = client.roulette.events
/// try await client.roulette.start(interests: ["chess"])
/// for await event in events {
///     if case .matched(let match) = event { try await match.say("Hello") }
/// }
/// ```
///
/// The search and the own media outlive a restart of the connection: a chat then ends with `connectionLost`, and the next search
/// begins by itself.
public actor Roulette {
    /// The kind of chat. People meet only others who chose the same.
    public enum Mode: String, Hashable, Sendable, CaseIterable {
        /// With camera and microphone.
        case video
        /// With text only.
        case text
    }

    /// Something that happened in the roulette.
    public enum Event: Sendable {
        /// Looking for a partner. After many quick skips, the search begins only after a pause.
        case waiting(retryAfter: Duration?)
        /// A partner was found.
        case matched(Match)
        /// The partner has entered the chat. What is said from now on arrives.
        case entered
        /// The partner's connection dropped, or is back.
        case partner(isConnected: Bool)
        /// A line of the text chat, of either person.
        case message(ChatLine)
        /// The partner types, or no longer does.
        case typing(Bool)
        /// What the partner sends arrives. It is told again when a source has changed.
        case receiving(MediaSubscriber)
        /// The partner's picture is here. It is told again when the source has changed.
        case video(any VideoSource)
        /// The partner's sound is here, and the partner sends no picture now. ``video(_:)`` follows if that changes.
        case audioOnly
        /// The partner sends neither sound nor picture yet. The chat goes on.
        case noStream
        /// The chat is over. Unless the reason is final, `waiting` follows.
        case ended(MatchEnding)
        /// The partner of the current or last chat wants to keep in touch: see ``Roulette/keepInTouch()``.
        case contactAsked
        /// The search goes on after the connection was replaced.
        case recovered
        /// Something failed. If the server ended the search, ``Roulette/state`` is idle.
        case failed(ConfabError)
    }

    /// Whether this device searches or chats.
    public enum State: String, Hashable, Sendable {
        // `idle` → `waiting` → `matched`; `matched` → `waiting`, `idle`; `waiting` → `idle`.
        /// Neither.
        case idle
        /// Looking for a partner.
        case waiting
        /// In a chat.
        case matched
    }

    private let way: WayCore<RouletteMachine>
    private let media: RouletteMedia
    private let source: EventSource<Event>
    private let contacts: Contacts

    init(_ desk: WayDesk, _ contacts: Contacts) {
        let source = EventSource<Event>(fold: Self.fold)
        let media = RouletteMedia(desk.core, source)
        let way = WayCore(
            RouletteMachine(), desk, tell: { media.tell($0) }, perform: { media.perform($0) })
        media.attach(way)
        (self.way, self.media, self.source, self.contacts) = (way, media, source, contacts)
        desk.onClose { [weak media] in
            media?.releaseIfIdle()
            source.finish()
        }
    }

    /// What happens. Iterations begin with the present search or chat.
    nonisolated public var events: Events<Event> { source.events }
    /// What this device does now.
    nonisolated public var state: State { way.read(\.state) }
    /// The current chat; nil while there is none.
    nonisolated public var match: Match? { way.read(\.currentMatch).map { Match($0, media) } }
    /// Whether video chats go through this server or directly from person to person; nil before the first connection.
    nonisolated public var mediaMode: Session.MediaMode? {
        way.desk.core.welcome.map { $0.media?.roulette == .routed ? .routed : .relayed }
    }

    /// Publishes this media in every chat from now on, also in the current one; nil publishes nothing. The media belongs to the
    /// application, which can show it before the search begins. What the application disables in it stays disabled in the next
    /// chats.
    public func preview(_ own: (any LocalMedia)?) { media.use(own) }

    /// Looks for a partner. Connects the client if needed. A video chat without ``preview(_:)`` captures a camera and a
    /// microphone, until the search ends.
    ///
    /// - Parameters:
    ///   - mode: with video, or text only.
    ///   - interests: partners who share one are preferred.
    ///   - name: the name that partners see; nil for the client's name.
    /// - Throws: `banned`, `elsewhere`, `invalid_interests`, an error of the media engine or of the connection.
    public func start(_ mode: Mode = .video, interests: [String] = [], name: String? = nil) async throws(ConfabError) {
        try await way.desk.core.connect()
        if mode == .video { try await media.capture() }
        let search = RouletteVerb.Start(mode: mode == .text ? .text : .video, interests: interests, name: name)
        defer { media.releaseIfIdle() }
        try await way.ask(.start(search))
    }

    /// Ends the chat and looks for the next partner.
    public func next() async throws(ConfabError) { try await way.ask(.next) }

    /// Sends audio and video or stops to send them, and tells the partner; nil changes nothing. It holds for all later chats,
    /// too.
    public func setSending(audio: Bool? = nil, video: Bool? = nil) { media.setSending(audio: audio, video: video) }

    /// Ends the chat and the search.
    public func stop() async throws(ConfabError) {
        defer { media.releaseIfIdle() }
        try await way.ask(.stop)
    }

    /// Reports a partner to the server's operator, with the last lines of the chat.
    ///
    /// - Parameters:
    ///   - reason: what happened, at most 500 bytes.
    ///   - match: the chat, up to 60 s after its end; nil for the current or last one.
    public func report(_ reason: String, match: MatchID? = nil) async throws(ConfabError) {
        try await way.ask(.report(reason, match))
    }

    /// Blocks a partner for good. The chat ends, and the search goes on.
    ///
    /// - Parameter match: the chat, up to 60 s after its end; nil for the current or last one.
    public func block(match: MatchID? = nil) async throws(ConfabError) { try await way.ask(.block(match)) }

    /// Says that this person wants to keep in touch with the partner of the current or last chat. The two become contacts if
    /// both say so.
    public func keepInTouch() async throws(ConfabError) {
        guard let match = way.read(\.lastMatch) else { throw .notMatched }
        try await contacts.keep(match: match)
    }

    /// How many people are connected, and how many of them wait for a partner.
    public func count() async throws(ConfabError) -> (online: Int, waiting: Int) {
        guard case .roulette(.count(let count)) = try await way.ask(.count) else { throw .noAnswer }
        return (count.online, count.waiting)
    }

    /// Tells the partner that this person types. Call it on every key press; the SDK sends it from time to time.
    public func setTyping(_ isTyping: Bool) async { _ = try? await way.ask(.typing(isTyping)) }

    /// Sends a line to the partner.
    ///
    /// - Throws: `not_matched` without a partner, `not_permitted` if the partner's app has no text chat.
    public func say(_ text: String) async throws(ConfabError) {
        guard let match else { throw .notMatched }
        try await match.say(text)
    }

    /// What a new iteration needs to know of the past.
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

/// A chat with a stranger.
public struct Match: Sendable, Identifiable {
    /// The id of the match.
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
    /// What was written.
    public let text: String
    /// Whether this person wrote it.
    public let isMine: Bool
    /// What was written, for `print`.
    public var description: String { text }
}

extension Roulette.Event {
    fileprivate var isReceiving: Bool { if case .receiving = self { true } else { false } }

    /// Whether this is what the partner sends.
    fileprivate var isArrival: Bool {
        switch self {
        case .video, .audioOnly: true
        default: false
        }
    }
}

extension ConfabError {
    fileprivate static let notMatched = ConfabError(.notMatched, "You have no partner now. Wait for the next one.")
    fileprivate static let noTextChat = ConfabError(
        .notPermitted, "Your partner's app has no text chat. Talk, or look for the next partner.")
    static let noAnswer = ConfabError(
        .unexpectedAnswer,
        "The server answered in a way that this version does not know. Update the client or the server.")
}
