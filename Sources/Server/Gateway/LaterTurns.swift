import DequeModule
import NIOCore

/// Runs work in later turns of the event loop, after the loop has handled all sockets that are ready. Used only on
/// that event loop.
///
/// `EventLoop.execute` does not do this. NIO runs tasks until none are left before it polls the sockets again, so a
/// task that submits itself again starves all sockets.
final class LaterTurns {
    /// Maximum time per turn. The rest of the work waits for another turn.
    private static let share = TimeAmount.milliseconds(2)
    /// The delay before the next turn. A timer without a delay would fire before the sockets are polled.
    private static let pause = TimeAmount.microseconds(100)

    private let eventLoop: any EventLoop
    private var waiting: Deque<() -> Void> = []
    private var isScheduled = false

    init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    /// Calls `work` once, in a later turn, after all work submitted earlier.
    func run(_ work: @escaping () -> Void) {
        waiting.append(work)
        schedule()
    }

    private func schedule() {
        guard !isScheduled, !waiting.isEmpty else { return }
        isScheduled = true
        let turns = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(in: Self.pause) { turns.value.runWaiting() }
    }

    private func runWaiting() {
        let end = NIODeadline.now() + Self.share
        // Run only the work that is waiting now. Work submitted in the meantime belongs to the next turn.
        for _ in 0..<waiting.count {
            guard NIODeadline.now() < end, let work = waiting.popFirst() else { break }
            work()
        }
        isScheduled = false
        schedule()
    }
}
