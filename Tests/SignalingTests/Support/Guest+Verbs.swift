import Signaling
import Testing
import Wire

// Shortcuts for common steps.
extension Guest {
    @discardableResult func join(_ session: SessionID, token: String) -> ServerMessage? {
        ask(.session(.join(.init(session: session, token: token))))
    }

    /// Joins a session and returns the `joined` notice, or nil if the client may not join.
    @discardableResult func enter(_ session: SessionID, _ role: Role = .publisher, data: String = "", on stage: Stage)
        -> SessionNotice.Joined?
    {
        guard case .session(.joined(let joined))? = join(session, token: stage.token(session, role, data: data)) else {
            return nil
        }
        return joined
    }

    @discardableResult func publish(_ session: SessionID, name: String? = nil, mids: MediaMids = MediaMids())
        -> StreamInfo?
    {
        var verb = SessionVerb.Publish()
        (verb.session, verb.name, verb.mids) = (session, name, mids)
        guard case .session(.published(let published))? = ask(.session(.publish(verb))) else { return nil }
        return published.stream
    }

    @discardableResult func subscribe(
        _ session: SessionID, _ stream: StreamID, audio: Bool = true, video: Bool = true, mids: MediaMids = MediaMids()
    ) -> ServerMessage? {
        ask(.session(.subscribe(.init(session: session, stream: stream, audio: audio, video: video, mids: mids))))
    }

    @discardableResult func unsubscribe(_ session: SessionID, _ stream: StreamID) -> ServerMessage? {
        ask(.session(.unsubscribe(.init(session: session, stream: stream))))
    }

    @discardableResult func unpublish(_ session: SessionID, _ stream: StreamID) -> ServerMessage? {
        ask(.session(.unpublish(.init(session: session, stream: stream))))
    }

    /// Changes one of the guest's own streams.
    @discardableResult func update(
        _ session: SessionID, _ stream: StreamID, audio: Bool? = nil, video: Bool? = nil, mids: MediaMids = MediaMids()
    ) -> ServerMessage? {
        var verb = SessionVerb.Update()
        (verb.session, verb.stream, verb.hasAudio, verb.hasVideo, verb.mids) = (session, stream, audio, video, mids)
        return ask(.session(.update(verb)))
    }

    @discardableResult func connected(_ session: SessionID, _ other: Guest, _ connected: Bool = true) -> ServerMessage?
    {
        ask(.session(.connected(.init(session: session, connection: other.connection, connected: connected))))
    }

    @discardableResult func signal(
        _ session: SessionID, _ type: String? = "chat", _ data: String? = "hello", to: ConnectionID? = nil
    ) -> ServerMessage? {
        ask(.session(.signal(.init(session: session, type: type, data: data, to: to))))
    }

    @discardableResult func start(_ interests: [String] = [], mode: ChatMode? = nil, name: String? = nil)
        -> ServerMessage?
    {
        ask(.roulette(.start(.init(mode: mode, interests: interests, name: name))))
    }

    @discardableResult func next() -> ServerMessage? { ask(.roulette(.next(.init()))) }
    @discardableResult func stop() -> ServerMessage? { ask(.roulette(.stop)) }
    @discardableResult func block(_ match: MatchID? = nil) -> ServerMessage? {
        ask(.roulette(.block(.init(match: match))))
    }
    @discardableResult func report(_ reason: String = "rude", _ match: MatchID? = nil) -> ServerMessage? {
        ask(.roulette(.report(.init(reason: reason, match: match))))
    }

    var isMatched: Bool { match != nil }

    /// The partner's name in the current chat. Tests use names to tell people apart.
    var partner: String? { match?.partner.name }

    /// Returns the types of the received messages, for tests of their order.
    func takeTypes() -> [String] { take().map(\.type) }

    /// Returns the reasons for which chats have ended since the previous take.
    func takeEnds() -> [EndReason] {
        take().compactMap { if case .roulette(.ended(let ended)) = $0 { ended.reason } else { nil } }
    }
}

extension [Guest] {
    var areMatched: Bool { allSatisfy { $0.isMatched } }
    var matchedCount: Int { count { $0.isMatched } }
}
