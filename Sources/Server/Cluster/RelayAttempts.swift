import Cluster

extension RelayFault {
    /// Returns the log message, which says what is wrong and what to do.
    func text(node: UInt16) -> String {
        let start = "The relay to node \(node) does not connect, so no media crosses"
        return switch self {
        case .unreachable:
            """
            \(start). Allow UDP between the media ports of both nodes, in both directions. If media.relayAddress is set, \
            allow it there.
            """
        case .unanswered: "\(start): that node does not answer over Redis. Check that node and Redis."
        }
    }
}

/// Counts failed attempts to connect a relay since it was last connected. Decides when to warn the operator.
struct RelayAttempts: Equatable, Sendable {
    /// The number of failed attempts after which a fault is reported. Three attempts take 15 s (`RelayLink.connectTimeout`). A single
    /// attempt may fail because the other node starts later.
    static let reportedAfter = 3

    /// The number of the current attempt; 0 before the first one.
    private var present: UInt32 = 0
    /// The number of the newest attempt for which the other end's credentials have arrived.
    private var newestAnswer: UInt32 = 0
    /// Whether the other end's credentials for the current attempt have arrived.
    private var isAnswered = false
    private var hasConnected = false
    /// The fault of the last failed attempt since the relay was connected, if it is one that was reported.
    private(set) var fault: RelayFault?
    /// The number of failed attempts with the other end's credentials, and without them.
    private var unreachable = 0
    private var unanswered = 0

    init() {}

    /// The other end's credentials have arrived.
    mutating func received(_ attempt: UInt32) {
        newestAnswer = max(newestAnswer, attempt)
        if attempt == present { isAnswered = true }
    }

    /// A new attempt begins. The previous attempt has failed, unless it connected.
    ///
    /// - Returns: the fault to report, if any. Each fault is reported once until the relay connects.
    mutating func began(_ attempt: UInt32) -> RelayFault? {
        guard attempt > present else { return nil }
        let news = present > 0 && !hasConnected ? countFailure() : nil
        (present, isAnswered, hasConnected) = (attempt, newestAnswer == attempt, false)
        return news
    }

    private mutating func countFailure() -> RelayFault? {
        let cause = isAnswered ? RelayFault.unreachable : .unanswered
        if isAnswered { unreachable += 1 } else { unanswered += 1 }
        let count = isAnswered ? unreachable : unanswered
        if count >= Self.reportedAfter { fault = cause }
        return count == Self.reportedAfter ? cause : nil
    }

    /// The current attempt has connected.
    mutating func connected() { (hasConnected, unreachable, unanswered, fault) = (true, 0, 0, nil) }
}
