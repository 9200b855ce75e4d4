import Foundation
import Synchronization

/// Runs observations for a limited time, so that nothing that does not answer holds up `confab doctor`.
enum ProbeLimit {
    /// Returns nil if `body` takes longer. It is then canceled, and its result is ignored.
    static func within<Value: Sendable>(
        _ limit: Duration, _ body: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let result = Once<Value?>()
        let work = Task { result.settle(await body()) }
        let timer = Task {
            try? await Task.sleep(for: limit)
            result.settle(nil)
            work.cancel()
        }
        let value = await result.value()
        timer.cancel()
        return value ?? nil
    }

    /// Runs code that blocks, on a thread of its own. Returns nil if it takes longer; the thread then continues until the code
    /// returns or the program ends.
    static func blocking<Value: Sendable>(
        _ limit: Duration, _ body: @escaping @Sendable () -> Value
    ) async -> Value? {
        await within(limit) {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: body()) }
            }
        }
    }
}

/// An observation that grows while a probe runs. What was seen until the time limit is kept.
final class ProbeNotes<Observation: Sendable>: Sendable {
    private let state: Mutex<Observation>

    init(_ initial: Observation) { state = Mutex(initial) }

    var current: Observation { state.withLock { $0 } }

    func note(_ change: (inout Observation) -> Void) {
        state.withLock { observation in
            var copy = observation
            change(&copy)
            observation = copy
        }
    }
}
