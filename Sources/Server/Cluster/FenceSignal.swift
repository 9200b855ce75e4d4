import Synchronization

/// Remembers that this node was declared dead, and calls a function then, even if it is set later.
final class FenceSignal: Sendable {
    /// Whether the node was fenced, and the function to call then.
    private struct State {
        var isFenced = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var isFenced: Bool { state.withLock(\.isFenced) }

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
