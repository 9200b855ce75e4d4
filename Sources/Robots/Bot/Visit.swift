import Datagrams
import RTC
import Wire

/// The state of a bot in one or two sessions: its connections, the streams it records, and its chat. A visit is discarded when
/// the bot leaves.
struct Visit {
    private let client: RobotClient
    private let media: BotMedia
    private let tell: @Sendable (String) -> Void
    private var conversation: Conversation
    /// The id of the bot's own connection in each session.
    private var own: [SessionID: ConnectionID] = [:]
    private var capabilities: [SessionID: Capabilities] = [:]
    private var recorded: Set<StreamID> = []

    init(
        _ client: RobotClient, _ media: BotMedia, _ conversation: Conversation,
        _ tell: @escaping @Sendable (String) -> Void
    ) {
        (self.client, self.media, self.conversation, self.tell) = (client, media, conversation, tell)
    }

    /// Joins a session and publishes there.
    mutating func enter(publishing session: SessionID, _ token: String, as plan: BotPlan) async throws {
        let joined = try await enter(session, token)
        guard joined.capabilities.publish else {
            throw RobotError("The token's role does not allow publishing. Create a token with --role publisher.")
        }
        var publish = SessionVerb.Publish()
        (publish.session, publish.name, publish.videoType) = (session, plan.name, .custom)
        (publish.hasAudio, publish.hasVideo) = (plan.clip.hasAudio, plan.clip.hasVideo)
        (publish.width, publish.height) = (plan.clip.width, plan.clip.height)
        publish.mids = MediaMids(
            audio: plan.clip.hasAudio ? BotMedia.sent.audio : nil,
            video: plan.clip.hasVideo ? BotMedia.sent.video : nil)
        _ = try await client.publish(publish)
    }

    /// Joins a session, greets its members and records their streams.
    @discardableResult
    mutating func enter(_ session: SessionID, _ token: String) async throws -> SessionNotice.Joined {
        let joined = try await client.join(session, token: token)
        guard joined.mediaMode == .routed else {
            throw RobotError(
                "The session is relayed, but the bot needs a routed one. "
                    + "Create one with `confab session create --media routed`.")
        }
        own[session] = joined.connection.id
        capabilities[session] = joined.capabilities
        try await meet(joined.connections, joined.streams, in: session)
        return joined
    }

    private mutating func meet(_ connections: [ConnectionInfo], _ streams: [StreamInfo], in session: SessionID)
        async throws
    {
        for connection in connections { try await greet(connection.id, in: session) }
        for stream in streams { try await record(stream, in: session) }
    }

    mutating func leave() async {
        for stream in recorded { await media.end(stream) }
        recorded = []
        // The server may already have ended these sessions, so ignore errors.
        for session in own.keys { try? await client.leave(session) }
        own = [:]
    }

    /// - Throws: an error only if the connection ended or the server closed the media.
    mutating func handle(_ event: ServerMessage) async throws {
        switch event {
        case .session(.roster(let page)): try await meet(page.connections, page.streams, in: page.session)
        case .session(.connectionCreated(let created)): try await greet(created.connection.id, in: created.session)
        case .session(.signal(let signal)): try await answer(signal)
        case .session(.streamCreated(let created)): try await record(created.stream, in: created.session)
        case .session(.streamDestroyed(let destroyed)):
            guard recorded.remove(destroyed.stream) != nil else { return }
            await media.end(destroyed.stream)
        case .session(.subscriptionChanged(let change)) where change.videoPaused:
            let why = change.reason == .codec ? "its codec is not VP8" : "the connection is too slow"
            tell("Video is not recorded: \(why)")
        case .media(.closed(let closed)):
            throw RobotError("The server closed the media connection: \(closed.message)")
        default: break
        }
    }

    private mutating func greet(_ connection: ConnectionID, in session: SessionID) async throws {
        guard capabilities[session]?.signal == true, own[session] != nil, own[session] != connection,
            let text = conversation.greeting(now: .monotonic)
        else { return }
        try await say(text, to: connection, in: session)
    }

    private mutating func answer(_ signal: SessionNotice.Signal) async throws {
        guard signal.type == "chat", let text = signal.data, let sender = signal.from,
            let own = own[signal.session], own != sender, capabilities[signal.session]?.signal == true
        else { return }
        tell("Chat message: \(printable(String(text.prefix(Conversation.maxEchoLength))))")
        guard let answer = conversation.answer(to: text, now: .monotonic) else { return }
        try await say(answer, to: sender, in: signal.session)
    }

    private func say(_ text: String, to connection: ConnectionID, in session: SessionID) async throws {
        do {
            try await client.signal(session, type: "chat", data: text, to: connection)
        } catch is WireError {
            // Ignore the error, because the recipient has left or the bot is rate-limited.
        }
    }

    private mutating func record(_ stream: StreamInfo, in session: SessionID) async throws {
        guard let own = own[session], stream.connection != own, capabilities[session]?.subscribe == true,
            let mids = try await media.begin(stream.id)
        else { return }
        recorded.insert(stream.id)
        do {
            try await client.subscribe(.init(session: session, stream: stream.id, mids: mids))
        } catch is WireError {
            // The stream has ended in the meantime, so forget it.
            recorded.remove(stream.id)
            await media.end(stream.id)
        }
    }
}
