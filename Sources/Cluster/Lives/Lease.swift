/// Decides whether this node may act: only while a renewal of its life is valid, by its own monotonic clock.
///
/// A renewal is valid from when it was sent, not from when it was answered. The ledger extends the lease after that, so the ledger
/// can fence this life only after the renewal has become invalid here. This holds for answers that come late or in another order.
///
/// The shell asks ``acts(at:)`` before each run of the rules. It calls ``tick(at:)`` at ``nextWakeUp``, sends the renewals, and
/// passes on the answers. A node that does not act is *frozen*: events wait, and media flows.
public struct Lease: Sendable {
    /// What a node may do. From `frozen` a life changes to `acting` and back, or to `fenced`, which is final.
    public enum State: Hashable, Sendable {
        /// No renewal is valid. A life begins in this state.
        case frozen
        /// A renewal is valid until this instant.
        case acting(until: Instant)
        /// The life is over. The node drops its state machines and begins another life. `heir` fenced it; nil if a failover lost it.
        case fenced(heir: NodeTag?)
    }

    /// What the shell has to do.
    public enum Effect: Hashable, Sendable {
        /// Send ``Ledger/renew(_:)``, and pass on the answer with this number.
        case renew(number: UInt64)
        /// Events have to wait. The life had acted before.
        case froze
        /// The events that waited are handled now.
        case thawed
        /// Drop all state machines, close the sockets with 1012, and begin another life.
        case fenced(heir: NodeTag?)
    }

    private struct Renewing: Sendable {
        let number: UInt64
        let sent: Instant
    }

    /// Renewals that can be unanswered at a time. The oldest is forgotten, and its answer is ignored: it is no longer valid then.
    private static let maxOpen = 8

    /// The life whose lease this is.
    public let tag: NodeTag
    /// When the shell must call ``tick(at:)``. Nil if the life is over.
    public private(set) var nextWakeUp: Instant?
    /// The state as of the last call. Use ``acts(at:)`` to decide whether the node may act.
    public private(set) var state = State.frozen
    private let validity: Duration
    private let trusted: Instant
    /// When the next renewal is sent. Nil if the life is over.
    private var renewalDue: Instant?
    private var open: [Renewing] = []
    private var lastNumber: UInt64 = 0

    /// Creates the lease of a life that has begun.
    ///
    /// A failover may lose the beginning of a life while it is young, and then others would not know of a node that acts. So only
    /// renewals count that are sent when it is ``Terms/settling`` old.
    ///
    /// - Parameters:
    ///   - begun: when ``Ledger/begin(node:former:)`` was answered.
    ///   - validity: how long a renewal is valid. Tests pass other values to show that the default is needed.
    public init(of tag: NodeTag, begun: Instant, validity: Duration = Terms.leaseValidity) {
        (self.tag, self.validity) = (tag, validity)
        // 2 %, because the ledger's clock may be slower.
        trusted = begun + Terms.settling * 51 / 50
        (renewalDue, nextWakeUp) = (begun, begun)
    }

    /// Whether the node may act at this moment.
    public func acts(at now: Instant) -> Bool {
        guard case .acting(let until) = state else { return false }
        return now < until
    }

    /// Sends a renewal if it is time to, and notices that the last one has become invalid.
    ///
    /// - Parameter now: must not be later than when the renewal is sent.
    public mutating func tick(at now: Instant) -> [Effect] {
        if case .fenced = state { return [] }
        var effects = freezeIfDue(at: now)
        if let due = renewalDue, due <= now {
            lastNumber += 1
            if open.count == Self.maxOpen { open.removeFirst() }
            open.append(Renewing(number: lastNumber, sent: now))
            renewalDue = now + Terms.renewalInterval
            effects.append(.renew(number: lastNumber))
        }
        schedule()
        return effects
    }

    /// Handles the answer to a renewal.
    public mutating func answered(_ number: UInt64, _ answer: Renewal, at now: Instant) -> [Effect] {
        if case .fenced = state { return [] }
        let renewing = take(number)
        switch answer {
        case .fenced(let heir):
            state = .fenced(heir: heir)
            (open, renewalDue) = ([], nil)
            schedule()
            return [.fenced(heir: heir)]
        case .renewed:
            var effects = freezeIfDue(at: now)
            if let renewing, renewing.sent >= trusted { effects += extend(to: renewing.sent + validity, at: now) }
            schedule()
            return effects
        }
    }

    /// Notes that a renewal failed: no answer came, or the ledger could not be reached. The next one is sent in its turn.
    public mutating func failed(_ number: UInt64) { _ = take(number) }

    // MARK: Parts

    private mutating func take(_ number: UInt64) -> Renewing? {
        guard let index = open.firstIndex(where: { $0.number == number }) else { return nil }
        return open.remove(at: index)
    }

    private mutating func extend(to until: Instant, at now: Instant) -> [Effect] {
        guard until > now else { return [] }
        if case .acting(let earlier) = state {
            state = .acting(until: max(earlier, until))
            return []
        }
        state = .acting(until: until)
        return [.thawed]
    }

    private mutating func freezeIfDue(at now: Instant) -> [Effect] {
        guard case .acting(let until) = state, until <= now else { return [] }
        state = .frozen
        return [.froze]
    }

    private mutating func schedule() {
        guard let renewalDue else { return nextWakeUp = nil }
        guard case .acting(let until) = state else { return nextWakeUp = renewalDue }
        nextWakeUp = min(renewalDue, until)
    }
}
