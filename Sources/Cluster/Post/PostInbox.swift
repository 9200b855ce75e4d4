/// Judges the entries that other lives post to this one: each is handled once, in order, and without a gap.
///
/// The positions of entries are authenticated. So an entry that an attacker stores a second time has a position that was seen before,
/// and one that an attacker removed is noticed as a gap. An attacker who can write to Redis can stop a cluster, but not replay it.
public struct PostInbox: Sendable {
    /// What the shell has to do with an entry.
    public enum Effect: Hashable, Sendable {
        /// Handle it.
        case accept
        /// Keep this entry, and those of its sender that follow, until ``Lives`` has looked again.
        case keep
        /// Entries of this life were lost. Treat what is on it as lost, and begin again with it.
        case lost(NodeTag)
        /// Post ``PostContent/reset(series:)`` to this life.
        case askReset(NodeTag, series: UInt32)
    }

    /// What is known of a sender.
    private struct Sender: Sendable {
        var position: PostPosition
        /// When a new series was asked for, because entries of this one were lost.
        var askedReset: Instant?
    }

    /// The time after which a new series is asked for again.
    public static let resetInterval = Duration.seconds(1)

    private var senders: [NodeTag: Sender] = [:]
    /// How many entries were dropped: seen before, from lives that have ended, or after a gap.
    public private(set) var dropped = 0

    /// Creates an inbox that has received nothing.
    public init() {}

    /// Judges the next entry of a stream.
    ///
    /// - Parameters:
    ///   - isReset: whether it asks for a new series. That is accepted after a gap too, because both directions may have one at the same
    ///     time. It is harmless twice, because it names the series.
    ///   - standing: of the sender. Everything that a life that has ended posts or has posted is dropped.
    public mutating func receive(
        _ position: PostPosition, isReset: Bool = false, from life: NodeTag, standing: Lives.Standing, at now: Instant
    ) -> [Effect] {
        switch standing {
        case .unclear: return [.keep]
        case .ended:
            dropped += 1
            return []
        case .living: return judge(position, isReset, from: life, at: now)
        }
    }

    /// Forgets a life that has ended.
    public mutating func ended(_ life: NodeTag) { senders[life] = nil }

    private mutating func judge(
        _ position: PostPosition, _ isReset: Bool, from life: NodeTag, at now: Instant
    ) -> [Effect] {
        let known = senders[life] ?? Sender(position: PostPosition(series: 1, number: 0))
        guard position > known.position else {
            dropped += 1
            return []
        }
        if position.series == known.position.series { return sameSeries(position, known, isReset, from: life, at: now) }
        // The sender gave up the series before. If this node asked for that, it has heard already that entries were lost.
        let lost: [Effect] = known.askedReset == nil ? [.lost(life)] : []
        let first = PostPosition(series: position.series, number: 0)
        return lost + sameSeries(position, Sender(position: first), isReset, from: life, at: now)
    }

    /// Judges an entry of the current series that was not seen before.
    private mutating func sameSeries(
        _ position: PostPosition, _ known: Sender, _ isReset: Bool, from life: NodeTag, at now: Instant
    ) -> [Effect] {
        guard known.askedReset == nil, position.number == known.position.number + 1 else {
            let effects = gap(position.series, known, from: life, at: now)
            if isReset { return effects + [.accept] }
            dropped += 1
            return effects
        }
        senders[life] = Sender(position: position)
        return [.accept]
    }

    private mutating func gap(
        _ series: UInt32, _ known: Sender, from life: NodeTag, at now: Instant
    ) -> [Effect] {
        senders[life] = known
        if let asked = known.askedReset, now - asked < Self.resetInterval { return [] }
        senders[life]?.askedReset = now
        let lost: [Effect] = known.askedReset == nil ? [.lost(life)] : []
        return lost + [.askReset(life, series: series)]
    }
}
