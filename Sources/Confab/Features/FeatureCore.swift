import Wire

/// Runs the state machine of one feature. Invariant: the effects of an event are carried out in order, before the next
/// event.
final class FeatureCore<Machine: FeatureMachine>: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var machine: Machine
        var lastCaller: UInt64 = 0
        var callers: [FeatureCaller: CheckedContinuation<FeatureResult, Never>] = [:]
        var timer: (at: Timestamp, cancel: @Sendable () -> Void)?
    }

    private let state: LockedValue<State>
    let desk: FeatureDesk
    private let tell: @Sendable (Machine.Event) -> Void
    private let perform: @Sendable (Machine.Action) -> Void

    init(
        _ machine: Machine, _ desk: FeatureDesk, tell: @escaping @Sendable (Machine.Event) -> Void,
        perform: @escaping @Sendable (Machine.Action) -> Void = { _ in }
    ) {
        state = LockedValue(State(machine: machine))
        (self.desk, self.tell, self.perform) = (desk, tell, perform)
        desk.add(first: Machine.hearsFirst) { [weak self] news in
            self?.run { state, now in state.machine.handle(news, now: now) }
        }
    }

    deinit {
        let (timer, callers) = state.withLock { ($0.timer?.cancel, $0.callers.values.map(\.self)) }
        timer?()
        for caller in callers { caller.resume(returning: .failure(.closed)) }
    }

    private var clock: any SignalClock { desk.core.dependencies.clock }

    /// Reads from the machine's state.
    func read<Value: Sendable>(_ body: (Machine) -> Value) -> Value { state.withLock { body($0.machine) } }

    /// Passes an event to the machine, after all earlier events.
    func post(_ body: @escaping @Sendable (inout Machine, Timestamp) -> [Machine.Effect]) {
        desk.mailbox.post { [weak self] in self?.run { state, now in body(&state.machine, now) } }
    }

    /// Waits until the effects of all earlier events have been carried out.
    func settle() async {
        await withCheckedContinuation { continuation in desk.mailbox.post { continuation.resume() } }
    }

    /// Passes a command to the machine, and waits until it is done. Cancelling the task ends the wait, but does not
    /// revoke the command.
    @discardableResult
    func ask(_ command: Machine.Command) async throws(ConfabError) -> ServerMessage? {
        let caller = state.withLock { state in
            state.lastCaller += 1
            return FeatureCaller(number: state.lastCaller)
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    // Check this under the lock, so that the cancellation handler below either finds the continuation
                    // or has run before it exists.
                    guard !Task.isCancelled else { return false }
                    state.callers[caller] = continuation
                    return true
                }
                guard isWaiting else { return continuation.resume(returning: .failure(.cancelled)) }
                desk.mailbox.post { [weak self] in self?.handle(command, from: caller) }
            }
        } onCancel: {
            guard let waiting = state.withLock({ $0.callers.removeValue(forKey: caller) }) else { return }
            waiting.resume(returning: .failure(.cancelled))
            post { machine, now in machine.cancelled(caller, now: now) }
        }
        return try result.get()
    }

    /// Passes a command to the machine. Call this only in the mailbox.
    private func handle(_ command: Machine.Command, from caller: FeatureCaller) {
        run { state, now in
            let effects = state.machine.handle(command, from: caller, now: now)
            // If the task was cancelled before the machine received the command, cancel the command now.
            guard state.callers[caller] == nil else { return effects }
            return effects + state.machine.cancelled(caller, now: now)
        }
    }

    /// Runs the machine and carries out its effects. Call this only in the mailbox.
    private func run(_ body: (inout State, Timestamp) -> [Machine.Effect]) {
        let now = clock.now
        for effect in state.withLock({ body(&$0, now) }) { carryOut(effect) }
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
        case .perform(let action): perform(action)
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
