import Wire

/// A state machine with timeouts.
protocol TimedRules: Sendable {
    associatedtype Input: Sendable
    associatedtype Effect: Sendable
    /// When `handleTimeout` is due; nil if no timeout is pending.
    var nextTimeout: Timestamp? { get }
    mutating func handle(_ input: Input, now: Timestamp) -> [Effect]
    mutating func handleTimeout(now: Timestamp) -> [Effect]
}

extension RelayedPeer: TimedRules {}
extension SFUTransport: TimedRules {}

/// Owns a state machine and its timer. Inputs are processed in the order of the calls, and effects in the order in
/// which the machine returns them. If an effect causes another input, the effects of that input wait until the current
/// ones are done.
final class Mailbox<Rules: TimedRules>: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var rules: Rules
        var effects: [Rules.Effect] = []
        var isCarryingOut = false
        var timer: (at: Timestamp, cancel: @Sendable () -> Void)?
    }

    private let state: LockedValue<State>
    private let clock: any SignalClock
    private let carryOut: @Sendable (Rules.Effect) -> Void

    /// - Parameter carryOut: called by one thread at a time. It must hold the mailbox's owner weakly.
    init(_ rules: Rules, clock: any SignalClock, carryOut: @escaping @Sendable (Rules.Effect) -> Void) {
        state = LockedValue(State(rules: rules))
        (self.clock, self.carryOut) = (clock, carryOut)
    }

    deinit { state.withLock { $0.timer?.cancel }?() }

    var rules: Rules { state.withLock { $0.rules } }

    func post(_ input: Rules.Input) { update { rules, now in rules.handle(input, now: now) } }

    private func update(_ body: @Sendable (inout Rules, Timestamp) -> [Rules.Effect]) {
        let now = clock.now
        let isFirst = state.withLock { state in
            state.effects += body(&state.rules, now)
            if state.isCarryingOut { return false }
            state.isCarryingOut = true
            return true
        }
        guard isFirst else { return }
        while true {
            let effects = state.withLock { state in
                defer { state.effects = [] }
                if state.effects.isEmpty { state.isCarryingOut = false }
                return state.effects
            }
            if effects.isEmpty { break }
            for effect in effects { carryOut(effect) }
        }
        schedule()
    }

    /// Schedules the timer for the next timeout. A timer that fires too early schedules the next one.
    private func schedule() {
        let obsolete = state.withLock { state -> (@Sendable () -> Void)? in
            guard let next = state.rules.nextTimeout else {
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
        update { rules, now in rules.handleTimeout(now: now) }
    }
}
