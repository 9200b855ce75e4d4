import Foundation
import Synchronization
import Wire

/// Threads that run jobs on connections to PostgreSQL. libpq blocks, so it may not run on event loops or in the cooperative
/// pool.
final class PostgresThreads: @unchecked Sendable {
    /// The maximum number of waiting jobs. If there are more, the database has stalled, and the queue must not fill the memory.
    static let maxWaiting = 16_384

    /// Where deadlines fire. It runs nothing that blocks.
    private static let deadlines = DispatchQueue(label: "postgres deadlines")

    typealias Job = @Sendable (PostgresSession) -> Void

    /// Protects all variables below.
    private let condition = NSCondition()
    private var jobs: [Job] = []
    /// The index in `jobs` of the next job.
    private var next = 0
    private var isClosed = false
    /// The threads that have not ended.
    private var running: Int
    private var onEnd: [CheckedContinuation<Void, Never>] = []

    /// - Parameter makeSession: creates the session of a thread, on that thread.
    init(count: Int, name: String, makeSession: @escaping @Sendable () -> PostgresSession) {
        running = count
        for _ in 0..<count {
            let thread = Thread { [self] in
                let session = makeSession()
                while let job = take() { job(session) }
                session.close()
                end()
            }
            thread.name = name
            thread.start()
        }
    }

    /// Runs a job on one of the threads.
    ///
    /// - Throws: the error of `body`, `.closed`, or `.overloaded` if too many jobs are waiting.
    func run<T: Sendable>(_ body: @escaping @Sendable (PostgresSession) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { done in
            if let error = add({ session in done.resume(with: Result { try body(session) }) }) {
                done.resume(throwing: error)
            }
        }
    }

    /// Runs a job on one of the threads, and waits no longer than `limit` for it. A job that no thread has begun by then is not run;
    /// one that was begun continues.
    ///
    /// - Throws: as `run(_:)`, or `.unreachable` when the time is over.
    func run<T: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable (PostgresSession) throws -> T
    ) async throws -> T {
        try await withCheckedThrowingContinuation { done in
            let answer = Answer(done)
            Self.deadlines.asyncAfter(deadline: .now() + .milliseconds(Int(clamping: limit.wholeMilliseconds))) {
                answer.give(.failure(StorageError.unreachable("it did not answer in time")))
            }
            let error = add { session in
                if answer.isAwaited { answer.give(Result { try body(session) }) }
            }
            if let error { answer.give(.failure(error)) }
        }
    }

    /// Runs a job, and blocks until it has ended. Only for the start of a server.
    func runBlocking<T: Sendable>(_ body: @escaping @Sendable (PostgresSession) throws -> T) throws -> T {
        let done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Result<T, any Error>?
        if let error = add({ session in
            result = Result { try body(session) }
            done.signal()
        }) {
            throw error
        }
        done.wait()
        guard let result else { throw StorageError.closed }
        return try result.get()
    }

    /// Rejects new jobs, and returns when the earlier ones have ended and the connections are closed.
    func close() async {
        await withCheckedContinuation { done in
            condition.lock()
            isClosed = true
            let hasEnded = running == 0
            if !hasEnded { onEnd.append(done) }
            condition.broadcast()
            condition.unlock()
            if hasEnded { done.resume() }
        }
    }

    /// Resumes a task once: with the result of its job, or when the time is over.
    private final class Answer<T: Sendable>: Sendable {
        private let waiting: Mutex<CheckedContinuation<T, any Error>?>

        init(_ done: CheckedContinuation<T, any Error>) { waiting = Mutex(done) }

        var isAwaited: Bool { waiting.withLock { $0 != nil } }

        func give(_ result: Result<T, any Error>) {
            let done = waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            done?.resume(with: result)
        }
    }

    private func add(_ job: @escaping Job) -> StorageError? {
        condition.lock()
        defer { condition.unlock() }
        guard !isClosed else { return .closed }
        guard jobs.count - next < Self.maxWaiting else {
            return StorageError(.overloaded, "PostgreSQL is too slow for the requests. Check its load.")
        }
        jobs.append(job)
        condition.signal()
        return nil
    }

    /// Waits for a job. Returns nil after the last one if the threads were closed.
    private func take() -> Job? {
        condition.lock()
        defer { condition.unlock() }
        while next == jobs.count {
            if isClosed { return nil }
            condition.wait()
        }
        let job = jobs[next]
        next += 1
        // Remove many jobs at once, because removing the first moves all others.
        if next == jobs.count || next > 1024 {
            jobs.removeFirst(next)
            next = 0
        }
        return job
    }

    private func end() {
        condition.lock()
        running -= 1
        let waiting = running == 0 ? onEnd : []
        condition.unlock()
        for done in waiting { done.resume() }
    }
}
