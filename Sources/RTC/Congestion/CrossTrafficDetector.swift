/// Detects another flow that keeps the path's queue full, such as a TCP download.
///
/// Without another flow, a queue that this flow has caused empties soon after the estimate was lowered. If the queue
/// is hardly ever empty, another flow may keep it full. Reacting to the delay would then leave the whole path to that
/// flow, so only losses and very long queues count until the queue is empty again. (Copa, Arun and Balakrishnan 2018,
/// switches modes in a similar way.)
///
/// While only losses count, this flow fills the queue itself, so a queue alone proves nothing. A trial does: if little
/// is sent for about a second, a queue caused by this flow drains. Another flow is assumed without a trial only if no
/// trial is possible, or if the queue remained although little was sent for seconds. As long as another flow is
/// assumed, trials are repeated.
struct CrossTrafficDetector: Sendable {
    /// A queue of this length or more does not count as empty.
    static let queue = MediaInterval.milliseconds(15)
    /// The fraction of time with a queue above which another flow is suspected.
    private static let present = 0.75
    /// The fraction of time with a queue below which the other flow is assumed to be gone.
    private static let absent = 0.35
    /// The time over which the fraction is averaged, in seconds.
    private static let time = 2.0
    /// The time between trials. It starts at `shortest` and doubles with each trial that detects another flow, up to
    /// `longest`.
    private static let shortest = MediaInterval.seconds(5)
    private static let longest = MediaInterval.seconds(40)
    /// The longest queuing delay that is tolerated, even while competing with another flow.
    static let longestQueue = MediaInterval.milliseconds(400)
    /// The fraction of the estimate that is kept after losses. TCP's CUBIC keeps 0.7 (RFC 9438 §4.6).
    static let decrease = 0.83
    /// The minimum fraction of lost packets that counts as a loss event.
    private static let loss = 0.01
    private static let shortestInterval = MediaInterval.milliseconds(700)

    private var filled = 0.0
    private var updatedAt: MediaTime?
    private var decreasedAt: MediaTime?
    private var (arrived, lost) = (0, 0)
    private var interval = Self.shortest
    private var trialAt: MediaTime?
    private(set) var trial: Trial?

    /// Whether another flow keeps the queue full.
    private(set) var isPresent = false

    /// Updates the detection from a report, and starts a trial if one is due.
    ///
    /// - Parameters:
    ///   - queue: the queueing delay.
    ///   - isDraining: whether this flow is draining its own queue, which reveals nothing about other flows.
    ///   - arriving: the bitrate that arrives; nil if no trial is possible. Another flow is then assumed without a
    ///     trial.
    mutating func update(queue: MediaInterval, isDraining: Bool, arriving: Bitrate?, now: MediaTime) {
        defer { updatedAt = now }
        guard let updatedAt, trial == nil, !isDraining || isPresent else { return }
        let weight = min(1, Double((now - updatedAt).nanoseconds) / 1e9 / Self.time)
        filled += ((queue >= Self.queue ? 1 : 0) - filled) * weight
        if isPresent, filled <= Self.absent { leave() }
        let isDue = isPresent ? trialAt.map { now >= $0 } ?? true : filled > Self.present
        guard isDue else { return }
        if let arriving {
            trial = Trial(startedAt: now, queue: queue, arriving: arriving)
        } else if !isPresent {
            assume(now: now)
        }
    }

    /// Must be called for each packet that is sent.
    @inline(__always)
    mutating func sent(_ bytes: Int) { trial?.sent += bytes }

    /// Ends the trial once it has a result or has reached its maximum duration.
    /// - Returns: the bitrate that the path carries if the queue is attributed to this flow; otherwise nil.
    mutating func endTrial(queue: MediaInterval, roundTrip: MediaInterval, now: MediaTime) -> Bitrate? {
        guard let result = trial?.result(queue: queue, roundTrip: roundTrip, now: now), let trial else { return nil }
        self.trial = nil
        switch result {
        case .other: assume(now: now)
        case .unknown where !isPresent && queue.nanoseconds > trial.queue.nanoseconds / 4 * 3: assume(now: now)
        case .own, .unknown:
            leave()
            return trial.arriving
        }
        return nil
    }

    /// Assumes that another flow keeps the queue full. Must be called when the queue remains although this flow has
    /// sent little for seconds.
    mutating func assume(now: MediaTime) {
        if isPresent { interval = min(interval * 2, Self.longest) }
        (filled, isPresent, trialAt) = (1, true, now + interval)
        (arrived, lost) = (0, 0)
    }

    private mutating func leave() { (filled, isPresent, interval) = (0, false, Self.shortest) }

    /// Counts packets while another flow is present.
    /// - Returns: true if the estimate must be lowered.
    mutating func add(arrived: Int, lost: Int, queue: MediaInterval, now: MediaTime) -> Bool {
        self.arrived += arrived
        self.lost += lost
        if let decreasedAt, now - decreasedAt < Self.shortestInterval { return false }
        let all = self.arrived + max(0, self.lost)
        guard all >= 20 else { return false }
        let share = Double(self.lost) / Double(all)
        (self.arrived, self.lost) = (0, 0)
        guard share > Self.loss || queue > Self.longestQueue else { return false }
        decreasedAt = now
        return true
    }
}

extension CrossTrafficDetector {
    /// A period in which little is sent, to determine which flow caused the queue. While there is no result, a trial
    /// continues up to its maximum duration: sending more would lengthen the queue, whichever flow caused it.
    struct Trial: Sendable {
        /// The flow that caused the queue.
        enum Result {
            case own
            case other
            /// The trial ended without a result, because sending noticeably less was not possible.
            case unknown
        }

        private static let longest = MediaInterval.seconds(3)
        /// How long the queue must be empty to show that this flow caused it. After another flow has lost packets,
        /// the queue is also empty, but for a shorter time.
        private static let empty = MediaInterval.milliseconds(700)
        /// How much longer than expected from the sent bytes a queue of this flow may take to drain: a factor, and a
        /// margin in seconds.
        private static let factor = 1.3
        private static let margin = 0.05

        let startedAt: MediaTime
        /// The longest queueing delay reported in the first round trip. Those reports are about the time before the
        /// trial, when the queue may still have grown.
        private(set) var queue: MediaInterval
        /// The bitrate that arrived when the trial started. With a queue, this is all that the path carries for this
        /// flow.
        let arriving: Bitrate
        /// The bytes sent since the trial started.
        var sent = 0
        private var emptySince: MediaTime?
        /// When the queue should have drained, if this flow had caused it; nil before that time.
        private var dueAt: MediaTime?

        init(startedAt: MediaTime, queue: MediaInterval, arriving: Bitrate) {
            (self.startedAt, self.queue, self.arriving) = (startedAt, queue, arriving)
        }

        fileprivate mutating func result(queue: MediaInterval, roundTrip: MediaInterval, now: MediaTime) -> Result? {
            if queue < CrossTrafficDetector.queue {
                let since = emptySince ?? now
                emptySince = since
                return now - since >= Self.empty ? .own : nil
            }
            emptySince = nil
            let passed = now - startedAt
            if passed >= Self.longest { return .unknown }
            guard passed > roundTrip else {
                self.queue = max(self.queue, queue)
                return nil
            }
            let seconds = Double(passed.nanoseconds) / 1e9
            // The part of the queue that has drained, in seconds, if the path was never idle: the elapsed time minus
            // the time the path needs for what was sent since.
            let gone = seconds - Double(sent) * 8 / Double(max(1, arriving.bitsPerSecond))
            if dueAt == nil, gone > Double(self.queue.nanoseconds) / 1e9 * Self.factor + Self.margin { dueAt = now }
            // Wait for another round trip, because packets sent up to `dueAt` are reported up to a round trip later.
            return dueAt.map { now - $0 >= roundTrip } ?? false ? .other : nil
        }
    }
}
