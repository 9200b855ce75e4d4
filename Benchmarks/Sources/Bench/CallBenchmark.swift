import NIOCore
import Wire

/// Measures the CPU time and the delay of a ring over real sockets.
///
/// People are in pairs. One person calls, the other person's client declines, and the caller calls again when notified of that.
/// A ring is therefore everything from `call.start` to `call.ended`: two responses, three events, and storing the call, which
/// is committed before the callee's devices ring.
///
/// The class is `@unchecked Sendable` because its state is used only on the loop.
final class CallBenchmark: @unchecked Sendable {
    private let crowd: Crowd
    private var people: [PersonID] = []
    private var placed: [Int: ContinuousClock.Instant] = [:]
    private var samples: [Double] = []
    private var left = 0
    private var ringing = 0

    init(crowd: Crowd) { self.crowd = crowd }

    /// Connects this many pairs of people, and all of them go online.
    func open(pairs: Int) throws {
        try crowd.open(2 * pairs)
        people = Array(repeating: PersonID(high: 0, low: 0), count: crowd.clients.count)
        try crowd.run { [self] done in
            var missing = crowd.clients.count
            for client in crowd.clients {
                client.onMessage = { client, message in
                    if case .error(let refusal) = message { return done.fail(LoadClient.Failure(refusal.error)) }
                    guard case .presence(.own(let own)) = message else { return }
                    self.people[client.tag] = own.person
                    missing -= 1
                    if missing == 0 { done.succeed() }
                }
                client.ask(.presence(.appear(Appearance())))
            }
        }
    }

    /// Rings `count` times, with `pairs` pairs ringing at the same time.
    ///
    /// - Returns: for each ring, the seconds from `call.start` to `call.incoming`.
    func ring(_ count: Int, pairs: Int) throws -> [Double] {
        try crowd.run { [self] done in
            // On the loop, because a caller of the last round may still be about to check whether calls are left.
            samples = []
            left = count
            for client in crowd.clients { client.onMessage = { self.heard($1, by: $0, done) } }
            for pair in 0..<pairs { place(by: crowd.clients[2 * pair]) }
        }
        return samples
    }

    /// Returns the number of rings per second of the server's CPU time.
    func rate(_ count: Int, pairs: Int) throws -> Double {
        let before = crowd.server.processorSeconds()
        _ = try ring(count, pairs: pairs)
        return Double(count) / (crowd.server.processorSeconds() - before)
    }

    private func place(by caller: LoadClient) {
        guard left > 0 else { return }
        left -= 1
        ringing += 1
        placed[caller.tag] = .now
        caller.ask(.call(.start(.init(person: people[caller.tag + 1], video: true))))
    }

    private func heard(_ message: ServerMessage, by client: LoadClient, _ done: EventLoopPromise<Void>) {
        switch message {
        case .call(.incoming(let call)):
            if let since = placed.removeValue(forKey: client.tag - 1) { samples.append(Self.seconds(since)) }
            client.ask(.call(.decline(.init(call: call.call))))
        case .call(.ended) where client.tag.isMultiple(of: 2):
            ringing -= 1
            if left == 0, ringing == 0 { return done.succeed() }
            // The loop runs this after all waiting messages, so each ring starts on an idle server.
            crowd.loop.execute { self.place(by: client) }
        case .error(let refusal): done.fail(LoadClient.Failure(refusal.error))
        default: break
        }
    }

    private static func seconds(_ since: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - since).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
