import Wire

/// When the compositor of a broadcast is started, started again, stopped and killed.
///
/// States: idle → running → running (the process has ended by itself, or was killed because it sent nothing) or failed (this happened
/// too often, or the disk is full); idle → ended or failed; running → stopping → ended. The runs are numbered from 1.
public struct CompositorRuns: Sendable {
    /// What happened.
    public enum Event: Hashable, Sendable {
        /// The broadcast begins.
        case start
        /// The process has sent a part of the broadcast.
        case output(run: Int)
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
        /// The process ended too often, or sent nothing too often.
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
        /// Kill the process, which runs, but has sent nothing for `silenceTimeout`. Its end is then a failure as any other.
        case killSilent(run: Int)
        /// Report that the broadcast has failed.
        case fail(Failure)
    }

    /// The process may end by itself, or send nothing, less than this often within `window`.
    public static let maxFailures = 3
    /// See `maxFailures`.
    public static let window: Duration = .seconds(60)
    /// How long the process may send nothing. It sends a part about twice per second, also of a session without streams, and the first
    /// one after up to two seconds. Viewers have about 12 s in their players.
    public static let silenceTimeout: Duration = .seconds(10)
    /// How long the process may take to exit. It composes up to 5 s of delay, faster than in real time.
    public static let stopTimeout: Duration = .seconds(10)

    private enum State {
        case idle
        /// `silentAt` is when it has sent nothing for too long; nil after it was killed for that.
        case running(run: Int, silentAt: Timestamp?)
        case stopping(run: Int, killAt: Timestamp)
        case failed
        case ended
    }

    private var state = State.idle
    /// When the process ended by itself, within the last `window`.
    private var failures: [Timestamp] = []

    public init() {}

    /// When to send `Event.timer`; nil if no time is of interest.
    public var deadline: Timestamp? {
        switch state {
        case .running(_, let silentAt): silentAt
        case .stopping(_, let killAt): killAt
        case .idle, .failed, .ended: nil
        }
    }

    /// The number of the run that gets media; nil if none does.
    public var current: Int? { if case .running(let run, _) = state { run } else { nil } }

    /// Whether the broadcast has failed.
    public var hasFailed: Bool { if case .failed = state { true } else { false } }

    /// Takes an event. Events of earlier runs change nothing.
    public mutating func take(_ event: Event, at now: Timestamp) -> [Effect] {
        switch state {
        case .idle:
            if event == .start { return start(1, now) }
            if event == .diskFull { return fail(.diskFull) }
            if event == .stop { state = .ended }
        case .running(let run, let silentAt): return take(event, running: run, silentAt, now)
        case .stopping(let run, let killAt):
            if event == .ended(run: run) { state = .ended }
            guard event == .timer, killAt <= now else { break }
            state = .ended
            return [.kill(run: run)]
        case .failed, .ended: break
        }
        return []
    }

    private mutating func take(_ event: Event, running run: Int, _ silentAt: Timestamp?, _ now: Timestamp) -> [Effect] {
        switch event {
        case .output(run: run):
            if silentAt != nil { state = .running(run: run, silentAt: now + Self.silenceTimeout) }
        case .ended(run: run): return restart(after: run, now)
        case .timer:
            guard let silentAt, silentAt <= now else { break }
            state = .running(run: run, silentAt: nil)
            return [.killSilent(run: run)]
        case .diskFull: return [.kill(run: run)] + fail(.diskFull)
        case .stop:
            state = .stopping(run: run, killAt: now + Self.stopTimeout)
            return [.stop(run: run)]
        case .start, .output, .ended: break
        }
        return []
    }

    private mutating func start(_ number: Int, _ now: Timestamp) -> [Effect] {
        state = .running(run: number, silentAt: now + Self.silenceTimeout)
        return [.start(run: number)]
    }

    private mutating func restart(after run: Int, _ now: Timestamp) -> [Effect] {
        failures.removeAll { now - $0 >= Self.window }
        failures.append(now)
        return failures.count < Self.maxFailures ? start(run + 1, now) : fail(.crashes)
    }

    private mutating func fail(_ failure: Failure) -> [Effect] {
        state = .failed
        return [.fail(failure)]
    }
}
