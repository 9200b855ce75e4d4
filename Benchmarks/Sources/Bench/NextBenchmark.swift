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
    /// When to press again, if there is an interval.
    private var due = NIODeadline.now()
    /// What to do when all four are matched again.
    private var onRound: () -> Void = {}

    init(crowd: Crowd, others: Int = 0) {
        self.crowd = crowd
        self.others = others
    }

    /// Connects everybody, and waits until the four are matched.
    func open() throws {
        try crowd.open(others + 4)
        if others > 0 {
            try crowd.ask(Array(crowd.clients.prefix(others)), for: "roulette.waiting") { client in
                client.ask(.roulette(.start(.init(interests: ["stamps \(client.tag)"]))))
            }
        }
        let four = Array(crowd.clients.suffix(4))
        try crowd.run { [self] done in
            onRound = { done.succeed() }
            for client in four {
                client.onMessage = { self.heard($1, by: $0) { done.fail($0) } }
                client.ask(.roulette(.start(.init())))
            }
        }
    }

    /// Returns the seconds from `roulette.next` to `roulette.matched` for each press of Next.
    func measure(rounds: Int) throws -> [Double] {
        try crowd.run { [self] done in
            samples = []
            listen(done)
            onRound = {
                if self.samples.count >= 2 * rounds { return done.succeed() }
                // The loop runs this after all waiting messages, so each press starts on an idle server.
                self.crowd.loop.execute { self.press() }
            }
            press()
        }
        return samples
    }

    /// Presses Next at this interval for some time. A press that is still unanswered at the end counts with the time that it
    /// has waited.
    func measure(for time: TimeAmount, every interval: TimeAmount) throws -> [Double] {
        try crowd.run(within: time + .seconds(60)) { [self] done in
            samples = []
            listen(done)
            let end = NIODeadline.now() + time
            due = .now()
            onRound = { self.pressWhenDue(every: interval, until: end) }
            if pressed.isEmpty, matched == 0 { onRound() }
            crowd.loop.scheduleTask(deadline: end) {
                self.samples += self.pressed.values.map { Self.seconds($0) }
                self.onRound = {}
                done.succeed()
            }
        }
        return samples
    }

    private func pressWhenDue(every interval: TimeAmount, until end: NIODeadline) {
        // Do not catch up with presses that a slow round has delayed.
        due = max(due + interval, .now())
        guard due < end else { return }
        crowd.loop.scheduleTask(deadline: due) { self.press() }
    }

    /// Waits until the last round has ended, which a loaded server may have delayed.
    ///
    /// - Returns: false if the round has not ended within the limit.
    func settle(within limit: TimeAmount) throws -> Bool {
        let settled = loop.makePromise(of: Bool.self)
        try crowd.run(within: limit + .seconds(60)) { [self] done in
            settled.futureResult.whenComplete { _ in done.succeed() }
            guard matched > 0 || !pressed.isEmpty else { return settled.succeed(true) }
            listen(done)
            onRound = { settled.succeed(true) }
            crowd.loop.scheduleTask(in: limit) { settled.succeed(false) }
        }
        return try settled.futureResult.wait()
    }

    private var loop: any EventLoop { crowd.loop }

    func close() throws { try crowd.close() }

    private func listen(_ done: EventLoopPromise<Void>) {
        for client in crowd.clients.suffix(4) {
            client.onMessage = { self.heard($1, by: $0) { done.fail($0) } }
        }
    }

    private func heard(_ message: ServerMessage, by client: LoadClient, _ fail: (any Error) -> Void) {
        switch message {
        case .roulette(.matched(let news)):
            if let since = pressed.removeValue(forKey: client.tag) { samples.append(Self.seconds(since)) }
            pair(client, news.match)
            matched += 1
            guard matched == 4 else { return }
            matched = 0
            onRound()
        case .error(let refusal): fail(LoadClient.Failure(refusal.error))
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

    private static func seconds(_ since: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - since).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
