import Datagrams
import RTC
import Wire

/// A client that plays a clip, echoes chat messages and records the other members, so that one person can try every feature
/// alone. The bot owns one WebSocket and two peer connections. A `Visit` stores the state of the session that the bot is in.
///
/// ```swift
/// let bot = try await Bot.connect(plan, on: loop) { print($0) }
/// try await bot.run()
/// ```
public final class Bot: Sendable {
    private let plan: BotPlan
    private let client: RobotClient
    private let media: BotMedia
    private let turns: RouletteTurns
    private let number: Int
    private let tell: @Sendable (String) -> Void

    /// A group of bots in one process that are never matched with each other.
    public struct Group: Sendable {
        let turns = RouletteTurns()
        public init() {}
    }

    /// Connects to the server and negotiates media.
    ///
    /// - Parameters:
    ///   - number: the bot's index in its group.
    ///   - tell: receives one line of progress text without a line feed; called on any thread.
    /// - Throws: a `RobotError`, or the `WireError` that the server sent.
    public static func connect(
        _ plan: BotPlan, number: Int = 0, of group: Group = Group(), on loop: RobotLoop,
        tell: @escaping @Sendable (String) -> Void
    ) async throws -> Bot {
        var hello = Hello()
        (hello.name, hello.client) = (plan.name, "confab bot")
        if case .session(_, let token) = plan.place { hello.token = token }
        let client = try await RobotClient.connect(to: plan.server, hello: hello)
        do {
            try check(plan, client.welcome)
            let media = BotMedia(plan, on: loop, tell: tell)
            try await media.connect(over: client)
            return Bot(plan, client, media, number, group.turns, tell)
        } catch {
            await client.close()
            throw error
        }
    }

    private init(
        _ plan: BotPlan, _ client: RobotClient, _ media: BotMedia, _ number: Int, _ turns: RouletteTurns,
        _ tell: @escaping @Sendable (String) -> Void
    ) {
        (self.plan, self.client, self.media) = (plan, client, media)
        (self.number, self.turns, self.tell) = (number, turns, tell)
    }

    private static func check(_ plan: BotPlan, _ welcome: Welcome) throws {
        guard let routed = welcome.media else {
            throw RobotError("The bot needs routed sessions, but this server does not route media.")
        }
        if case .roulette = plan.place, routed.roulette != .routed {
            throw RobotError(
                "The bot needs routed media, but the roulette on this server is relayed. "
                    + "Set roulette.mediaMode to routed.")
        }
    }

    /// Joins the session or the roulette, as planned, and stays there until the task is cancelled or the connection ends.
    ///
    /// - Throws: the reason why the connection ended, unless the task was cancelled.
    public func run() async throws {
        let outcome: Result<Void, any Error>
        do {
            switch plan.place {
            case .session(let session, let token): try await stay(in: session, token)
            case .roulette: try await play()
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await turns.release(number)
        await media.close()
        await client.close()
        if !Task.isCancelled { try outcome.get() }
    }

    private func ended() -> RobotError { RobotError(client.ending ?? "The connection to the server ended.") }

    // MARK: In a session

    private func stay(in session: SessionID, _ token: String) async throws {
        var visit = Visit(client, media, Conversation(saying: plan.line), tell)
        try await visit.enter(publishing: session, token, as: plan)
        tell("In the session")
        for await event in client.events {
            try await visit.handle(event)
            if case .session(.left(let left)) = event, left.session == session {
                throw RobotError("The bot was removed from the session (\(left.reason.rawValue)).")
            }
        }
        if !Task.isCancelled { throw ended() }
    }

    // MARK: In the roulette

    private func play() async throws {
        var match: MatchID?
        var visit: Visit?
        try await wait()
        for await event in client.events {
            switch event {
            case .roulette(.matched(let matched)):
                match = matched.match
                visit = try await meet(matched)
                if visit == nil { match = nil }
            case .roulette(.ended(let ended)) where ended.match == match:
                tell(Self.sentence(ended.reason))
                await turns.end(ended.match, of: number)
                await visit?.leave()
                (match, visit) = (nil, nil)
                try await wait(isInQueue: true)
            case .roulette(.partner(let partner)) where partner.match == match:
                tell(partner.state == .reconnecting ? "The partner dropped and may come back" : "The partner is back")
            default: try await visit?.handle(event)
            }
        }
        if !Task.isCancelled { throw ended() }
    }

    /// Enters the queue once no other bot of the group is in it.
    ///
    /// - Parameter isInQueue: true if the server has already queued this bot again after a match.
    private func wait(isInQueue: Bool = false) async throws {
        let isTurn = await turns.tryTaking(number)
        if !isTurn {
            if isInQueue { try await client.stop() }
            guard await turns.take(number) else { return }
        }
        if !isTurn || !isInQueue { try await client.start(.init(mode: .video, name: plan.name)) }
        tell("In the roulette; waiting for a partner")
    }

    /// - Returns: the visit, or nil if the partner is another bot of this group.
    private func meet(_ matched: RouletteNotice.Matched) async throws -> Visit? {
        guard await turns.begin(matched.match, of: number) else {
            // The server notifies the other bot that its partner left, and that bot stays in the queue.
            try await client.stop()
            try await wait()
            return nil
        }
        await turns.release(number)
        tell("Matched with a partner" + (matched.partner.name.isEmpty ? "" : ": \(printable(matched.partner.name))"))
        var visit = Visit(client, media, Conversation(saying: plan.line), tell)
        do {
            let (publish, subscribe) = (matched.publish, matched.subscribe)
            try await visit.enter(publishing: publish.session, publish.token, as: plan)
            if subscribe.session != publish.session { try await visit.enter(subscribe.session, subscribe.token) }
        } catch let error as WireError where error.code.isToken || error.code == .notJoined {
            // The match ended before the bot could join it. The server then sends `roulette.ended`.
            return visit
        }
        return visit
    }

    private static func sentence(_ reason: EndReason) -> String {
        switch reason {
        case .partnerNext: "The partner moved on"
        case .partnerLeft: "The partner left"
        case .banned: "The bot was banned"
        case .next, .stopped, .blocked: "The chat is over"
        }
    }
}
