/// Notices that people cannot reach this node, although other nodes can be reached.
///
/// Such a node lives: it reaches PostgreSQL and Redis. So it would keep the places of its people and rooms until its clients have missed
/// their pings and their graces are over, while those people stand at the doors of other nodes. The signs are that the load balancer no
/// longer asks whether this node is ready, although it asks others, and that no client sends anything.
///
/// Both signs are needed. A node that an operator has taken out of the load balancer still hears its clients. If the load balancer
/// itself is away, nobody else is asked either.
public struct DoorWatch: Sendable {
    /// How often the load balancer must have asked. A person who looks at `/ready` now and then is no load balancer.
    public static let habit: UInt64 = 10
    /// How recently another node must have been asked.
    static let recent = Duration.seconds(5)

    /// How long both signs must last.
    private let silence: Duration
    private var checks: UInt64 = 0
    private var heard: UInt64 = 0
    /// When the load balancer asked last; nil if never.
    private var checkedAt: Instant?
    private var heardAt: Instant

    /// - Parameters:
    ///   - pingInterval: how often each client sends something, if only an answer to a ping.
    ///   - now: when the node's life began.
    public init(pingInterval: Duration, at now: Instant) {
        silence = max(.seconds(15), pingInterval + .seconds(5))
        heardAt = now
    }

    /// Notes how often the load balancer has asked, and how often clients have sent something, since the life began.
    public mutating func note(checks: UInt64, heard: UInt64, at now: Instant) {
        if checks != self.checks { checkedAt = now }
        if heard != self.heard { heardAt = now }
        (self.checks, self.heard) = (checks, heard)
    }

    /// How long ago the load balancer asked last; nil if it does not ask regularly.
    public func sinceCheck(at now: Instant) -> Duration? {
        guard checks >= Self.habit, let checkedAt else { return nil }
        return now - checkedAt
    }

    /// Whether people cannot reach this node.
    ///
    /// - Parameters:
    ///   - clients: the clients of this node, with those that have lost their connection and may return.
    ///   - others: how long ago the load balancer asked each of the other nodes; nil for those that it does not ask.
    public func isCutOff(clients: Int, others: some Sequence<Duration?>, at now: Instant) -> Bool {
        guard clients > 0, let sinceCheck = sinceCheck(at: now), sinceCheck >= silence, now - heardAt >= silence else {
            return false
        }
        return others.contains { $0.map { $0 < Self.recent } ?? false }
    }
}
