import NIOCore
import Wire

/// Measures the time from pressing Next to the next partner, over real sockets.
///
/// Two pairs of people chat. One person in each pair presses Next at the same time, and all four are matched again among
/// themselves. Meanwhile other people are waiting, each with an interest that no one else has.
///
/// The class is `@unchecked Sendable` because its state is used only on the loop.
final class NextBenchmark: @unchecked Sendable {
    private let crowd: Crowd
    private let others: Int
    private var partner: [Int: Int] = [:]
    private var match: [MatchID: Int] = [:]
    private var pressed: [Int: ContinuousClock.Instant] = [:]
    private var samples: [Double] = []
    private var matched = 0

    init(crowd: Crowd, others: Int) {
        self.crowd = crowd
        self.others = others
    }

    /// Returns the seconds from `roulette.next` to `roulette.matched` for each press of Next.
    func run(rounds: Int) throws -> [Double] {
        try crowd.open(others + 4)
        try crowd.ask(Array(crowd.clients.prefix(others)), for: "roulette.waiting") { client in
            client.ask(.roulette(.start(.init(interests: ["stamps \(client.tag)"]))))
        }
        let four = Array(crowd.clients.suffix(4))
        try crowd.run { [self] done in
            for client in four {
                client.onMessage = { self.heard($1, by: $0, rounds: rounds, done) }
                client.ask(.roulette(.start(.init())))
            }
        }
        return samples
    }

    private func heard(
        _ message: ServerMessage, by client: LoadClient, rounds: Int, _ done: EventLoopPromise<Void>
    ) {
        switch message {
        case .roulette(.matched(let news)):
            if let since = pressed.removeValue(forKey: client.tag) { samples.append(seconds(since)) }
            pair(client, news.match)
            matched += 1
            guard matched == 4 else { return }
            matched = 0
            if samples.count >= 2 * rounds { return done.succeed() }
            // The loop runs this after all waiting messages, so each press starts on an idle server.
            crowd.loop.execute { self.press() }
        case .error(let refusal): done.fail(LoadClient.Failure(refusal.error))
        default: break
        }
    }

    /// Records that the two clients with the same match are a pair.
    private func pair(_ client: LoadClient, _ id: MatchID) {
        if let other = match.removeValue(forKey: id) {
            partner[client.tag] = other
            partner[other] = client.tag
        } else {
            match[id] = client.tag
        }
    }

    private func press() {
        let four = Array(crowd.clients.suffix(4))
        guard let other = four.first(where: { $0.tag != four[0].tag && partner[four[0].tag] != $0.tag }) else { return }
        for client in [four[0], other] {
            pressed[client.tag] = .now
            client.ask(.roulette(.next(.init())))
        }
    }

    private func seconds(_ since: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - since).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
