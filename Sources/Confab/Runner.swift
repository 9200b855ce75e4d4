import Wire

/// A state machine that turns inputs into effects. The time is passed to it; it does not read a clock.
package protocol StateMachine: Sendable {
    /// An event that the machine handles.
    associatedtype Input: Sendable
    /// An action that the owner of the machine carries out.
    associatedtype Effect: Sendable
    /// Processes an input, and returns the effects in order.
    mutating func handle(_ input: Input, now: Timestamp) -> [Effect]
    /// When to call `handleTimeout`; nil if no timeout is pending. Read it again after each input and timeout.
    var nextTimeout: Timestamp? { get }
    /// Handles the timeouts that are due, and returns the effects in order. A call before `nextTimeout` is harmless.
    mutating func handleTimeout(now: Timestamp) -> [Effect]
}

extension StateMachine {
    /// Nil by default: the machine has no timeouts.
    package var nextTimeout: Timestamp? { nil }
    /// Does nothing by default.
    package mutating func handleTimeout(now: Timestamp) -> [Effect] { [] }
}

extension AudioFallback: StateMachine {}
extension ClientMachine: StateMachine {}
extension RelayedPeer: StateMachine {}
extension SFUTransport: StateMachine {}
extension SignalClient: StateMachine {}
extension SessionMachine: StateMachine {
    mutating func handle(_ input: Input, now: Timestamp) -> [Effect] { handle(input) }
}

/// Owns a state machine and its timer.
///
/// Inputs are processed in the order in which they are posted, and effects in the order in which the machine returns
/// them. If an effect causes another input, the effects of that input wait until the current ones are done. A call
/// never waits for effects that another thread is carrying out.
package final class Runner<Machine: StateMachine>: Sendable {
    /// Changes the machine at the given time, and returns the effects to carry out.
    package typealias Body = @Sendable (inout Machine, Timestamp) -> [Machine.Effect]

    /// The state that the lock protects.
    private struct State: Sendable {
        var machine: Machine
        var carryOut: @Sendable (Machine.Effect) -> Void = { _ in }
        var timer: (at: Timestamp, cancel: @Sendable () -> Void)?
    }

    private let state: LockedValue<State>
    private let clock: any SignalClock
    private let inputs: Mailbox?
    private let effects = Mailbox()

    /// - Parameter inputs: a mailbox that several machines share, so that each input is processed after the effects of
    ///   the previous one; nil to process each input before `post` returns.
    package init(_ machine: Machine, clock: any SignalClock, inputs: Mailbox? = nil) {
        state = LockedValue(State(machine: machine))
        (self.clock, self.inputs) = (clock, inputs)
    }

    deinit { state.withLock { $0.timer?.cancel }?() }

    /// Sets the closure that carries out the effects. Call this before the first input. The closure is called by one
    /// thread at a time. It must hold the runner's owner weakly, because the runner keeps the closure.
    package func onEffect(_ carryOut: @escaping @Sendable (Machine.Effect) -> Void) {
        state.withLock { $0.carryOut = carryOut }
    }

    /// Reads from the machine's state.
    package func read<Value: Sendable>(_ body: (Machine) -> Value) -> Value { state.withLock { body($0.machine) } }

    /// Passes an input to the machine, and carries out its effects.
    package func post(_ input: Machine.Input) { update { machine, now in machine.handle(input, now: now) } }

    /// Changes the machine, and carries out the effects that `body` returns.
    package func update(_ body: @escaping Body) {
        guard let inputs else { return run(body) }
        inputs.post { [weak self] in self?.run(body) }
    }

    /// Calls `body` after the effects of all earlier inputs.
    func afterEffects(_ body: @escaping @Sendable () -> Void) {
        if let inputs { return inputs.post(body) }
        effects.add(body)
        if effects.run() { schedule() }
    }

    private func run(_ body: Body) {
        let now = clock.now
        state.withLock { state in
            // Add the effects under this lock, so that effects are carried out in the order of their inputs.
            let (carryOut, caused) = (state.carryOut, body(&state.machine, now))
            if !caused.isEmpty { effects.add { for effect in caused { carryOut(effect) } } }
        }
        if effects.run() { schedule() }
    }

    /// Schedules the timer for the next timeout. A timer that is due earlier is kept: when it fires, it schedules the
    /// next one.
    private func schedule() {
        let obsolete = state.withLock { state -> (@Sendable () -> Void)? in
            guard let next = state.machine.nextTimeout else {
                defer { state.timer = nil }
                return state.timer?.cancel
            }
            if let timer = state.timer, timer.at <= next { return nil }
            let obsolete = state.timer?.cancel
            state.timer = (next, clock.schedule(at: next) { [weak self] in self?.timedOut(next) })
            return obsolete
        }
        obsolete?()
    }

    private func timedOut(_ time: Timestamp) {
        state.withLock { if $0.timer?.at == time { $0.timer = nil } }
        update { machine, now in machine.handleTimeout(now: now) }
    }
}

/// Runs closures one after the other, in the order in which they were posted or added. No call waits for a closure
/// that another thread is running.
package final class Mailbox: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var items: [@Sendable () -> Void] = []
        var isBusy = false
    }

    private let state = LockedValue(State())

    func post(_ item: @escaping @Sendable () -> Void) {
        add(item)
        run()
    }

    /// Adds a closure, which the current or the next `run` call runs.
    func add(_ item: @escaping @Sendable () -> Void) { state.withLock { $0.items.append(item) } }

    /// Runs the added closures, unless another `run` call is doing so.
    ///
    /// - Returns: whether this call ran them.
    @discardableResult
    func run() -> Bool {
        let isFirst = state.withLock { state in
            defer { state.isBusy = true }
            return !state.isBusy
        }
        guard isFirst else { return false }
        while let items = take() {
            for item in items { item() }
        }
        return true
    }

    private func take() -> [@Sendable () -> Void]? {
        state.withLock { state in
            defer { state.items = [] }
            if state.items.isEmpty { state.isBusy = false }
            return state.items.isEmpty ? nil : state.items
        }
    }
}

/// A weak reference to an object that does not exist yet when the reference is created.
package final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable { weak var object: Object? }

    private let state = LockedValue(State())

    package init() {}

    /// The object; nil before it is set and after it was released.
    package var object: Object? { state.withLock { $0.object } }
    /// Sets the object.
    package func set(_ object: Object) { state.withLock { $0.object = object } }
}
