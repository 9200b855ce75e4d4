import Wire

/// A state machine with one owner, reached by letters only.
protocol Machine: Sendable {
    /// `Never` for a machine of which there is one from the start.
    associatedtype ID: Hashable & Sendable = Never
    associatedtype Event

    /// Makes the machine; nil if this event does not create one.
    static func make(_ id: ID, for event: Event, _ turn: inout Turn) -> Self?
    /// Handles an event for a machine that does not exist.
    static func orphan(_ event: Event, _ id: ID, _ turn: inout Turn)

    var nextTimeout: Timestamp? { get }
    /// Whether nothing is left to remember.
    var isOver: Bool { get }
    mutating func handle(_ event: Event, _ turn: inout Turn)
    mutating func handleTimeout(_ turn: inout Turn)
}

extension Machine {
    static func make(_ id: ID, for event: Event, _ turn: inout Turn) -> Self? { nil }
    static func orphan(_ event: Event, _ id: ID, _ turn: inout Turn) {}
    var nextTimeout: Timestamp? { nil }
    var isOver: Bool { false }
    mutating func handleTimeout(_ turn: inout Turn) {}
}

/// A machine and the timer it waits for.
struct Slot<M: Machine>: Sendable {
    var machine: M
    /// The earliest wake-up asked for and not yet delivered.
    private var scheduled: Timestamp?

    init(_ machine: M) { self.machine = machine }

    /// - Returns: when to wake the machine, if that is earlier than what was asked for before.
    mutating func deliver(_ event: M.Event, _ turn: inout Turn) -> Timestamp? {
        machine.handle(event, &turn)
        return wakeUp()
    }

    /// The timer for this moment fired. It means nothing if the machine waits for another.
    mutating func wake(at moment: Timestamp, _ turn: inout Turn) -> Timestamp? {
        guard scheduled == moment else { return nil }
        scheduled = nil
        machine.handleTimeout(&turn)
        return wakeUp()
    }

    /// One timer for each machine that waits.
    mutating func wakeUp() -> Timestamp? {
        guard !machine.isOver, let at = machine.nextTimeout, scheduled.map({ at < $0 }) ?? true else { return nil }
        scheduled = at
        return at
    }
}

/// What delivering to a machine came to.
struct Delivered<M: Machine>: Sendable {
    /// When to wake it, if that is news.
    var wakeUp: Timestamp?
    /// The machine, if this was its end.
    var ended: M?
}

/// All machines of a kind, each changed in place.
///
/// Invariant: a machine that is over is not here.
struct Machines<M: Machine>: Sendable {
    private var slots: [M.ID: Slot<M>] = [:]

    var count: Int { slots.count }
    var isEmpty: Bool { slots.isEmpty }
    func contains(_ id: M.ID) -> Bool { slots.index(forKey: id) != nil }
    func count(where matches: (M) -> Bool) -> Int { slots.values.count { matches($0.machine) } }

    func ids(where matches: (M) -> Bool) -> [M.ID] { slots.filter { matches($0.value.machine) }.map(\.key) }

    /// - Returns: when to wake it.
    mutating func insert(_ machine: M, _ id: M.ID) -> Timestamp? {
        var slot = Slot(machine)
        let wakeUp = slot.wakeUp()
        slots[id] = slot
        return wakeUp
    }

    /// Brings an event to its machine, which is made if the event makes it.
    mutating func deliver(_ event: M.Event, to id: M.ID, _ turn: inout Turn) -> Delivered<M> {
        if let index = slots.index(forKey: id) {
            let wakeUp = slots.values[index].deliver(event, &turn)
            return Delivered(wakeUp: wakeUp, ended: takeIfOver(index))
        }
        guard let machine = M.make(id, for: event, &turn) else {
            M.orphan(event, id, &turn)
            return Delivered()
        }
        slots[id] = Slot(machine)
        return deliver(event, to: id, &turn)
    }

    mutating func wake(_ id: M.ID, at moment: Timestamp, _ turn: inout Turn) -> Delivered<M> {
        guard let index = slots.index(forKey: id) else { return Delivered() }
        let wakeUp = slots.values[index].wake(at: moment, &turn)
        return Delivered(wakeUp: wakeUp, ended: takeIfOver(index))
    }

    /// Looks at a machine or changes it, without a turn.
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
    /// Mutating, so that the machine is looked at where it is: reading a value out of a dictionary copies it.
    fileprivate var isOver: Bool { mutating get { machine.isOver } }
}
