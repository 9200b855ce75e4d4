import Composing
import Foundation
import Synchronization
import Wire

/// Sends a broadcast to one RTMP target: runs ffmpeg, with a queue that is bounded, and starts it again when it fails. A target that is
/// slow or gone delays nobody.
///
/// Its owner calls `begin` and `send` with what a ``Segmenter`` returns, `tick` once per second, and `stop` at the end.
public final class RTMPPublisher: Sendable {
    /// What happens to the target, in order. Ends after `stop`.
    public enum Event: Hashable, Sendable {
        /// To be reported to the application.
        case status(RTMPStatus)
        /// For the log: why ffmpeg has ended, without the URL and the stream name.
        case failure(String)
    }

    private struct Run {
        let number: Int
        let input: ChildInput
        let task: Task<Void, Never>
    }

    private struct State {
        var target = RTMPTarget()
        var queue = RTMPQueue()
        /// The initialization section that the next ffmpeg gets first.
        var initialization: [UInt8] = []
        var runs: [Run] = []
    }

    /// What ffmpeg may use: copying takes a hundredth of a core, and 100 MiB.
    private static let limits = ChildProcess.Limits(
        processor: 7_200, memory: 1 << 30, seconds: .infinity, nice: 0)
    /// Events that wait for a reader. A status changes at most once per second.
    private static let maxEvents = 256

    public let destination: RTMPDestination
    /// Read them all, for example in a task.
    public let events: AsyncStream<Event>
    private let ffmpeg: String
    private let problem: @Sendable (RTMPDestination) async -> String?
    private let clock: @Sendable () -> Timestamp
    private let continuation: AsyncStream<Event>.Continuation
    private let state = Mutex(State())

    /// - Parameters:
    ///   - ffmpeg: the path of the executable.
    ///   - problem: returns why ffmpeg may not connect to the target, as a sentence for the log; nil if it may. Called before each
    ///     attempt, and canceled if it takes longer than a connection may.
    ///   - clock: the time of timers.
    public init(
        _ destination: RTMPDestination, ffmpeg: String,
        problem: @escaping @Sendable (RTMPDestination) async -> String? = { _ in nil },
        clock: @escaping @Sendable () -> Timestamp
    ) {
        (self.destination, self.ffmpeg, self.problem, self.clock) = (destination, ffmpeg, problem, clock)
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.maxEvents))
    }

    /// The target's status.
    public var status: RTMPStatus { state.withLock { $0.target.status } }
    /// How many parts the target did not get because it was too slow.
    public var dropped: Int { state.withLock { $0.queue.dropped } }

    /// Takes the initialization section of an encoder that starts.
    public func begin(_ initialization: [UInt8]) {
        state.withLock { state in
            state.initialization = initialization
            take(.encoderRestarted, &state)
        }
    }

    /// Takes the next part. Never waits.
    public func send(_ part: MediaPart) {
        state.withLock { state in
            guard !state.initialization.isEmpty else { return }
            if part.isIndependent { take(.keyframe, &state) }
            guard let number = state.target.current, let run = state.runs.first(where: { $0.number == number }) else {
                return
            }
            let now = clock()
            if state.queue.take(part, waiting: run.input.waiting, at: now) {
                _ = run.input.append(part.bytes)
            } else if let since = state.queue.fullSince {
                take(.full(since: since, run: number), &state)
            }
        }
    }

    /// Handles timers. Call it once per second.
    public func tick() {
        state.withLock { state in
            guard let deadline = state.target.deadline, deadline <= clock() else { return }
            take(.timer, &state)
        }
    }

    /// Ends the stream, and waits until ffmpeg has sent what it has, for at most ``RTMPTarget/closeTimeout``.
    public func stop() async {
        let tasks = state.withLock { state in
            take(.stop, &state)
            return state.runs.map(\.task)
        }
        let killer = Task {
            try await Task.sleep(for: RTMPTarget.closeTimeout)
            tasks.forEach { $0.cancel() }
        }
        for task in tasks { await task.value }
        killer.cancel()
        continuation.finish()
    }

    private func take(_ event: RTMPTarget.Event, _ state: inout State) {
        for effect in state.target.take(event, at: clock()) {
            switch effect {
            case .start(let number): start(number, &state)
            case .close(let number): state.runs.first { $0.number == number }?.input.close()
            case .kill(let number):
                continuation.yield(.failure("The target did not accept media in time, so its ffmpeg was stopped."))
                state.runs.first { $0.number == number }?.task.cancel()
            case .report(let status): continuation.yield(.status(status))
            }
        }
    }

    private func start(_ number: Int, _ state: inout State) {
        let input = ChildInput(maxBytes: RTMPQueue.maxBytes + state.initialization.count)
        _ = input.append(state.initialization)
        state.queue.restart()
        let task = Task { [self] in
            let event = await run(number, input)
            self.state.withLock { state in
                state.runs.removeAll { $0.number == number }
                take(event, &state)
            }
        }
        state.runs.append(Run(number: number, input: input, task: task))
    }

    private func run(_ number: Int, _ input: ChildInput) async -> RTMPTarget.Event {
        if let problem = await problem(destination) {
            if !Task.isCancelled { continuation.yield(.failure(problem)) }
            return .exited(run: number)
        }
        do {
            let outcome = try await ChildProcess.run(
                ffmpeg, destination.ffmpegArguments, directory: "/", limits: Self.limits, input: input
            ) { [self] line in
                guard let sent = RTMPProgress.sent(line) else { return }
                state.withLock { take(.sent(sent, run: number), &$0) }
            }
            if !outcome.isSuccess { continuation.yield(.failure(destination.withoutSecret(outcome.reason))) }
            return .exited(run: number)
        } catch is CancellationError {
            return .exited(run: number)
        } catch {
            continuation.yield(.failure("\(error)"))
            return .notStarted(run: number)
        }
    }
}
