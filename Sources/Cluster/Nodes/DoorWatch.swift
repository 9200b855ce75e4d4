/// Detects that clients cannot reach this node, although the load balancer reaches other nodes.
///
/// This node still reaches PostgreSQL and Redis, so its lease stays valid. It would hold its rooms and people until pings and graces
/// expire, and other nodes could not serve them. The signs are that the load balancer no longer asks whether this node is ready, although
/// it asks others, and that no client sends anything.
///
/// Both signs are needed. A node that an operator has taken out of the load balancer still hears its clients. If the load balancer
/// itself is away, nobody else is asked either.
public struct DoorWatch: Sendable {
    /// How often the load balancer must have asked. Fewer requests may be a person looking at `/ready`.
    public static let minimumChecks = 10
    /// How recently another node must have been asked, if the load balancer asks often.
    static let recent = Duration.seconds(5)
    /// For how long the load balancer must ask other nodes but not this one: when it comes back after an outage, it asks one node after
    /// another for the first time.
    static let confirmation = Duration.seconds(5)

    /// How long both signs must last.
    private let silence: Duration
    private var checks: UInt64 = 0
    private var heard: UInt64 = 0
    /// When the load balancer asked last; nil if never.
    private var checkedAt: Instant?
    private var heardAt: Instant
    /// The last intervals between the load balancer's requests. An outage of the load balancer leaves them after as many requests.
    private var intervals: [Duration] = []
    /// Since when another node has been asked and this one has not.
    private var passedOverSince: Instant?

    /// - Parameters:
    ///   - pingInterval: how often each client sends something, if only an answer to a ping.
    ///   - now: when the node's life began.
    public init(pingInterval: Duration, at now: Instant) {
        silence = max(.seconds(15), pingInterval + .seconds(5))
        heardAt = now
    }

    /// Notes what has happened. Call it about once a second.
    ///
    /// - Parameters:
    ///   - checks: how often the load balancer has asked since the life began.
    ///   - heard: how often clients have sent something since the life began.
    ///   - others: how long ago the load balancer asked each of the other nodes; nil for those that it does not ask. Empty if unknown.
    public mutating func note(checks: UInt64, heard: UInt64, others: some Sequence<Duration?>, at now: Instant) {
        if checks != self.checks {
            if let checkedAt { intervals.append(now - checkedAt) }
            if intervals.count > Self.minimumChecks { intervals.removeFirst() }
            checkedAt = now
            passedOverSince = nil
        }
        if heard != self.heard { heardAt = now }
        (self.checks, self.heard) = (checks, heard)
        let recent = max(Self.recent, interval * 2)
        if others.contains(where: { $0.map { $0 < recent } ?? false }) {
            passedOverSince = passedOverSince ?? now
        } else {
            passedOverSince = nil
        }
    }

    /// How long ago the load balancer asked last; nil if it does not ask regularly.
    public func sinceCheck(at now: Instant) -> Duration? {
        guard checks >= Self.minimumChecks, let checkedAt else { return nil }
        return now - checkedAt
    }

    /// Whether clients cannot reach this node.
    ///
    /// - Parameter clients: the clients of this node, with those that have lost their connection and may return.
    public func isCutOff(clients: Int, at now: Instant) -> Bool {
        guard clients > 0, let sinceCheck = sinceCheck(at: now), let passedOverSince else { return false }
        return sinceCheck >= max(silence, interval * 3) && now - heardAt >= silence
            && now - passedOverSince >= Self.confirmation
    }

    /// How often the load balancer asks.
    private var interval: Duration { intervals.max() ?? .zero }
}
