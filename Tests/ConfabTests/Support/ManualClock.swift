import Wire

@testable import Confab

/// A clock that stands still until a test advances it.
final class ManualClock: SignalClock {
    private struct State: Sendable {
        var now = Timestamp(milliseconds: 1_000_000)
        var timers: [Int: (at: Timestamp, body: @Sendable () -> Void)] = [:]
        var count = 0
    }

    private let state = LockedValue(State())

    var now: Timestamp { state.withLock { $0.now } }

    func schedule(at time: Timestamp, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let number = state.withLock { state in
            state.count += 1
            state.timers[state.count] = (time, body)
            return state.count
        }
        return { [weak self] in self?.state.withLock { _ = $0.timers.removeValue(forKey: number) } }
    }

    /// Whether something is due this long from now.
    func isWaiting(for duration: Duration) -> Bool {
        state.withLock { state in state.timers.values.contains { $0.at == state.now + duration } }
    }

    /// Lets time pass, and runs what becomes due, in order.
    func advance(by duration: Duration) {
        let end = now + duration
        while let body = next(until: end) { body() }
        state.withLock { $0.now = end }
    }

    private func next(until end: Timestamp) -> (@Sendable () -> Void)? {
        state.withLock { state in
            let first = state.timers.filter { $1.at <= end }.min { ($0.value.at, $0.key) < ($1.value.at, $1.key) }
            guard let first else { return nil }
            state.timers[first.key] = nil
            state.now = max(state.now, first.value.at)
            return first.value.body
        }
    }
}
