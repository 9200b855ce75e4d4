import Confab
import ConfabHeadless
import Datagrams
import Foundation
import Peers

/// A client of the SDK that plays a clip, echoes chat messages and records the other members, so that one person can try every
/// feature alone.
///
/// ```swift
/// let bot = try await Bot.connect(of: Bot.Group(plan)) { print($0) }
/// try await bot.run()
/// ```
public final class Bot: Sendable {
    /// The bots of one process. They share the thread for media, and are never matched with each other.
    public struct Group: Sendable {
        let plan: BotPlan
        let turns = RouletteTurns()
        let engine: FileEngine

        public init(_ plan: BotPlan) {
            (self.plan, engine) = (plan, FileEngine(publishing: [], isIPv6: plan.isIPv6))
        }
    }

    /// How long to try to reach the server.
    private static let connectTimeout = Duration.seconds(5)

    let plan: BotPlan
    let client: ConfabClient
    let engine: BotEngine
    let tell: @Sendable (String) -> Void
    private let turns: RouletteTurns
    private let number: Int

    /// Connects to the server.
    ///
    /// - Parameters:
    ///   - number: the bot's index in its group.
    ///   - tell: receives one line of progress text without a line feed; called on any thread.
    /// - Throws: a `RobotError`, or a `ConfabError` of the SDK or the server.
    public static func connect(
        _ number: Int = 0, of group: Group, tell: @escaping @Sendable (String) -> Void
    ) async throws -> Bot {
        let plan = group.plan
        guard let server = URL(string: plan.server) else { throw RobotError.noAddress(plan.server) }
        var credential = ConfabClient.Credential.anonymous(MemoryIdentity())
        if case .session(_, let token) = plan.place { credential = .userToken { token } }
        var options = ConfabClient.Options()
        (options.clientName, options.connectTimeout) = ("confab bot", connectTimeout)
        let engine = BotEngine(group.engine, plan.clip, tell: tell)
        let client = ConfabClient(
            server: server, credential: credential, name: plan.name, media: engine, options: options)
        let bot = Bot(client, engine, number, group, tell)
        do {
            try await client.connect()
            try bot.check()
            return bot
        } catch {
            await client.leave()
            throw error
        }
    }

    private init(
        _ client: ConfabClient, _ engine: BotEngine, _ number: Int, _ group: Group,
        _ tell: @escaping @Sendable (String) -> Void
    ) {
        (plan, turns) = (group.plan, group.turns)
        (self.client, self.engine, self.number, self.tell) = (client, engine, number, tell)
    }

    private func check() throws {
        guard case .roulette = plan.place, client.roulette.mediaMode != .routed else { return }
        throw RobotError(
            "The bot needs routed media, but the roulette on this server is relayed. "
                + "Set roulette.mediaMode to routed.")
    }

    /// Joins the session or the roulette, as planned, and stays there until the task is canceled or the connection ends.
    ///
    /// - Throws: the reason why the connection ended, unless the task was canceled.
    public func run() async throws {
        let outcome: Result<Void, any Error>
        do {
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    switch self.plan.place {
                    case .session(let session, let token): try await self.membership(in: session, token)
                    case .roulette: try await self.play()
                    }
                }
                tasks.addTask { throw await self.ending() }
                defer { tasks.cancelAll() }
                try await tasks.next()
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await turns.release(number)
        await client.leave()
        if !Task.isCancelled { try outcome.get() }
    }

    /// Waits for the end of the connection, and returns the reason. A dropped connection does not count as the end
    /// while the SDK tries to restore it.
    private func ending() async -> RobotError {
        for await state in client.states {
            switch state {
            case .idle, .connecting, .online, .reconnecting: continue
            case .offline(.refused(let error)), .closed(.some(let error)): return RobotError(error.description)
            case .offline: return RobotError("The connection to the server was lost.")
            case .closed(nil): break
            }
        }
        return RobotError("The connection to the server ended.")
    }

    // MARK: In the roulette

    /// A chat with one partner.
    private struct Chat {
        let match: Match
        var conversation: Conversation
        var receiver: BotReceiver?
    }

    private func play() async throws {
        let events = client.roulette.events.makeAsyncIterator()
        var chat: Chat?
        try await wait()
        while let event = await events.next() {
            switch event {
            case .matched(let match): chat = try await meet(match)
            case .ended(let ending):
                guard let ended = chat else { continue }
                tell(Self.sentence(ending))
                await turns.end(ended.match.id, of: number)
                await ended.receiver?.end()
                chat = nil
                try await wait(isInQueue: true)
            case .failed(let error):
                guard client.roulette.state != .idle else { throw error }
                tell(error.message)
            default: await handle(event, in: &chat)
            }
        }
        await chat?.receiver?.end()
    }

    private func handle(_ event: Roulette.Event, in chat: inout Chat?) async {
        guard var present = chat else { return }
        defer { chat = present }
        switch event {
        case .entered:
            if let greeting = present.conversation.greeting(now: .monotonic) { await say(greeting, in: present.match) }
        case .partner(let isConnected):
            tell(isConnected ? "The partner is back" : "The partner dropped and may come back")
        case .message(let line) where !line.isMine:
            tell("Chat message: \(printable(String(line.text.prefix(Conversation.maxEchoLength))))")
            guard let answer = present.conversation.answer(to: line.text, now: .monotonic) else { return }
            await say(answer, in: present.match)
        case .receiving(let subscriber) where present.receiver?.stream != subscriber.stream.id:
            await present.receiver?.end()
            present.receiver = BotReceiver(subscriber, directory: plan.directory, tell: tell)
        default: break
        }
    }

    private func say(_ text: String, in match: Match) async {
        // Ignore an error. It means that the partner has left or has no text chat, or that the bot is rate-limited.
        try? await match.say(text)
    }

    /// Enters the queue once no other bot of the group is in it.
    ///
    /// - Parameter isInQueue: true if the server has already requeued this bot after a match.
    private func wait(isInQueue: Bool = false) async throws {
        let isTurn = await turns.tryTaking(number)
        if !isTurn {
            if isInQueue { try await client.roulette.stop() }
            guard await turns.take(number) else { return }
        }
        if !isTurn || !isInQueue { try await client.roulette.start(name: plan.name) }
        tell("In the roulette; waiting for a partner")
    }

    /// Starts the chat of a match, or leaves the match if the partner is another bot of this group.
    /// - Returns: the chat; nil if the bot has left the match.
    private func meet(_ match: Match) async throws -> Chat? {
        guard await turns.begin(match.id, of: number) else {
            // Leave the match. The server notifies the other bot that its partner left, and that bot stays in the
            // queue.
            try await client.roulette.stop()
            try await wait()
            return nil
        }
        await turns.release(number)
        tell("Matched with a partner" + (match.partnerName.isEmpty ? "" : ": \(printable(match.partnerName))"))
        return Chat(match: match, conversation: Conversation(saying: plan.line))
    }

    private static func sentence(_ ending: MatchEnding) -> String {
        switch ending {
        case .partnerNext: "The partner moved on"
        case .partnerLeft: "The partner left"
        case .banned: "The bot was banned"
        case .connectionLost: "The connection was lost"
        case .next, .stopped, .blocked: "The chat is over"
        }
    }
}

extension RobotError {
    static func noAddress(_ text: String) -> RobotError {
        RobotError("\"\(text)\" is not a server address. Use one such as http://127.0.0.1:8080.")
    }
}
