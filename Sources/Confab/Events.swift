/// A sequence of events. Each iteration is a separate subscription. An iteration ends when its task is canceled or
/// when no more events can follow. Where the documentation of a sequence says so, an iteration begins with the current
/// state.
///
/// Sequences of states, such as ``ConfabClient/states``, keep only the newest unread value. All other sequences keep
/// every unread event: at most 256, plus the number of events that describe the current state. If a consumer falls
/// further behind, its iteration ends, and ``Iterator/failure`` is an error with the code `slow_consumer`.
///
/// ```swift
/// for await state in client.states {
///     print(state)
/// }
/// ```
public struct Events<Element: Sendable>: AsyncSequence, Sendable {
    /// How many unread events an iteration keeps, in addition to the number of events that describe the current state.
    /// Without this addition, a session with many members, all reported at once, would exceed the limit.
    static var maxUnread: Int { 256 }

    private let source: EventSource<Element>

    init(_ source: EventSource<Element>) { self.source = source }

    /// Subscribes. Events are kept for the iterator even before the first `next()` call, so none is lost.
    public func makeAsyncIterator() -> Iterator { Iterator(source.subscribe()) }

    /// One subscription. It ends when the last copy of the iterator is released.
    public struct Iterator: AsyncIteratorProtocol, Sendable {
        private let subscription: EventSubscription<Element>

        init(_ subscription: EventSubscription<Element>) { self.subscription = subscription }

        /// Waits for the next event. Returns nil at the end of the sequence, after the task was canceled, and if
        /// another task is already waiting.
        public func next() async -> Element? { await subscription.next() }

        /// Why the iteration ended early: an error with the code `slow_consumer`; nil otherwise.
        public var failure: ConfabError? { subscription.failure }
    }
}

/// Sends events to all iterations of its ``Events``.
///
/// Invariant: a subscription receives the current state at the time of subscribing, then each later event once and in
/// order.
final class EventSource<Element: Sendable>: Sendable {
    /// Updates `present`, the events that describe the current state, when `event` is sent.
    typealias Fold = @Sendable (_ present: inout [Element], _ event: Element) -> Void

    /// The state that the lock protects.
    private struct State: Sendable {
        var present: [Element]
        var subscriptions: [UInt64: WeakSubscription] = [:]
        var count: UInt64 = 0
        var isFinished = false
    }
    /// A weak reference to a subscription.
    private struct WeakSubscription: Sendable {
        weak let subscription: EventSubscription<Element>?
    }

    private let state: LockedValue<State>
    private let coalesces: Bool
    private let fold: Fold
    /// Whether events can hold the last reference to media.
    private let holdsMedia: Bool

    /// Creates a source whose iterations begin with the newest value and keep only that.
    convenience init(state: Element) {
        self.init(present: [state], coalesces: true, holdsMedia: false) { present, event in present = [event] }
    }

    /// Creates a source whose iterations keep each event.
    ///
    /// - Parameters:
    ///   - holdsMedia: whether events that a new iteration begins with hold media. There must be few of them then.
    ///   - fold: updates the events that a new iteration begins with. By default there are none.
    convenience init(holdsMedia: Bool = false, fold: @escaping Fold = { _, _ in }) {
        self.init(present: [], coalesces: false, holdsMedia: holdsMedia, fold: fold)
    }

    private init(present: [Element], coalesces: Bool, holdsMedia: Bool, fold: @escaping Fold) {
        state = LockedValue(State(present: present))
        (self.coalesces, self.holdsMedia, self.fold) = (coalesces, holdsMedia, fold)
    }

    deinit { finish() }

    /// The sequence with which the application reads the events.
    var events: Events<Element> { Events(self) }

    /// The events that a new iteration would begin with.
    var present: [Element] { state.withLock { $0.present } }

    /// The number of subscriptions that have not ended.
    var subscriptionCount: Int { state.withLock { $0.subscriptions.count } }

    /// Sends an event to all subscriptions.
    func send(_ event: Element) {
        // Events are appended under this lock, so that events sent by two threads arrive in the same order everywhere.
        // Continuations are resumed outside the lock.
        // Subscriptions are also released outside it, because releasing the last reference takes the lock.
        // So are events with media that this one replaces, because releasing media can run code of the application.
        let (subscriptions, wakers, replaced) = state.withLock {
            state -> ([EventSubscription<Element>], [Waker], [Element]) in
            guard !state.isFinished else { return ([], [], []) }
            let replaced = holdsMedia ? state.present : []
            fold(&state.present, event)
            let subscriptions = state.subscriptions.values.compactMap(\.subscription)
            let limit = Events<Element>.maxUnread + state.present.count
            return (subscriptions, subscriptions.compactMap { $0.append(event, limit: limit) }, replaced)
        }
        for waker in wakers { waker() }
        withExtendedLifetime((subscriptions, replaced)) {}
    }

    /// Ends all iterations once they have read the events sent so far.
    func finish() {
        let subscriptions = state.withLock { state in
            state.isFinished = true
            let subscriptions = state.subscriptions.values.compactMap(\.subscription)
            state.subscriptions = [:]
            return subscriptions
        }
        for subscription in subscriptions { subscription.finish() }
    }

    func subscribe() -> EventSubscription<Element> {
        state.withLock { state in
            state.count += 1
            let id = state.count
            let subscription = EventSubscription(initial: state.present, coalesces: coalesces) { [weak self] in
                self?.unsubscribe(id)
            }
            if state.isFinished {
                subscription.finish()
            } else {
                state.subscriptions[id] = WeakSubscription(subscription: subscription)
            }
            return subscription
        }
    }

    private func unsubscribe(_ id: UInt64) { state.withLock { _ = $0.subscriptions.removeValue(forKey: id) } }
}

/// Resumes a consumer. Call it without holding a lock.
typealias Waker = @Sendable () -> Void

/// The unread events of one iteration.
final class EventSubscription<Element: Sendable>: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var unread: [Element]
        /// The index of the first unread event; the events before it have been read.
        var first = 0
        var waiting: CheckedContinuation<Element?, Never>?
        var isFinished = false
        var failure: ConfabError?
    }

    private let state: LockedValue<State>
    private let coalesces: Bool
    private let unsubscribe: @Sendable () -> Void

    init(initial: [Element], coalesces: Bool, _ unsubscribe: @escaping @Sendable () -> Void) {
        state = LockedValue(State(unread: initial))
        (self.coalesces, self.unsubscribe) = (coalesces, unsubscribe)
    }

    deinit { unsubscribe() }

    var failure: ConfabError? { state.withLock { $0.failure } }

    /// Hands an event to the waiting consumer, or adds it to the unread events. If `limit` events are unread, ends the
    /// iteration with the error `slow_consumer` instead.
    ///
    /// - Parameter limit: the maximum number of unread events. It has no effect if only the newest event is kept.
    /// - Returns: a closure that wakes the consumer; nil if it is not waiting.
    func append(_ event: Element, limit: Int) -> Waker? {
        state.withLock { state in
            guard !state.isFinished else { return nil }
            if let waiting = state.waiting {
                state.waiting = nil
                return { waiting.resume(returning: event) }
            }
            if coalesces {
                (state.unread, state.first) = ([event], 0)
            } else if state.unread.count - state.first < limit {
                state.unread.append(event)
            } else {
                (state.isFinished, state.failure) = (true, .slowConsumer)
            }
            return nil
        }
    }

    func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: nil)
    }

    func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let resume: Waker? = state.withLock { state in
                    if Task.isCancelled {
                        state.isFinished = true
                        return { continuation.resume(returning: nil) }
                    }
                    if state.first < state.unread.count {
                        let event = state.unread[state.first]
                        state.first += 1
                        var read: [Element] = []
                        if state.first == state.unread.count {
                            read = state.unread
                            (state.unread, state.first) = ([], 0)
                        } else if state.first >= 64 {
                            read = Array(state.unread[..<state.first])
                            state.unread.removeFirst(state.first)
                            state.first = 0
                        }
                        // Release the events outside the lock, because they can hold the last reference to media.
                        return { [read] in withExtendedLifetime(read) { continuation.resume(returning: event) } }
                    }
                    // Only one task can wait for an iterator. For a second one, return the end of the sequence,
                    // because it would wait forever.
                    if state.isFinished || state.waiting != nil { return { continuation.resume(returning: nil) } }
                    state.waiting = continuation
                    return nil
                }
                resume?()
            }
        } onCancel: {
            cancel()
        }
    }

    private func cancel() {
        finish()
        unsubscribe()
    }
}
