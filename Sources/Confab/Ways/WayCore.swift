import Wire

/// Runs the machine of one part of a client. Invariant: effects are carried out in order, and no other event comes between.
final class WayCore<Machine: WayMachine>: Sendable {
    private struct State: Sendable {
        var machine: Machine
        var lastCaller: UInt64 = 0
        var callers: [WayCaller: CheckedContinuation<WayResult, Never>] = [:]
        var timer: (at: Timestamp, cancel: @Sendable () -> Void)?
    }

    private let state: Guarded<State>
    let desk: WayDesk
    private let tell: @Sendable (Machine.News) -> Void
    private let perform: @Sendable (Machine.Deed) -> Void

    init(
        _ machine: Machine, _ desk: WayDesk, tell: @escaping @Sendable (Machine.News) -> Void,
        perform: @escaping @Sendable (Machine.Deed) -> Void = { _ in }
    ) {
        state = Guarded(State(machine: machine))
        (self.desk, self.tell, self.perform) = (desk, tell, perform)
        desk.add(first: Machine.hearsFirst) { [weak self] news in
            self?.run { machine, now in machine.handle(news, now: now) }
        }
    }

    deinit {
        let (timer, callers) = state.withLock { ($0.timer?.cancel, $0.callers.values.map(\.self)) }
        timer?()
        for caller in callers { caller.resume(returning: .failure(.closed)) }
    }

    private var clock: any LineClock { desk.core.surroundings.clock }

    /// Returns a part of the machine's state.
    func read<Value: Sendable>(_ body: (Machine) -> Value) -> Value { state.withLock { body($0.machine) } }

    /// Hands an event to the machine, after all events before it.
    func post(_ body: @escaping @Sendable (inout Machine, Timestamp) -> [Machine.Effect]) {
        desk.mailbox.post { [weak self] in self?.run(body) }
    }

    /// Waits until the effects of all events before this call are carried out.
    func settle() async {
        await withCheckedContinuation { continuation in desk.mailbox.post { continuation.resume() } }
    }

    /// Hands a wish to the machine, and waits until it is done. If the task is cancelled, the wish still counts.
    @discardableResult
    func ask(_ wish: Machine.Wish) async throws(ConfabError) -> ServerMessage? {
        let caller = state.withLock { state in
            state.lastCaller += 1
            return WayCaller(number: state.lastCaller)
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    // Under the lock, so that the handler below finds the continuation or runs before it exists.
                    guard !Task.isCancelled else { return false }
                    state.callers[caller] = continuation
                    return true
                }
                guard isWaiting else { return continuation.resume(returning: .failure(.cancelled)) }
                post { machine, now in machine.handle(wish, from: caller, now: now) }
            }
        } onCancel: {
            guard let waiting = state.withLock({ $0.callers.removeValue(forKey: caller) }) else { return }
            waiting.resume(returning: .failure(.cancelled))
            post { machine, now in machine.cancelled(caller, now: now) }
        }
        return try result.get()
    }

    /// Only in the mailbox.
    private func run(_ body: (inout Machine, Timestamp) -> [Machine.Effect]) {
        let now = clock.now
        for effect in state.withLock({ body(&$0.machine, now) }) { carryOut(effect) }
        schedule()
    }

    private func carryOut(_ effect: Machine.Effect) {
        switch effect {
        case .send(let id, let message):
            desk.core.send(message) { [weak self] result in
                self?.post { machine, now in machine.handle(.answered(id, result), now: now) }
            }
        case .finish(let caller, let result):
            state.withLock { $0.callers.removeValue(forKey: caller) }?.resume(returning: result)
        case .tell(let news): tell(news)
        case .perform(let deed): perform(deed)
        }
    }

    private func schedule() {
        let obsolete = state.withLock { state -> (@Sendable () -> Void)? in
            let next = state.machine.nextTimeout
            guard next != state.timer?.at else { return nil }
            let obsolete = state.timer?.cancel
            state.timer = next.map { time in
                let cancel = clock.schedule(at: time) { [weak self] in self?.timedOut(time) }
                return (time, cancel)
            }
            return obsolete
        }
        obsolete?()
    }

    private func timedOut(_ time: Timestamp) {
        state.withLock { if $0.timer?.at == time { $0.timer = nil } }
        post { machine, now in machine.handleTimeout(now: now) }
    }
}
