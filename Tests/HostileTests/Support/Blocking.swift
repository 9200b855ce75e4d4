import Foundation
import Synchronization

/// Counts on many threads.
final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func add(_ more: Int = 1) { value.withLock { $0 += more } }
}

/// Runs tasks on threads of their own: they may block on sockets there, which in Swift's own pool would keep other tests
/// from running at all.
final class BlockingExecutor: TaskExecutor {
    static let shared = BlockingExecutor()

    private let queue = DispatchQueue(label: "hostile", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Runs the body, and all tasks it makes, where blocking is allowed.
func blocking<R>(_ body: () async throws -> R) async throws -> R {
    try await withTaskExecutorPreference(BlockingExecutor.shared, operation: body)
}

/// Work on a thread of its own, whose result is asked for later. An attack of many threads is not held up by a pool's size.
final class Background<R: Sendable>: Sendable {
    private let result = Mutex<Result<R, any Error>?>(nil)

    init(_ body: @escaping @Sendable () throws -> R) {
        Thread.detachNewThread { [self] in
            let outcome = Result { try body() }
            result.withLock { $0 = outcome }
        }
    }

    var isFinished: Bool { result.withLock { $0 != nil } }

    /// Waits for the end of the body and returns or throws what it did.
    func join(within limit: Duration = .seconds(60)) throws -> R {
        try eventually("a thread is still at work", within: limit) { isFinished }
        guard let outcome = result.withLock({ $0 }) else { throw TimedOut("a thread is still at work") }
        return try outcome.get()
    }
}

/// Runs the body on a thread of its own and waits for it without blocking the caller's.
func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// Tells threads to stop, those too that wait for something else to do. Its value is guarded by the condition.
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

    /// Whether it is set by the end of that time.
    func isSet(within limit: Duration) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit.inSeconds)
        return condition.withLock {
            while !value, condition.wait(until: deadline) {}
            return value
        }
    }
}
