import Foundation
import Synchronization

/// A counter that several threads can use.
final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func add(_ more: Int = 1) { value.withLock { $0 += more } }
}

/// Runs tasks on separate threads, where they may block on sockets. In Swift's own pool, blocked tasks would keep other
/// tests from running.
final class BlockingExecutor: TaskExecutor {
    static let shared = BlockingExecutor()

    private let queue = DispatchQueue(label: "hostile", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Runs the body and its tasks on threads that may block.
func blocking<R>(_ body: () async throws -> R) async throws -> R {
    try await withTaskExecutorPreference(BlockingExecutor.shared, operation: body)
}

/// Work on its own thread, so that attacks with many threads are not limited by a pool.
final class Background<R: Sendable>: Sendable {
    private let result = Mutex<Result<R, any Error>?>(nil)

    init(_ body: @escaping @Sendable () throws -> R) {
        Thread.detachNewThread { [self] in
            let outcome = Result { try body() }
            result.withLock { $0 = outcome }
        }
    }

    var isFinished: Bool { result.withLock { $0 != nil } }

    /// Waits for the body and returns its result or throws its error.
    func join(within limit: Duration = .seconds(60)) throws -> R {
        try eventually("a thread is still running", within: limit) { isFinished }
        guard let outcome = result.withLock({ $0 }) else { throw TimedOut("a thread is still running") }
        return try outcome.get()
    }
}

/// Runs the body on its own thread and waits without blocking the caller's thread.
func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// A flag that tells threads to stop. Threads can wait for it. The condition guards the value.
final class Flag: @unchecked Sendable {
    private let condition = NSCondition()
    private var value = false

    var isSet: Bool { condition.withLock { value } }

    func set() {
        condition.withLock {
            value = true
            condition.broadcast()
        }
    }

    /// Waits up to the limit for the flag, and returns whether it is set.
    func isSet(within limit: Duration) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit.inSeconds)
        return condition.withLock {
            while !value, condition.wait(until: deadline) {}
            return value
        }
    }
}
