/// The attempts to send one batch of spans: what an answer means, and when to try again (OTLP over HTTP, "Failures").
struct TraceDelivery: Equatable, Sendable {
    /// How often a batch is sent before it is given up. With the pauses between, that takes about half a minute. Meanwhile the
    /// queue fills up.
    static let attempts = 6
    /// The pause after the first failed attempt. Each further pause is twice as long.
    private static let firstPause: Duration = .seconds(1)
    /// The longest pause, also if the receiver requests a longer one.
    static let longestPause: Duration = .seconds(30)

    /// The end of an attempt.
    enum Outcome: Equatable, Sendable {
        case answered(status: Int, retryAfter: Duration? = nil, rejected: Int = 0)
        /// There was no answer. The text is for the log.
        case lost(String)
    }

    /// What follows from an attempt.
    enum Step: Equatable, Sendable {
        /// The receiver has the batch, except for so many spans that it rejects.
        case delivered(rejected: Int)
        /// The batch must be sent again after this time.
        case wait(Duration, reason: String)
        /// The batch is given up.
        case giveUp(reason: String)
    }

    private var failures = 0

    /// - Parameter jitter: a random number from 0 to 1. Pauses differ by up to a quarter, so that servers that lost the receiver at the
    ///   same moment do not return at the same moment.
    mutating func handle(_ outcome: Outcome, jitter: Double) -> Step {
        let (reason, requested): (String, Duration?)
        switch outcome {
        case .answered(200...299, _, let rejected): return .delivered(rejected: rejected)
        case .answered(let status, let retryAfter, _):
            (reason, requested) = ("the receiver answered with status \(status)", retryAfter)
            // All other statuses mean that the same request would fail again.
            guard [429, 502, 503, 504].contains(status) else { return .giveUp(reason: reason) }
        case .lost(let text): (reason, requested) = (text, nil)
        }
        failures += 1
        guard failures < Self.attempts else { return .giveUp(reason: reason) }
        let pause = Self.firstPause * (1 << (failures - 1)) * (0.75 + 0.5 * jitter)
        return .wait(min(requested ?? pause, Self.longestPause), reason: reason)
    }
}
