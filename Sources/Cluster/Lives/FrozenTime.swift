/// Counts for how long a node has waited because its lease was not valid. The time before it acts for the first time does not count.
public struct FrozenTime: Sendable {
    /// Since when it waits; nil while it acts.
    private var since: Instant?
    private var past = Duration.zero

    /// Creates a count of a node that has not waited.
    public init() {}

    /// The node begins to wait (``Lease/Effect/froze``).
    public mutating func froze(at now: Instant) { since = since ?? now }

    /// The node acts (``Lease/Effect/thawed``).
    public mutating func thawed(at now: Instant) {
        past = total(at: now)
        since = nil
    }

    /// The time for which it has waited until now.
    public func total(at now: Instant) -> Duration { past + (since.map { now - $0 } ?? .zero) }
}
