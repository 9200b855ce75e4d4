import Wire

/// When the compositor of a broadcast is started, started again, stopped and killed.
///
/// States: idle → running → running (it has ended by itself) or failed (it did so too often, or the disk is full); idle → ended or
/// failed; running → stopping → ended. The runs are numbered from 1.
public struct CompositorRuns: Sendable {
    /// What happened.
    public enum Event: Hashable, Sendable {
        /// The broadcast begins.
        case start
        /// The process has ended, or could not be started.
        case ended(run: Int)
        /// `CompositorRuns.deadline` has come.
        case timer
        /// The disk has no space for what the process composes.
        case diskFull
        /// The broadcast ends.
        case stop
    }

    /// Why a broadcast has failed.
    public enum Failure: Hashable, Sendable {
        /// The process ended too often.
        case crashes
        /// See `Event.diskFull`.
        case diskFull
    }

    /// What to do.
    public enum Effect: Hashable, Sendable {
        /// Start the process.
        case start(run: Int)
        /// Let the process compose what it has, and exit.
        case stop(run: Int)
        /// Kill the process, which does not exit, or composes what cannot be stored.
        case kill(run: Int)
        /// Report that the broadcast has failed.
        case fail(Failure)
    }

    /// The process may end by itself less than this often within `window`.
    public static let maxFailures = 3
    /// See `maxFailures`.
    public static let window: Duration = .seconds(60)
    /// How long the process may take to exit. It composes up to 5 s of delay, faster than in real time.
    public static let stopTimeout: Duration = .seconds(10)

    private enum State {
        case idle
        case running(run: Int)
        case stopping(run: Int, killAt: Timestamp)
        case failed
        case ended
    }

    private var state = State.idle
    /// When the process ended by itself, within the last `window`.
    private var failures: [Timestamp] = []

    public init() {}

    /// When to send `Event.timer`; nil if no time is of interest.
    public var deadline: Timestamp? { if case .stopping(_, let killAt) = state { killAt } else { nil } }

    /// The number of the run that gets media; nil if none does.
    public var current: Int? { if case .running(let run) = state { run } else { nil } }

    /// Whether the broadcast has failed.
    public var hasFailed: Bool { if case .failed = state { true } else { false } }

    /// Takes an event. Events of earlier runs change nothing.
    public mutating func take(_ event: Event, at now: Timestamp) -> [Effect] {
        switch state {
        case .idle:
            if event == .start { return start(1) }
            if event == .diskFull { return fail(.diskFull) }
            if event == .stop { state = .ended }
        case .running(let run):
            if event == .ended(run: run) { return restart(after: run, now) }
            if event == .diskFull { return [.kill(run: run)] + fail(.diskFull) }
            guard event == .stop else { break }
            state = .stopping(run: run, killAt: now + Self.stopTimeout)
            return [.stop(run: run)]
        case .stopping(let run, let killAt):
            if event == .ended(run: run) { state = .ended }
            guard event == .timer, killAt <= now else { break }
            state = .ended
            return [.kill(run: run)]
        case .failed, .ended: break
        }
        return []
    }

    private mutating func start(_ number: Int) -> [Effect] {
        state = .running(run: number)
        return [.start(run: number)]
    }

    private mutating func restart(after run: Int, _ now: Timestamp) -> [Effect] {
        failures.removeAll { now - $0 >= Self.window }
        failures.append(now)
        return failures.count < Self.maxFailures ? start(run + 1) : fail(.crashes)
    }

    private mutating func fail(_ failure: Failure) -> [Effect] {
        state = .failed
        return [.fail(failure)]
    }
}
