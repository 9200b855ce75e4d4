import Synchronization

/// The rings that connect the routers of several event loops: one for each ordered pair of loops.
///
/// A publisher's router decrypts and parses each packet once. For every other loop whose clients watch the packet's feed, it
/// copies the packet into that loop's ring. The other loop's router forwards it as if the publisher were its own.
///
/// ```
///  loop 0: Ingress → Feed ─→ Fanout → Egress → clients of loop 0
///                         └→ TrackPipe ─ring─→ PipedTrack → Feed → Fanout → Egress → clients of loop 1
///                                     ◀─ring─ demand
/// ```
public final class PipeRings: Sendable {
    private let bells: [PipeBell]
    /// The ring from each loop to each other one, and nil from a loop to itself.
    private let rings: [[PipeRing?]]

    /// - Parameter bells: for each loop, a function that wakes it. The functions are called on the threads of other
    ///   loops.
    public init(bells: [@Sendable () -> Void]) {
        self.bells = bells.map { PipeBell($0) }
        rings = bells.indices.map { writer in bells.indices.map { $0 == writer ? nil : PipeRing() } }
    }

    /// The number of loops.
    public var loops: Int { bells.count }

    func bell(of loop: Int) -> PipeBell { bells[loop] }

    /// Returns the ring from one loop to another one.
    func ring(from writer: Int, to reader: Int) -> PipeRing? { rings[writer][reader] }
}

/// Wakes a loop that waits.
final class PipeBell: Sendable {
    private let isWaiting = Atomic(false)
    private let wake: @Sendable () -> Void

    init(_ wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Called by the loop before it waits.
    /// - Parameter hasMore: whether there is anything to read.
    /// - Returns: false if there is, so that the loop must not wait.
    func beginWait(_ hasMore: () -> Bool) -> Bool {
        isWaiting.store(true, ordering: .sequentiallyConsistent)
        guard hasMore() else { return true }
        endWait()
        return false
    }

    /// Called by the loop after it has waited.
    func endWait() { isWaiting.store(false, ordering: .relaxed) }

    /// Wakes the loop if it waits. Called by another loop after it has committed something.
    func ring() {
        guard isWaiting.load(ordering: .sequentiallyConsistent), isWaiting.exchange(false, ordering: .relaxed) else {
            return
        }
        wake()
    }
}
