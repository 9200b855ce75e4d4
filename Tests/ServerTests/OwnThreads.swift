import Foundation
import Testing

/// Runs tests on separate threads. In Swift's cooperative pool, a test may wait for all other tests between two of its
/// steps. On a busy machine, this takes so long that the server considers a client silent.
struct OwnThreads: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true
    /// Runs jobs on threads that Dispatch starts as needed.
    static let executor: any TaskExecutor = Executor()

    private final class Executor: TaskExecutor {
        private let queue = DispatchQueue(label: "tests with clocks", attributes: .concurrent)

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(Self.executor) { try await function() }
    }
}

extension Trait where Self == OwnThreads {
    static var ownThreads: Self { Self() }
}
