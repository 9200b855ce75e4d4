import Confab
import Datagrams
import Peers

extension Bot {
    /// The maximum number of streams that are recorded at the same time.
    static let maxStreams = 8

    /// Joins a session, publishes there, and stays until the task is canceled or the session ends.
    func membership(in id: SessionID, _ token: String) async throws {
        let session = await client.session(id, token: token)
        let events = session.events.makeAsyncIterator()
        try await session.connect()
        guard session.mediaMode == .routed else {
            throw RobotError(
                "The session is relayed, but the bot needs a routed one. "
                    + "Create one with `confab session create --media routed`.")
        }
        guard session.capabilities.canPublish else {
            throw RobotError("The token's role does not allow publishing. Create a token with --role publisher.")
        }
        try await session.publish(engine.media, as: .init(name: plan.name, videoKind: .custom))
        tell("In the session")
        var membership = BotMembership(session, plan, tell)
        while let event = await events.next() {
            if case .disconnected(let reason) = event {
                await membership.end()
                throw RobotError("The bot was removed from the session (\(reason.rawValue)).")
            }
            await membership.handle(event)
        }
        await membership.end()
        if let failure = events.failure { throw failure }
    }
}

/// The state of a bot in a session: its chat, and the streams that it records.
private struct BotMembership {
    private let session: Session
    private let plan: BotPlan
    private let tell: @Sendable (String) -> Void
    private var conversation: Conversation
    private var receivers: [StreamID: BotReceiver] = [:]

    init(_ session: Session, _ plan: BotPlan, _ tell: @escaping @Sendable (String) -> Void) {
        (self.session, self.plan, self.tell) = (session, plan, tell)
        conversation = Conversation(saying: plan.line)
    }

    mutating func handle(_ event: Session.Event) async {
        switch event {
        case .connectionCreated(let connection):
            guard session.capabilities.canSignal, let text = conversation.greeting(now: .monotonic) else { return }
            await say(text, to: connection.id)
        case .signal(let signal): await answer(signal)
        case .streamCreated(let stream): await record(stream)
        case .streamDestroyed(let stream, _): await receivers.removeValue(forKey: stream.id)?.end()
        default: break
        }
    }

    mutating func end() async {
        for receiver in receivers.values { await receiver.end() }
        receivers = [:]
    }

    private mutating func answer(_ signal: Session.Signal) async {
        guard signal.type == "chat", let text = signal.data, let sender = signal.from,
            sender != session.connection?.id, session.capabilities.canSignal
        else { return }
        tell("Chat message: \(printable(String(text.prefix(Conversation.maxEchoLength))))")
        guard let answer = conversation.answer(to: text, now: .monotonic) else { return }
        await say(answer, to: sender)
    }

    private func say(_ text: String, to connection: ConnectionID) async {
        // Ignore an error. It means that the recipient has left or the bot is rate-limited.
        try? await session.signal("chat", text, to: connection)
    }

    private mutating func record(_ stream: MediaStream) async {
        guard plan.directory != nil, session.capabilities.canSubscribe, receivers.count < Bot.maxStreams else { return }
        // Ignore an error, which means that the stream has ended in the meantime.
        guard let subscriber = try? await session.subscribe(to: stream) else { return }
        receivers[stream.id] = BotReceiver(subscriber, directory: plan.directory, tell: tell)
    }
}
