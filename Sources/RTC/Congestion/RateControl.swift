/// Increases the estimate by a factor while the capacity is unknown, and slowly near the bitrate at which a queue grew
/// before. Decreases it to 85 % of the arriving bitrate when a queue grows (draft-ietf-rmcat-gcc-02 §5.5).
struct RateControl: Sendable {
    /// The fraction of the acknowledged bitrate that is kept after a decrease.
    static let decrease = 0.85
    /// The growth per second while the capacity is unknown.
    private static let growth = 1.08
    /// The estimate may grow up to the arriving bitrate times this factor, plus `slack`. A higher bitrate was never
    /// tried, so only a probe can show that the path carries it. Next to a flow that fills the queue, probes show
    /// nothing, so `aheadOfCompetitor` is larger.
    private static let ahead = 1.1
    private static let aheadOfCompetitor = 1.5
    private static let slack = Bitrate.kilobits(10)

    /// What `update` does with the estimate while no queue grows: holds or increases it.
    private enum Phase { case hold, increase }

    private var phase = Phase.hold
    private var decreases = 0
    /// The mean and the variance of the bitrates at which queues grew, in kilobits per second; the variance is
    /// relative to the mean. The mean is nil while the capacity is unknown.
    private var mean: Double?
    private var variance = 0.4
    private var changedAt: MediaTime?
    private(set) var decreasedAt: MediaTime?
    private(set) var estimate: Bitrate

    init(estimate: Bitrate) { self.estimate = estimate }

    /// Raises the estimate to the result of a probe.
    mutating func raise(to bitrate: Bitrate) { estimate = max(estimate, bitrate) }

    /// Lowers the estimate to this bitrate if it is higher.
    mutating func limit(to bitrate: Bitrate) { estimate = min(estimate, bitrate) }

    /// Whether there is a long queue. If not, each decrease after the first lowers the estimate by at most 15 %: when
    /// little is sent, less arrives than the path carries.
    var isQueueLong = false

    mutating func update(
        _ usage: DelayTrend.Usage, acknowledged: Bitrate?, roundTrip: MediaInterval, now: MediaTime
    ) {
        defer { changedAt = now }
        switch usage {
        case .over:
            if mayDecrease(acknowledged, roundTrip, now: now) { decrease(to: acknowledged, now: now) }
            phase = .hold
        case .under: phase = .hold
        case .normal:
            if phase == .hold {
                phase = .increase
            } else {
                increase(acknowledged, roundTrip, for: changedAt.map { now - $0 } ?? .zero)
            }
        }
    }

    /// Returns whether the estimate may be decreased now: if it was never decreased before, if the previous decrease
    /// has had time to show an effect, or if less than half of the estimate arrives.
    private func mayDecrease(_ acknowledged: Bitrate?, _ roundTrip: MediaInterval, now: MediaTime) -> Bool {
        guard let decreasedAt else { return true }
        let wait = min(max(roundTrip, .milliseconds(10)), .milliseconds(200))
        return now - decreasedAt >= wait || acknowledged.map { $0 < estimate * 0.5 } ?? false
    }

    private mutating func decrease(to acknowledged: Bitrate?, now: MediaTime) {
        decreasedAt = now
        guard let acknowledged else { return estimate = estimate * 0.5 }
        var lower = acknowledged * Self.decrease
        if lower > estimate, let mean { lower = Bitrate(bitsPerSecond: Int64(mean * 1000 * Self.decrease)) }
        if !isQueueLong, decreases > 0 { lower = max(lower, estimate * Self.decrease) }
        decreases += 1
        estimate = min(estimate, lower)
        learn(Double(acknowledged.bitsPerSecond) / 1000)
    }

    /// Adapts the estimate as TCP would, to keep a fair share against a competing flow that fills the queue. Raises
    /// the estimate by at most one packet per round trip. Lowers it by 17 % if `falls` is true: after losses, or while
    /// the queue is too long.
    mutating func compete(falls: Bool, acknowledged: Bitrate?, roundTrip: MediaInterval, now: MediaTime) {
        defer { changedAt = now }
        (phase, mean) = (.hold, nil)
        guard !falls else {
            decreasedAt = now
            return estimate = min(estimate, acknowledged ?? estimate) * CrossTrafficDetector.decrease
        }
        let (passed, trip) = (changedAt.map { now - $0 } ?? .zero, max(roundTrip, .milliseconds(50)))
        let trips = Double(trip.nanoseconds) / 1e9
        let perSecond = min(9600 / (trips * trips), Double(estimate.bitsPerSecond) * 0.35 + 100_000)
        let raised = estimate + Bitrate(bitsPerSecond: Int64(perSecond * min(1, Double(passed.nanoseconds) / 1e9)))
        guard let acknowledged else { return }
        estimate = max(estimate, min(raised, acknowledged * Self.aheadOfCompetitor + Self.slack))
    }

    /// Returns whether the acknowledged bitrate is near those at which queues grew. A bitrate far from them starts a
    /// new search.
    private func isNear(_ kilobits: Double) -> Bool {
        guard let mean else { return false }
        return abs(kilobits - mean) <= 3 * (variance * mean).squareRoot()
    }

    private mutating func learn(_ kilobits: Double) {
        guard let mean, isNear(kilobits) else {
            (mean, variance) = (kilobits, 0.4)
            return
        }
        let new = 0.95 * mean + 0.05 * kilobits
        let error = new - kilobits
        variance = min(max(0.95 * variance + 0.05 * error * error / max(1, new), 0.4), 2.5)
        self.mean = new
    }

    private mutating func increase(_ acknowledged: Bitrate?, _ roundTrip: MediaInterval, for passed: MediaInterval) {
        let seconds = min(1, Double(passed.nanoseconds) / 1e9)
        if let mean, let acknowledged {
            let kilobits = Double(acknowledged.bitsPerSecond) / 1000
            if kilobits > mean, !isNear(kilobits) { self.mean = nil }
        }
        var raised = estimate
        if mean != nil {
            // One more packet per response time, which is a round trip plus 100 ms to detect a growing queue.
            let response = Double((roundTrip + .milliseconds(100)).nanoseconds) / 1e9
            let perSecond = max(4000, min(1200 * 8, Double(estimate.bitsPerSecond) / 30) / response)
            raised = raised + Bitrate(bitsPerSecond: Int64(perSecond * seconds))
        } else {
            var factor = 1.0
            // A linear approximation of the exponential growth, for the short times between reports.
            factor += (Self.growth - 1) * seconds
            raised = raised * factor
        }
        guard let acknowledged else { return }
        estimate = max(estimate, min(raised, acknowledged * Self.ahead + Self.slack))
    }
}

extension MediaInterval {
    static func + (left: MediaInterval, right: MediaInterval) -> MediaInterval {
        MediaInterval(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }
}
