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
/// The machines are in chunks, and a dictionary maps each id to an index. A dictionary of the machines themselves would keep
/// up to 60 % of its table empty, and would move all machines when it grows. The chunks of removed machines are used again,
/// but not released before all machines are gone.
///
/// Invariant: contains no state machine that has finished.
struct Machines<M: Machine>: Sendable {
    /// The number of machines in a chunk. A chunk of the largest machines takes about 50 kB.
    private static var chunkSize: Int { 64 }

    private var indices: [M.ID: UInt32] = [:]
    private var chunks: [ContiguousArray<Slot<M>?>] = []
    /// The indices of machines that were removed. The last one is used first.
    private var free: [UInt32] = []

    var count: Int { indices.count }
    var isEmpty: Bool { indices.isEmpty }
    func contains(_ id: M.ID) -> Bool { indices.index(forKey: id) != nil }

    func count(where matches: (M) -> Bool) -> Int {
        var count = 0
        forEach { if matches($0) { count += 1 } }
        return count
    }

    /// Calls `body` with each state machine, in no particular order.
    func forEach(_ body: (M) -> Void) {
        for chunk in chunks {
            for case .some(let slot) in chunk { body(slot.machine) }
        }
    }

    func ids(where matches: (M) -> Bool) -> [M.ID] {
        indices.compactMap { id, index in matches(slot(at: index).machine) ? id : nil }
    }

    /// Adds a state machine.
    ///
    /// - Returns: when to wake the new state machine; nil if it has no timeout yet.
    mutating func insert(_ machine: M, _ id: M.ID) -> Timestamp? {
        var slot = Slot(machine)
        let wakeUp = slot.wakeUp()
        store(slot, id)
        return wakeUp
    }

    /// Delivers an event to the state machine with this id. If there is none, the event may create it; otherwise
    /// `orphan` handles the event.
    mutating func deliver(_ event: M.Event, to id: M.ID, _ context: inout Context) -> Delivered<M> {
        if let index = indices[id] {
            let wakeUp = change(index) { $0.deliver(event, &context) }
            return Delivered(wakeUp: wakeUp, ended: takeIfOver(index, id))
        }
        guard let machine = M.make(id, for: event, &context) else {
            M.orphan(event, id, &context)
            return Delivered()
        }
        store(Slot(machine), id)
        return deliver(event, to: id, &context)
    }

    mutating func wake(_ id: M.ID, at moment: Timestamp, _ context: inout Context) -> Delivered<M> {
        guard let index = indices[id] else { return Delivered() }
        let wakeUp = change(index) { $0.wake(at: moment, &context) }
        return Delivered(wakeUp: wakeUp, ended: takeIfOver(index, id))
    }

    /// Reads a state machine without delivering an event. Returns nil if it does not exist. Do not call this for every
    /// message, because it copies the machine.
    func read<Result>(_ id: M.ID, _ body: (M) -> Result) -> Result? { indices[id].map { body(slot(at: $0).machine) } }

    /// Reads or changes a state machine without delivering an event, and removes it if it has finished afterwards.
    /// Returns nil if it does not exist.
    @discardableResult mutating func with<Result>(_ id: M.ID, _ body: (inout M) -> Result) -> Result? {
        guard let index = indices[id] else { return nil }
        let result = change(index) { body(&$0.machine) }
        _ = takeIfOver(index, id)
        return result
    }

    // MARK: Chunks

    private func slot(at index: UInt32) -> Slot<M> { chunks[Int(index) / Self.chunkSize][Int(index) % Self.chunkSize]! }

    /// Changes a machine in place.
    private mutating func change<Result>(_ index: UInt32, _ body: (inout Slot<M>) -> Result) -> Result {
        body(&chunks[Int(index) / Self.chunkSize][Int(index) % Self.chunkSize]!)
    }

    /// Adds a machine, or replaces the one with this id.
    private mutating func store(_ slot: Slot<M>, _ id: M.ID) {
        if let index = indices[id] ?? free.popLast() {
            indices[id] = index
            chunks[Int(index) / Self.chunkSize][Int(index) % Self.chunkSize] = slot
            return
        }
        if chunks.last.map({ $0.count == Self.chunkSize }) ?? true {
            chunks.append([])
            // The first chunk grows as needed, because most hubs have few machines of most kinds.
            if chunks.count > 1 { chunks[chunks.count - 1].reserveCapacity(Self.chunkSize) }
        }
        let last = chunks.count - 1
        indices[id] = UInt32(last * Self.chunkSize + chunks[last].count)
        chunks[last].append(slot)
    }

    private mutating func takeIfOver(_ index: UInt32, _ id: M.ID) -> M? {
        guard change(index, { $0.machine.isOver }) else { return nil }
        let machine = slot(at: index).machine
        indices[id] = nil
        chunks[Int(index) / Self.chunkSize][Int(index) % Self.chunkSize] = nil
        free.append(index)
        if indices.isEmpty, chunks.count > 1 { (chunks, free) = ([], []) }
        return machine
    }
}
