import Synchronization

/// Whether this node of a cluster delivers webhooks now. All nodes store events in one outbox, and the oldest life delivers them.
///
/// Lives get their numbers in order, so the next node's turn comes only when this one's life is over, and it does not deliver while its
/// lease is not valid. So no two nodes begin to send one event at the same time. A request
/// that is under way when the lease ends may overlap with the next node's, which has the same delivery id.
final class WebhookTurn: Sendable {
    private let end = Mutex(ContinuousClock.now)

    /// Whether events may be sent now.
    var isOurs: Bool { end.withLock { ContinuousClock.now < $0 } }

    /// Sets how much longer this node may send. If the duration is not positive, it must stop.
    func last(_ duration: Duration) { end.withLock { $0 = ContinuousClock.now + duration } }
}
