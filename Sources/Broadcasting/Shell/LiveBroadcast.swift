import Composing
import Foundation
import LiveComposing
import MediaFiles
import Synchronization
import Wire

/// One broadcast: runs `confab-compositor`, feeds it with streams, and gives what it composes to viewers over HLS and to RTMP targets.
/// All functions are safe from any thread.
///
/// Its owner calls `start`, `send` with frames and layouts, `tick` once per second, and `stop` at the end, also after a failure.
public final class LiveBroadcast: Sendable {
    /// What the owner has to know, in order. Ends after `stop`.
    public enum Event: Hashable, Sendable {
        /// Request a keyframe from the publisher of this stream.
        case needKeyframe(stream: UInt32)
        /// How the compositor is doing, about every two seconds.
        case stats(CompositorStats)
        /// For the log: what failed in the compositor, or why it has ended. The broadcast continues.
        case failure(String)
        /// The compositor ended or sent nothing too often, or the disk is full. Nothing more is broadcast.
        case failed(CompositorRuns.Failure)
    }

    private struct Run {
        let number: Int
        let link: CompositorLink
        let task: Task<Void, Never>
    }

    private struct State {
        var runs = CompositorRuns()
        var queue = CompositorQueue()
        var current: [Run] = []
        /// Whether a part is being written. Nothing is read meanwhile, so a slow disk must not count as a silent compositor.
        var isStoring = false
    }

    /// The compositor limits itself to 2 GiB and to the priority 5. A broadcast of ten hours may use four cores all the time.
    private static let limits = ChildProcess.Limits(
        processor: 4 * 36_000, memory: 4 << 30, seconds: .infinity, nice: 5)
    /// Events that wait for a reader.
    private static let maxEvents = 1_024

    /// Read them all, for example in a task.
    public let events: AsyncStream<Event>
    private let configuration: CompositorConfiguration
    private let executable: String
    private let segmenting: Segmenter.Rules
    private let origin: HLSOrigin?
    private let publishers: [RTMPPublisher]
    private let wall: Timestamp
    private let clock: @Sendable () -> Timestamp
    private let begun: Timestamp
    private let continuation: AsyncStream<Event>.Continuation
    private let state = Mutex(State())

    /// - Parameters:
    ///   - compositor: the path of the executable.
    ///   - segmenting: the rules of the origin's settings (`HLSSettings.segmenting`).
    ///   - origin: answers viewers; nil without HLS.
    ///   - publishers: the RTMP targets.
    ///   - wall: the time of day now.
    ///   - clock: the time of timers.
    public init(
        _ configuration: CompositorConfiguration, compositor: String, segmenting: Segmenter.Rules, origin: HLSOrigin?,
        publishers: [RTMPPublisher] = [], wall: Timestamp, clock: @escaping @Sendable () -> Timestamp
    ) {
        (self.configuration, executable, self.segmenting) = (configuration, compositor, segmenting)
        (self.origin, self.publishers, self.wall, self.clock) = (origin, publishers, wall, clock)
        begun = clock()
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.maxEvents))
    }

    /// The present time of the broadcast's timeline, which frames have to use. It begins with 0 when the broadcast is made.
    public var time: Duration { clock() - begun }
    /// How many video frames the compositor did not get because it was too slow.
    public var dropped: Int { state.withLock { $0.queue.dropped } }
    /// The status of the broadcast over HLS; nil without HLS.
    public var hlsStatus: HLSStatus? {
        guard let origin else { return nil }
        return HLSStatus(
            isReady: origin.isReady, isEnded: origin.isEnded, hasFailed: state.withLock { $0.runs.hasFailed },
            lastRequest: origin.lastRequest, at: clock())
    }

    /// Starts the compositor.
    public func start() { state.withLock { take(.start, &$0) } }

    /// Takes a frame, a layout, or the begin or end of a stream. Never waits.
    public func send(_ input: CompositorInput) {
        state.withLock { state in
            let run = state.current.first { $0.number == state.runs.current }
            switch state.queue.take(input, waiting: run?.link.waiting ?? 0, at: clock()) {
            case .send: run?.link.append(input.message.bytes)
            case .drop(wantsKeyframe: false): break
            case .drop(wantsKeyframe: true):
                if case .video(let stream, _, _, _) = input { continuation.yield(.needKeyframe(stream: stream)) }
            case .stuck:
                continuation.yield(.failure("The compositor reads nothing, so it was killed."))
                run?.task.cancel()
            }
        }
    }

    /// Handles timers. Call it once per second.
    public func tick() {
        state.withLock { state in
            guard let deadline = state.runs.deadline, deadline <= clock(), !state.isStoring else { return }
            take(.timer, &state)
        }
        origin?.tick()
        for publisher in publishers { publisher.tick() }
    }

    /// Makes the broadcast fail, because the disk of its files has no space left. Call `stop` then.
    public func failWithFullDisk() { state.withLock { take(.diskFull, &$0) } }

    /// Ends the broadcast: waits until the compositor has composed what it has, for at most ``CompositorRuns/stopTimeout``, and until
    /// the targets have got it. The origin keeps answering until its owner calls `remove`.
    public func stop() async {
        let tasks = state.withLock { state in
            take(.stop, &state)
            return state.current.map(\.task)
        }
        let killer = Task {
            try await Task.sleep(for: CompositorRuns.stopTimeout)
            tasks.forEach { $0.cancel() }
        }
        for task in tasks { await task.value }
        killer.cancel()
        do { try origin?.finish() } catch { continuation.yield(.failure("The end cannot be written: \(error)")) }
        await withTaskGroup { group in
            for publisher in publishers { group.addTask { await publisher.stop() } }
        }
        continuation.finish()
    }

    // MARK: Runs

    private func take(_ event: CompositorRuns.Event, _ state: inout State) {
        for effect in state.runs.take(event, at: clock()) {
            switch effect {
            case .start(let number): start(number, &state)
            case .stop(let number):
                let stop = CompositorInput.stop(at: time).message.bytes
                state.current.first { $0.number == number }?.link.append(stop)
            case .kill(let number): kill(number, state)
            case .killSilent(let number):
                continuation.yield(
                    .failure("The compositor has sent nothing for \(CompositorRuns.silenceTimeout), so it was killed."))
                kill(number, state)
            case .fail(let failure): continuation.yield(.failed(failure))
            }
        }
    }

    private func kill(_ number: Int, _ state: State) { state.current.first { $0.number == number }?.task.cancel() }

    private func start(_ number: Int, _ state: inout State) {
        guard let link = CompositorLink() else {
            continuation.yield(.failure("No socket is left for the compositor."))
            return take(.ended(run: number), &state)
        }
        let time = time
        for input in [.config(configuration, at: time)] + state.queue.restart(at: time) {
            link.append(input.message.bytes)
        }
        let task = Task { [self] in
            await run(link)
            self.state.withLock { state in
                state.current.removeAll { $0.number == number }
                take(.ended(run: number), &state)
            }
        }
        state.current.append(Run(number: number, link: link, task: task))
        let composed = ComposedOutput(self, run: number)
        link.start {
            try composed.take($0)
        } onEnd: { [self] error in
            continuation.yield(.failure("\(error)"))
            if error.isDiskFull { failWithFullDisk() }
            // The compositor would compose for nobody.
            task.cancel()
        }
    }

    private func run(_ link: CompositorLink) async {
        do {
            let outcome = try await ChildProcess.run(
                executable, [], directory: "/", limits: Self.limits, channel: link.childEnd)
            if !outcome.isSuccess { continuation.yield(.failure("The compositor has ended: \(outcome.reason)")) }
        } catch is CancellationError {
            // It was killed.
        } catch {
            continuation.yield(.failure("The compositor cannot be started: \(executable)"))
        }
        await link.waitUntilRead()
    }

    /// The output of one run. Used by the thread that reads it.
    private final class ComposedOutput {
        private let broadcast: LiveBroadcast
        private let run: Int
        private var segmenter: Segmenter
        /// When the first frame is shown, on the timeline.
        private var begun = Duration.zero

        init(_ broadcast: LiveBroadcast, run: Int) {
            (self.broadcast, self.run) = (broadcast, run)
            segmenter = Segmenter(broadcast.segmenting)
        }

        func take(_ message: CompositorMessage) throws {
            switch try CompositorOutput(message) {
            case .initialization(let time, let bytes):
                begun = time
                try publish(bytes)
            case .fragment(let fragment): try publish(fragment.bytes)
            case .stats(let stats): broadcast.continuation.yield(.stats(stats))
            case .needKeyframe(let stream): broadcast.continuation.yield(.needKeyframe(stream: stream))
            case .fault(let fault): broadcast.continuation.yield(.failure(fault.text))
            }
        }

        private func publish(_ bytes: [UInt8]) throws {
            for item in try segmenter.take(bytes) {
                switch item {
                case .initialization(let initialization):
                    try broadcast.origin?.begin(initialization)
                    for publisher in broadcast.publishers { publisher.begin(initialization.bytes) }
                case .part(let part):
                    try store(part)
                    for publisher in broadcast.publishers { publisher.send(part) }
                }
            }
        }

        private func store(_ part: MediaPart) throws {
            broadcast.state.withLock { $0.isStoring = true }
            defer {
                broadcast.state.withLock { state in
                    state.isStoring = false
                    broadcast.take(.output(run: run), &state)
                }
            }
            try broadcast.origin?.append(part, wall: broadcast.wall + begun + part.start)
        }
    }
}
