import Wire

/// A state machine with one owner, driven only by events and timeouts.
protocol Machine: Sendable {
    /// The type of the ids. `Never` for a state machine that exists exactly once, from the start.
    associatedtype ID: Hashable & Sendable = Never
    associatedtype Event

    /// Creates the state machine for an event, or returns nil if this event does not create one.
    static func make(_ id: ID, for event: Event, _ context: inout Context) -> Self?
    /// Handles an event whose state machine does not exist and is not created by the event.
    static func orphan(_ event: Event, _ id: ID, _ context: inout Context)

    var nextTimeout: Timestamp? { get }
    /// True if the state machine has finished and can be removed.
    var isOver: Bool { get }
    mutating func handle(_ event: Event, _ context: inout Context)
    mutating func handleTimeout(_ context: inout Context)
}

extension Machine {
    static func make(_ id: ID, for event: Event, _ context: inout Context) -> Self? { nil }
    static func orphan(_ event: Event, _ id: ID, _ context: inout Context) {}
    var nextTimeout: Timestamp? { nil }
    var isOver: Bool { false }
    mutating func handleTimeout(_ context: inout Context) {}
}

/// A state machine and its scheduled wake-up.
struct Slot<M: Machine>: Sendable {
    var machine: M
    /// The time of the earliest wake-up that was requested and has not happened yet; nil if there is none.
    private var scheduled: Timestamp?

    init(_ machine: M) { self.machine = machine }

    /// Delivers an event to the state machine.
    ///
    /// - Returns: when to wake the state machine, or nil if no wake-up is necessary or one is already scheduled early
    ///   enough.
    mutating func deliver(_ event: M.Event, _ context: inout Context) -> Timestamp? {
        machine.handle(event, &context)
        return wakeUp()
    }

    /// Handles a timer that fired. A timer for any time other than the scheduled one is outdated and ignored.
    ///
    /// - Returns: when to wake the state machine next, or nil if no wake-up is necessary or one is already scheduled
    ///   early enough.
    mutating func wake(at moment: Timestamp, _ context: inout Context) -> Timestamp? {
        guard scheduled == moment else { return nil }
        scheduled = nil
        machine.handleTimeout(&context)
        return wakeUp()
    }

    /// Schedules and returns the machine's next wake-up, or returns nil if the machine needs none or one is already
    /// scheduled early enough. Each state machine thus has only one valid timer.
    mutating func wakeUp() -> Timestamp? {
        guard !machine.isOver, let at = machine.nextTimeout, scheduled.map({ at < $0 }) ?? true else { return nil }
        scheduled = at
        return at
    }
}

/// The result of delivering an event or a timer to a state machine.
struct Delivered<M: Machine>: Sendable {
    /// When to wake the state machine; nil if the schedule did not change.
    var wakeUp: Timestamp?
    /// The state machine, if it has finished and was removed; otherwise nil.
    var ended: M?
}

/// All state machines of one kind. They are mutated in place.
///
/// Invariant: contains no state machine that has finished.
struct Machines<M: Machine>: Sendable {
    private var slots: [M.ID: Slot<M>] = [:]

    var count: Int { slots.count }
    var isEmpty: Bool { slots.isEmpty }
    func contains(_ id: M.ID) -> Bool { slots.index(forKey: id) != nil }
    func count(where matches: (M) -> Bool) -> Int { slots.values.count { matches($0.machine) } }

    /// Calls `body` with each state machine, in no particular order.
    func forEach(_ body: (M) -> Void) { for slot in slots.values { body(slot.machine) } }

    func ids(where matches: (M) -> Bool) -> [M.ID] { slots.filter { matches($0.value.machine) }.map(\.key) }

    /// Adds a state machine.
    ///
    /// - Returns: when to wake the new state machine; nil if it has no timeout yet.
    mutating func insert(_ machine: M, _ id: M.ID) -> Timestamp? {
        var slot = Slot(machine)
        let wakeUp = slot.wakeUp()
        slots[id] = slot
        return wakeUp
    }

    /// Delivers an event to the state machine with this id. If there is none, the event may create it; otherwise
    /// `orphan` handles the event.
    mutating func deliver(_ event: M.Event, to id: M.ID, _ context: inout Context) -> Delivered<M> {
        if let index = slots.index(forKey: id) {
            let wakeUp = slots.values[index].deliver(event, &context)
            return Delivered(wakeUp: wakeUp, ended: takeIfOver(index))
        }
        guard let machine = M.make(id, for: event, &context) else {
            M.orphan(event, id, &context)
            return Delivered()
        }
        slots[id] = Slot(machine)
        return deliver(event, to: id, &context)
    }

    mutating func wake(_ id: M.ID, at moment: Timestamp, _ context: inout Context) -> Delivered<M> {
        guard let index = slots.index(forKey: id) else { return Delivered() }
        let wakeUp = slots.values[index].wake(at: moment, &context)
        return Delivered(wakeUp: wakeUp, ended: takeIfOver(index))
    }

    /// Reads a state machine without delivering an event. Returns nil if it does not exist. Do not call this for every
    /// message, because it copies the machine.
    func read<Result>(_ id: M.ID, _ body: (M) -> Result) -> Result? { slots[id].map { body($0.machine) } }

    /// Reads or changes a state machine without delivering an event, and removes it if it has finished afterwards.
    /// Returns nil if it does not exist.
    @discardableResult mutating func with<Result>(_ id: M.ID, _ body: (inout M) -> Result) -> Result? {
        guard let index = slots.index(forKey: id) else { return nil }
        let result = body(&slots.values[index].machine)
        _ = takeIfOver(index)
        return result
    }

    private mutating func takeIfOver(_ index: Dictionary<M.ID, Slot<M>>.Index) -> M? {
        slots.values[index].isOver ? slots.remove(at: index).value.machine : nil
    }
}

extension Slot {
    /// The getter is `mutating` so that the state machine is read in place, because reading a value out of a dictionary copies
    /// it.
    fileprivate var isOver: Bool { mutating get { machine.isOver } }
}
