import Signaling
import Testing
import Wire

// What guests do in almost every test, in a word each.
extension Guest {
    @discardableResult func join(_ session: SessionID, token: String) -> ServerMessage? {
        ask(.join(Join(session: session, token: token)))
    }

    /// Joins and returns what it was told, or `nil`.
    @discardableResult func enter(_ session: SessionID, _ role: Role = .publisher, data: String = "", on stage: Stage)
        -> Joined?
    {
        guard case .joined(let joined)? = join(session, token: stage.token(session, role, data: data)) else {
            return nil
        }
        return joined
    }

    @discardableResult func publish(_ session: SessionID, name: String? = nil, mids: MediaMids = MediaMids())
        -> Wire.Stream?
    {
        var verb = Publish()
        (verb.session, verb.name, verb.mids) = (session, name, mids)
        guard case .published(let published)? = ask(.publish(verb)) else { return nil }
        return published.stream
    }

    @discardableResult func subscribe(
        _ session: SessionID, _ stream: StreamID, audio: Bool = true, video: Bool = true, mids: MediaMids = MediaMids()
    ) -> ServerMessage? {
        ask(.subscribe(Subscribe(session: session, stream: stream, audio: audio, video: video, mids: mids)))
    }

    @discardableResult func unsubscribe(_ session: SessionID, _ stream: StreamID) -> ServerMessage? {
        ask(.unsubscribe(OfStream(session: session, stream: stream)))
    }

    @discardableResult func unpublish(_ session: SessionID, _ stream: StreamID) -> ServerMessage? {
        ask(.unpublish(OfStream(session: session, stream: stream)))
    }

    /// Says of a stream of its own what is otherwise now.
    @discardableResult func update(
        _ session: SessionID, _ stream: StreamID, audio: Bool? = nil, video: Bool? = nil, mids: MediaMids = MediaMids()
    ) -> ServerMessage? {
        var verb = Update()
        (verb.session, verb.stream, verb.hasAudio, verb.hasVideo, verb.mids) = (session, stream, audio, video, mids)
        return ask(.update(verb))
    }

    @discardableResult func connected(_ session: SessionID, _ other: Guest, _ connected: Bool = true) -> ServerMessage?
    {
        ask(.connected(PairConnected(session: session, connection: other.connection, connected: connected)))
    }

    @discardableResult func signal(
        _ session: SessionID, _ type: String? = "chat", _ data: String? = "hello", to: ConnectionID? = nil
    ) -> ServerMessage? {
        ask(.signal(Signal(session: session, type: type, data: data, to: to)))
    }

    @discardableResult func start(_ interests: [String] = [], mode: ChatMode? = nil, name: String? = nil)
        -> ServerMessage?
    {
        ask(.start(Start(mode: mode, interests: interests, name: name)))
    }

    @discardableResult func next() -> ServerMessage? { ask(.next(OfMatch())) }
    @discardableResult func stop() -> ServerMessage? { ask(.stop) }
    @discardableResult func block(_ match: MatchID? = nil) -> ServerMessage? { ask(.block(OfMatch(match: match))) }
    @discardableResult func report(_ reason: String = "rude", _ match: MatchID? = nil) -> ServerMessage? {
        ask(.report(ReportMatch(reason: reason, match: match)))
    }

    var isMatched: Bool { match != nil }

    /// The partner's name in the present chat; tests name people so that they can tell them apart.
    var partner: String? { match?.partner.name }

    /// The types of what was heard, for tests that are about order.
    func takeTypes() -> [String] { take().map(\.type) }

    /// How this client's last chat ended, as far as heard and not yet taken.
    func takeEnds() -> [EndReason] {
        take().compactMap { if case .ended(let ended) = $0 { ended.reason } else { nil } }
    }
}

extension [Guest] {
    var areMatched: Bool { allSatisfy { $0.isMatched } }
    var matchedCount: Int { count { $0.isMatched } }
}
