/// The objects that all features of one client share: the connection, and one mailbox.
///
/// Features receive connection events in the order in which they were added, but presence receives them first: after a
/// restart, the server accepts other requests about people only when this person is present again.
final class FeatureDesk: Sendable {
    typealias Listener = @Sendable (FeatureInput) -> Void

    let core: ClientCore
    let mailbox = Mailbox()
    private let listeners = LockedValue<[Listener]>([])
    private let closers = LockedValue<[@Sendable () -> Void]>([])
    private let listening = LockedValue<Listening?>(nil)

    init(_ core: ClientCore) {
        self.core = core
        let (mailbox, listeners, closers) = (mailbox, listeners, closers)
        let token = core.listen { [weak core] event in
            // Each listener posts to the mailbox itself. If this closure posted them all together, an answer that
            // follows could overtake the event.
            let input = FeatureInput(event)
            for listener in listeners.withLock({ $0 }) { listener(input) }
            guard case .ended = event, case .closed? = core?.connectionState else { return }
            mailbox.post { for closer in closers.withLock({ $0 }) { closer() } }
        }
        listening.withLock { $0 = token }
    }

    /// Calls `closer` when the client is closed permanently, after all features have handled the event `ended`.
    func onClose(_ closer: @escaping @Sendable () -> Void) { closers.withLock { $0.append(closer) } }

    /// Adds the listener of a feature, before all other listeners if `first` is true. The listener must hold its owner
    /// weakly.
    func add(first: Bool = false, _ listener: @escaping Listener) {
        listeners.withLock { $0.insert(listener, at: first ? 0 : $0.count) }
    }
}
