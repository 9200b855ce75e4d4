import Synchronization
import UnixSignals

/// A request to stop this process. It counts at any time, also between two lives of a node of a cluster, when no server runs.
public final class StopSignal: Sendable {
    /// Whether the stop was requested, and who waits for it.
    private struct State {
        var isSignaled = false
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Creates a signal that ``signal()`` gives.
    public init() {}

    /// Returns a signal that is given when the process receives SIGTERM or SIGINT after this function has returned.
    public static func onTermination() async -> StopSignal {
        let stop = StopSignal()
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        Task {
            for await _ in signals { stop.signal() }
        }
        return stop
    }

    /// Whether the process should stop.
    public var isSignaled: Bool { state.withLock(\.isSignaled) }

    /// Requests the stop. Has no effect if it was requested before.
    public func signal() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            state.isSignaled = true
            return state.waiting
        }
        for continuation in waiting.values { continuation.resume() }
    }

    /// Waits until the stop is requested, or until the task is canceled.
    public func wait() async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isSignaled || Task.isCancelled { return true }
                    state.waiting[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
        }
    }

    /// Runs `body`, unless the stop is requested before it has ended. Then cancels it without waiting for its end, because it may
    /// block, and returns nil.
    func unlessGiven<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T? {
        guard !isSignaled else { return nil }
        let (results, continuation) = AsyncStream<Result<T, any Error>?>.makeStream()
        let work = Task { try await body() }
        let relay = Task { continuation.yield(await work.result) }
        let watch = Task {
            await wait()
            continuation.yield(nil)
        }
        defer {
            work.cancel()
            relay.cancel()
            watch.cancel()
        }
        for await result in results { return try result?.get() }
        // The surrounding task was canceled.
        throw CancellationError()
    }
}
