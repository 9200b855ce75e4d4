import Dispatch
import Foundation
import Synchronization
import Wire

/// What the threads of a storage share.
final class PostgresStatus: Sendable {
    /// The pause between two attempts at something that another process or the server may soon allow.
    static let attemptPause: Duration = .milliseconds(20)

    /// Whether the writer reached PostgreSQL the last time.
    let isReachable = Atomic<Bool>(true)
    /// The ID of the server's connection that writes, which is also in the table `owner` or `node`. Nil for a command.
    let writerConnection = Mutex<Data?>(nil)

    private let isClosed = Atomic<Bool>(false)
    /// Entered until the storage closes. Waiting for a group is waiting for an event, with a timeout by the monotonic clock.
    private let closing = DispatchGroup()
    private let attemptPause: Duration
    private let onPause: @Sendable () -> Void

    /// - Parameters:
    ///   - attemptPause: another pause, for tests.
    ///   - onPause: for tests: called before each pause.
    init(attemptPause: Duration = PostgresStatus.attemptPause, onPause: @escaping @Sendable () -> Void = {}) {
        (self.attemptPause, self.onPause) = (attemptPause, onPause)
        closing.enter()
    }

    // A group that is still entered must not be freed.
    deinit { close() }

    /// Whether the storage is closing, so that nothing may wait for long.
    var isClosing: Bool { isClosed.load(ordering: .relaxed) }

    /// Ends all pauses, now and later.
    func close() {
        if !isClosed.exchange(true, ordering: .relaxed) { closing.leave() }
    }

    /// Blocks between two attempts, until the pause is over or the storage closes.
    ///
    /// - Returns: whether another attempt may follow. False if the storage is closing.
    func pause() -> Bool {
        onPause()
        let milliseconds = Int(clamping: attemptPause.wholeMilliseconds)
        return closing.wait(timeout: .now() + .milliseconds(milliseconds)) == .timedOut
    }
}
