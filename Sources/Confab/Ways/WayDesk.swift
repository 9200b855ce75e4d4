/// Carries out items one after the other, in the order of the calls. No call waits for another thread.
final class WayMailbox: Sendable {
    private struct State: Sendable {
        var items: [@Sendable () -> Void] = []
        var isBusy = false
    }

    private let state = Guarded(State())

    func post(_ item: @escaping @Sendable () -> Void) {
        let isFirst = state.withLock { state in
            state.items.append(item)
            defer { state.isBusy = true }
            return !state.isBusy
        }
        guard isFirst else { return }
        while let items = take() {
            for item in items { item() }
        }
    }

    private func take() -> [@Sendable () -> Void]? {
        state.withLock { state in
            defer { state.items = [] }
            if state.items.isEmpty { state.isBusy = false }
            return state.items.isEmpty ? nil : state.items
        }
    }
}

/// What the parts of one client share: the connection, and one mailbox.
///
/// The parts hear of the connection in the order in which they were added, but presence first: after a restart, the server must
/// know the person before it accepts anything else about people.
final class WayDesk: Sendable {
    typealias Listener = @Sendable (LineNews) -> Void

    let core: ClientCore
    let mailbox = WayMailbox()
    private let listeners = Guarded<[Listener]>([])
    private let closers = Guarded<[@Sendable () -> Void]>([])
    private let listening = Guarded<Listening?>(nil)

    init(_ core: ClientCore) {
        self.core = core
        let (mailbox, listeners, closers) = (mailbox, listeners, closers)
        let token = core.listen { [weak core] event in
            let news = LineNews(event)
            mailbox.post { for listener in listeners.withLock({ $0 }) { listener(news) } }
            guard case .ended = event, case .closed? = core?.connectionState else { return }
            mailbox.post { for closer in closers.withLock({ $0 }) { closer() } }
        }
        listening.withLock { $0 = token }
    }

    /// Calls back when the client is closed for good, after the parts have heard of it.
    func onClose(_ closer: @escaping @Sendable () -> Void) { closers.withLock { $0.append(closer) } }

    /// Adds a part. Hold its owner weakly.
    func add(first: Bool = false, _ listener: @escaping Listener) {
        listeners.withLock { $0.insert(listener, at: first ? 0 : $0.count) }
    }
}
