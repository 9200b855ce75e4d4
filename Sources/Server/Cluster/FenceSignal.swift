import Synchronization

/// Remembers that this node was declared dead, and calls a function then, even if it is set later.
final class FenceSignal: Sendable {
    /// What is known of the life, and what to do at its end.
    private struct State {
        var isFenced = false
        /// Whether the life has acted before its end.
        var hasActed = false
        /// Called when the node was fenced.
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var isFenced: Bool { state.withLock(\.isFenced) }
    var hasActed: Bool { state.withLock(\.hasActed) }

    func noteAct() { state.withLock { $0.hasActed = true } }

    func signal() {
        state.withLock { state -> (@Sendable () -> Void)? in
            state.isFenced = true
            return state.action
        }?()
    }

    func onFenced(_ action: @escaping @Sendable () -> Void) {
        let isFenced = state.withLock { state in
            state.action = action
            return state.isFenced
        }
        if isFenced { action() }
    }
}
