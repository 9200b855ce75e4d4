import NIOCore
import Signaling
import Wire

/// Measures the cost of relaying a signal while thousands of connections are open.
///
/// The connections are in sessions of two. A relay is one `session.signal` with 200 bytes of data. The server reads the request
/// and sends three messages: the signal to both members, and `ok` to the sender. The order of the pairs is random, so the next
/// pair is never in the CPU cache. The two members of a pair take turns, so acknowledgments are sent together with signals.
///
/// The class is `@unchecked Sendable` because its state is used only on the loop.
final class RelayBenchmark: @unchecked Sendable {
    struct Figures {
        var bytesPerIdle = 0.0
        /// The relays per second of CPU time, one value per round.
        var relaysPerSecond: [Double] = []
    }

    /// The maximum number of signals in flight.
    private static let window = 64
    private static let data = String(repeating: "0123456789", count: 20)

    let crowd: Crowd
    private(set) var figures = Figures()
    private var sessions: [SessionID] = []
    /// For each pair, the number of messages still missing of the three that end a relay.
    private var missing: [Int] = []
    private var turn: [Int] = []
    private var order: [Int] = []
    private var position = 0
    private var toSend = 0
    private var toEnd = 0

    init(crowd: Crowd) { self.crowd = crowd }

    /// Opens the connections and measures their memory while they are idle.
    func open(connections: Int, settle: () -> Void) throws {
        let before = crowd.server.residentBytes()
        try crowd.open(connections)
        settle()
        figures.bytesPerIdle = (crowd.server.residentBytes() - before) / Double(connections)
    }

    /// Joins each pair of connections to a separate session.
    func join(project: Project) throws {
        var generator = SplitMix64(state: 7)
        let now = Timestamp(milliseconds: now())
        var tokens: [String] = []
        for _ in 0..<crowd.clients.count / 2 {
            let session = project.makeSessionID(mediaMode: .relayed, now: now, using: &generator)
            sessions.append(session)
            tokens.append(
                project.makeSessionToken(
                    SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: now,
                    using: &generator)
            )
        }
        missing = Array(repeating: 0, count: sessions.count)
        turn = Array(repeating: 0, count: sessions.count)
        order = Array(sessions.indices).shuffled(using: &generator)
        let (sessions, said) = (sessions, tokens)
        try crowd.ask(crowd.clients, for: "session.joined") { client in
            let pair = client.tag / 2
            client.ask(.session(.join(.init(session: sessions[pair], token: said[pair]))))
        }
    }

    /// Relays this many signals and returns the CPU time that the server used.
    @discardableResult
    func relay(_ count: Int) throws -> Double {
        let before = crowd.server.processorSeconds()
        try crowd.run { [self] done in
            toSend = count
            toEnd = count
            for client in crowd.clients { client.onMessage = { self.heard($1, by: $0, done) } }
            for _ in 0..<min(Self.window, count) { sendNext() }
        }
        return crowd.server.processorSeconds() - before
    }

    func round(_ count: Int) throws { figures.relaysPerSecond.append(Double(count) / (try relay(count))) }

    private func sendNext() {
        guard toSend > 0 else { return }
        toSend -= 1
        // Skip pairs whose previous relay is still in progress.
        repeat { position = (position + 1) % order.count } while missing[order[position]] > 0
        let pair = order[position]
        missing[pair] = 3
        turn[pair] ^= 1
        let signal = SessionVerb.Signal(session: sessions[pair], type: "chat", data: Self.data)
        crowd.clients[2 * pair + turn[pair]].ask(.session(.signal(signal)))
    }

    private func heard(_ message: ServerMessage, by client: LoadClient, _ done: EventLoopPromise<Void>) {
        switch message {
        // The members that joined last may only now be announced to each other.
        case .session(.connectionCreated): return
        case .session(.signal), .ok: break
        default: return done.fail(LoadClient.Failure(description: "\(crowd.server.name) said \(message)"))
        }
        let pair = client.tag / 2
        missing[pair] -= 1
        guard missing[pair] == 0 else { return }
        toEnd -= 1
        if toEnd == 0 { return done.succeed() }
        sendNext()
    }
}
