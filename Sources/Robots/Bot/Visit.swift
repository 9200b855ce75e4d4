import Datagrams
import RTC
import Wire

/// A bot among people: the one or two sessions it is in for a while, what it publishes there, whom it records, and what
/// it says. Forgotten when it leaves.
struct Visit {
    private let client: RobotClient
    private let media: BotMedia
    private let tell: @Sendable (String) -> Void
    private var conversation: Conversation
    /// In which it has which connection of its own.
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
            throw RobotError("The token's role may not publish; make one with --role publisher.")
        }
        var publish = SessionVerb.Publish()
        (publish.session, publish.name, publish.videoType) = (session, plan.name, .custom)
        (publish.hasAudio, publish.hasVideo) = (plan.programme.hasAudio, plan.programme.hasVideo)
        (publish.width, publish.height) = (plan.programme.width, plan.programme.height)
        publish.mids = MediaMids(
            audio: plan.programme.hasAudio ? BotMedia.sent.audio : nil,
            video: plan.programme.hasVideo ? BotMedia.sent.video : nil)
        _ = try await client.publish(publish)
    }

    /// Joins a session, greets who is there and records what they publish.
    @discardableResult
    mutating func enter(_ session: SessionID, _ token: String) async throws -> SessionNotice.Joined {
        let joined = try await client.join(session, token: token)
        guard joined.mediaMode == .routed else {
            throw RobotError(
                "This session is relayed, and the bot needs a routed one: confab session create --media routed.")
        }
        own[session] = joined.connection.id
        capabilities[session] = joined.capabilities
        for connection in joined.connections where connection.id != joined.connection.id {
            try await greet(connection.id, in: session)
        }
        for stream in joined.streams { try await record(stream, in: session) }
        return joined
    }

    mutating func leave() async {
        for stream in recorded { await media.end(stream) }
        recorded = []
        // The server may have closed them already.
        for session in own.keys { try? await client.leave(session) }
        own = [:]
    }

    /// - Throws: only when the line has ended, or the server ended the media.
    mutating func hear(_ event: ServerMessage) async throws {
        switch event {
        case .session(.connectionCreated(let created)): try await greet(created.connection.id, in: created.session)
        case .session(.signal(let signal)): try await answer(signal)
        case .session(.streamCreated(let created)): try await record(created.stream, in: created.session)
        case .session(.streamDestroyed(let destroyed)):
            guard recorded.remove(destroyed.stream) != nil else { return }
            await media.end(destroyed.stream)
        case .session(.subscriptionChanged(let change)) where change.videoPaused:
            let why = change.reason == .codec ? "it is in no VP8" : "this line is too slow for it"
            tell("A picture is not recorded: \(why)")
        case .media(.closed(let closed)): throw RobotError("The server ended the media: \(closed.message)")
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
        tell("Somebody wrote: \(printable(String(text.prefix(Conversation.mostRepeated))))")
        guard let answer = conversation.answer(to: text, now: .monotonic) else { return }
        try await say(answer, to: sender, in: signal.session)
    }

    private func say(_ text: String, to connection: ConnectionID, in session: SessionID) async throws {
        do {
            try await client.signal(session, type: "chat", data: text, to: connection)
        } catch is WireError {
            // Whom it was for has left, or the server has heard enough.
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
            // It has ended meanwhile.
            recorded.remove(stream.id)
            await media.end(stream.id)
        }
    }
}
