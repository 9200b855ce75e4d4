import Wire

/// When the ffmpeg of one RTMP target runs, and which status the target has.
///
/// A pure machine. Legal next states: waiting → running; running → closing (the encoder was started again, or the broadcast has ended) or
/// pausing; closing → waiting or ended; pausing → waiting; each → ended. After a failure the target stays offline until media arrives
/// again.
public struct RTMPTarget: Sendable {
    /// What happened.
    public enum Event: Hashable, Sendable {
        /// The encoder has made a part with which a stream can start. Only the first after a pause matters.
        case keyframe
        /// ffmpeg could not be started.
        case notStarted(run: Int)
        /// ffmpeg has sent so much media in this run.
        case sent(Duration, run: Int)
        /// Nothing fits into ffmpeg's queue since this time.
        case full(since: Timestamp, run: Int)
        /// ffmpeg has ended.
        case exited(run: Int)
        /// The encoder is started again, and what follows has another initialization section.
        case encoderRestarted
        /// `RTMPTarget.deadline` has come.
        case timer
        /// The broadcast has ended.
        case stop
    }

    /// What to do.
    public enum Effect: Hashable, Sendable {
        /// Start ffmpeg with the current initialization section and this part.
        case start(run: Int)
        /// Close ffmpeg's input, so that it sends what it has and ends by itself.
        case close(run: Int)
        /// Kill ffmpeg.
        case kill(run: Int)
        /// The status has changed.
        case report(RTMPStatus)
    }

    /// How long a connection may take.
    public static let connectTimeout: Duration = .seconds(20)
    /// How much media must be sent before the target is live.
    public static let liveAfter: Duration = .seconds(2)
    /// How long nothing may fit into ffmpeg's queue.
    public static let stallTimeout: Duration = .seconds(10)
    /// How long ffmpeg may take to end by itself.
    public static let closeTimeout: Duration = .seconds(5)
    /// The pauses between attempts: 1, 2, 4, … 30 s.
    public static let (firstPause, longestPause): (Duration, Duration) = (.seconds(1), .seconds(30))

    private enum State {
        /// Starts with the next keyframe.
        case waiting
        case running(run: Int, connectBy: Timestamp?)
        /// ffmpeg sends what it has. Two runs at once would be two streams of one name, which targets refuse.
        case closing(run: Int, killAt: Timestamp, isLast: Bool)
        case pausing(until: Timestamp)
        case ended
    }

    private var state = State.waiting
    /// The number of attempts, which is also the number of the last one.
    private var runs = 0
    /// The pause after the next failure.
    private var pause = firstPause
    public private(set) var status = RTMPStatus.connecting

    public init() {}

    /// When to send `Event.timer`; nil if no time is of interest.
    public var deadline: Timestamp? {
        switch state {
        case .running(_, let connectBy): connectBy
        case .closing(_, let killAt, _): killAt
        case .pausing(let until): until
        case .waiting, .ended: nil
        }
    }

    /// The number of the run of ffmpeg that gets media; nil if none runs.
    public var current: Int? {
        if case .running(let run, _) = state { return run }
        return nil
    }

    /// Takes an event. Events of earlier runs change nothing.
    public mutating func take(_ event: Event, at now: Timestamp) -> [Effect] {
        switch state {
        case .waiting: return whileWaiting(event, now)
        case .running(let run, let connectBy): return whileRunning(event, run, connectBy, now)
        case .closing(let run, let killAt, let isLast): return whileClosing(event, run, killAt, isLast, now)
        case .pausing(let until):
            if event == .stop {
                state = .ended
            } else if event == .timer, until <= now {
                state = .waiting
            }
            return []
        case .ended: return []
        }
    }

    private mutating func whileWaiting(_ event: Event, _ now: Timestamp) -> [Effect] {
        if event == .stop { state = .ended }
        guard event == .keyframe else { return [] }
        runs += 1
        state = .running(run: runs, connectBy: now + Self.connectTimeout)
        return [.start(run: runs)]
    }

    private mutating func whileRunning(
        _ event: Event, _ run: Int, _ connectBy: Timestamp?, _ now: Timestamp
    ) -> [Effect] {
        switch event {
        case .notStarted(run): return fail(.error, at: now)
        case .exited(run): return fail(.offline, at: now)
        case .sent(let duration, run): return sent(duration, run, isConnecting: connectBy != nil)
        case .full(let since, run) where now - since >= Self.stallTimeout:
            return [.kill(run: run)] + fail(.offline, at: now)
        case .timer:
            guard let connectBy, connectBy <= now else { return [] }
            return [.kill(run: run)] + fail(.offline, at: now)
        case .encoderRestarted, .stop:
            state = .closing(run: run, killAt: now + Self.closeTimeout, isLast: event == .stop)
            return [.close(run: run)]
        default: return []
        }
    }

    private mutating func whileClosing(
        _ event: Event, _ run: Int, _ killAt: Timestamp, _ isLast: Bool, _ now: Timestamp
    ) -> [Effect] {
        switch event {
        case .exited(run), .notStarted(run): state = isLast ? .ended : .waiting
        case .timer where killAt <= now:
            state = isLast ? .ended : .waiting
            return [.kill(run: run)]
        case .stop: state = .closing(run: run, killAt: killAt, isLast: true)
        default: break
        }
        return []
    }

    private mutating func sent(_ duration: Duration, _ run: Int, isConnecting: Bool) -> [Effect] {
        guard isConnecting, duration >= Self.liveAfter else { return [] }
        state = .running(run: run, connectBy: nil)
        pause = Self.firstPause
        return report(.live)
    }

    private mutating func fail(_ status: RTMPStatus, at now: Timestamp) -> [Effect] {
        state = .pausing(until: now + pause)
        pause = min(pause * 2, Self.longestPause)
        return report(status)
    }

    private mutating func report(_ changed: RTMPStatus) -> [Effect] {
        guard changed != status else { return [] }
        status = changed
        return [.report(changed)]
    }
}
