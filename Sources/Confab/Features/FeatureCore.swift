import Wire

/// Runs the state machine of one feature, and resumes the methods that wait for it. Invariant: the effects of an event
/// are carried out in order, before the next event of any feature.
final class FeatureCore<Machine: FeatureMachine>: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var lastCaller: UInt64 = 0
        var callers: [FeatureCaller: @Sendable (FeatureResult) -> Void] = [:]
    }

    private let state = LockedValue(State())
    private let runner: Runner<Machine>
    let desk: FeatureDesk
    private let tell: @Sendable (Machine.Event) -> Void
    private let perform: @Sendable (Machine.Action) -> Void

    init(
        _ machine: Machine, _ desk: FeatureDesk, tell: @escaping @Sendable (Machine.Event) -> Void,
        perform: @escaping @Sendable (Machine.Action) -> Void = { _ in }
    ) {
        (self.desk, self.tell, self.perform) = (desk, tell, perform)
        runner = Runner(machine, clock: desk.core.dependencies.clock, inputs: desk.mailbox)
        runner.onEffect { [weak self] effect in self?.carryOut(effect) }
        desk.add(first: Machine.hearsFirst) { [weak runner] input in runner?.post(input) }
    }

    deinit { for answer in state.withLock({ $0.callers.values.map(\.self) }) { answer(.failure(.closed)) } }

    /// Reads from the machine's state.
    func read<Value: Sendable>(_ body: (Machine) -> Value) -> Value { runner.read(body) }

    /// Changes the machine after all earlier inputs, and carries out the effects that `body` returns.
    func post(_ body: @escaping Runner<Machine>.Body) { runner.update(body) }

    /// Waits until the effects of all earlier inputs have been carried out.
    func settle() async {
        await withCheckedContinuation { continuation in runner.afterEffects { continuation.resume() } }
    }

    /// Passes a command to the machine, and waits until it is done. Canceling the task ends the wait and notifies the
    /// machine, which may revoke the command; most machines do not.
    @discardableResult
    func ask(_ command: Machine.Command) async throws(ConfabError) -> ServerMessage? {
        let caller = state.withLock { state in
            state.lastCaller += 1
            return FeatureCaller(number: state.lastCaller)
        }
        do throws(ConfabError) {
            return try await awaitResult { answer in
                state.withLock { $0.callers[caller] = answer }
                post { machine, now in machine.handle(command, from: caller, now: now) }
            }
        } catch {
            // If the caller is still registered, the machine has not ended the wait: the task was canceled.
            if state.withLock({ $0.callers.removeValue(forKey: caller) }) != nil {
                post { machine, now in machine.cancelled(caller, now: now) }
            }
            throw error
        }
    }

    private func carryOut(_ effect: Machine.Effect) {
        switch effect {
        case .send(let id, let message):
            desk.core.send(message) { [weak runner] result in runner?.post(.answered(id, result)) }
        case .finish(let caller, let result): state.withLock { $0.callers.removeValue(forKey: caller) }?(result)
        case .tell(let news): tell(news)
        case .perform(let action): perform(action)
        }
    }
}
