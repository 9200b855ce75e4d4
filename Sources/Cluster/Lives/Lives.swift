/// Watches the lives of all nodes in the ledger: fences those whose leases have expired, and tells this node which have ended.
///
/// Suspicion costs nothing here. Nodes do not watch each other; each looks at the ledger every second, and sooner when a lease is
/// about to expire. The conditions for a fence are checked again by the ledger, so that it does not matter who tries, or how late.
///
/// The ledger's clock is a wall clock, so an operator may set it. If it is set forward, every lease looks expired. So this node relies on
/// a view only if it has watched the clock for ``Terms/settlingOfServer`` without a gap, and the clock ran as fast as its own.
public struct Lives: Sendable {
    /// What the shell has to do.
    public enum Effect: Hashable, Sendable {
        /// Call ``Ledger/look()``, and pass on the view with this number.
        case look(number: UInt64)
        /// Call ``Ledger/fence(_:heir:)`` with this node's life as heir.
        case fence(NodeTag)
        /// Call ``Ledger/fenceUnregistered(heir:)`` with this node's life as heir.
        case fenceUnregistered
        /// A life has ended, and its places are void. Sent again with another heir if the heir has ended too. The heir is answerable for
        /// what the life left behind, such as its open calls. Nil if nobody is: the ledger no longer has the life's row.
        case nodeLost(NodeTag, heir: NodeTag?)
    }

    /// What is known of a life.
    public enum Standing: Hashable, Sendable {
        /// It is not fenced, or was not when this node looked.
        case living
        /// It has ended, and its places are void.
        case ended
        /// Look again: it is fenced but may still act, or this node has not looked since it heard of it.
        case unclear
    }

    private struct Look: Sendable {
        let requested: Instant
        let answered: Instant
        let view: LedgerView
    }

    /// The time between looks.
    public static let interval = Duration.seconds(1)
    /// The time between looks if a lease is about to expire.
    private static let shortestInterval = Duration.milliseconds(10)
    /// After a longer time without a prompt answer, the comparison of the clocks begins again.
    private static let longestGap = Duration.seconds(3)
    /// An answer that takes longer says too little about the ledger's clock, so nothing is concluded from it.
    private static let longestAnswer = Duration.milliseconds(250)

    /// The life of this node.
    public let tag: NodeTag
    /// When the shell must call ``tick(at:)``. Nil while a look is open.
    public private(set) var nextWakeUp: Instant?
    private var last: Look?
    /// The last look that was answered promptly.
    private var compared: Look?
    /// Since when the ledger's clock has been watched without a gap or a step.
    private var steadySince: Instant?
    /// The lives whose end has been reported, with their heirs.
    private var reported: [NodeTag: NodeTag?] = [:]
    /// The look that is open.
    private var open: (number: UInt64, requested: Instant)?
    private var lastNumber: UInt64 = 0
    /// The lives that were seen unfenced, and whose end has not been reported.
    private var expected: Set<NodeTag> = []
    private let former: NodeTag?

    /// Begins to watch, from `now` on.
    ///
    /// - Parameter former: the life whose process has ended for certain, as in ``Ledger/begin(node:former:)``. Its places are void.
    public init(of tag: NodeTag, former: NodeTag? = nil, at now: Instant) {
        (self.tag, self.former, nextWakeUp) = (tag, former, now)
    }

    /// The last view, and when it was requested. Nil before the first.
    public var view: (view: LedgerView, requested: Instant)? { last.map { ($0.view, $0.requested) } }

    /// Whether this node relies on what the ledger's clock says.
    public func isSteady(at now: Instant) -> Bool {
        guard let steadySince else { return false }
        return now - steadySince >= Terms.settlingOfServer
    }

    /// Requests a look if it is time to.
    public mutating func tick(at now: Instant) -> [Effect] {
        guard let due = nextWakeUp, due <= now, open == nil else { return [] }
        lastNumber += 1
        (open, nextWakeUp) = ((lastNumber, now), nil)
        return [.look(number: lastNumber)]
    }

    /// Notes that a look failed: no answer came, or the ledger could not be reached.
    public mutating func lookFailed(_ number: UInt64, at now: Instant) {
        guard open?.number == number else { return }
        (open, nextWakeUp) = (nil, now + Self.interval)
    }

    /// Handles the answer to a look.
    ///
    /// - Parameter acting: whether this node's lease is valid. A frozen node fences nobody, because it could not be the heir.
    public mutating func looked(_ number: UInt64, _ view: LedgerView, acting: Bool, at now: Instant) -> [Effect] {
        guard let open, open.number == number else { return [] }
        self.open = nil
        let look = Look(requested: open.requested, answered: now, view: view)
        last = look
        nextWakeUp = max(now, min(open.requested + Self.interval, now + untilChange(view)))
        expected.formUnion(view.lives.filter(\.isUnfenced).map(\.tag))
        guard now - open.requested <= Self.longestAnswer else { return [] }
        watchClock(look)
        return isSteady(at: now) ? judge(view, acting: acting) : []
    }

    /// Whether every older life has ended, so that this one does what only one node may do. It stays so until this life is over, because
    /// later lives have larger numbers. False before the first look.
    public var isOldest: Bool {
        guard let view = last?.view else { return false }
        return view.lives.allSatisfy { $0.tag.life >= tag.life || $0.isVoid }
    }

    /// Returns what is known of a life.
    ///
    /// - Parameter heard: when this node last heard that the life existed, for example from its entry in Redis.
    public func standing(of life: NodeTag, heard: Instant) -> Standing {
        if reported[life] != nil || life == former { return .ended }
        guard let last else { return .unclear }
        if let row = last.view.lives.first(where: { $0.tag == life }) { return row.isUnfenced ? .living : .unclear }
        return last.requested >= heard ? .ended : .unclear
    }

    // MARK: Parts

    /// Compares the ledger's clock with this node's. 3 %, because the rates of both may be wrong by 1 % or a little more, and because the
    /// ways of both looks take an unknown part of the time.
    ///
    /// A clock that was set back counts as well: it may be that of another server, and have been set forward since.
    private mutating func watchClock(_ look: Look) {
        let earlier = compared
        compared = look
        guard let earlier, look.answered - earlier.requested <= Self.longestGap else {
            return steadySince = look.answered
        }
        let longest = (look.answered - earlier.requested) * 103 / 100
        let shortest = (look.requested - earlier.answered) * 97 / 100
        let passed = look.view.clock - earlier.view.clock
        if passed > longest || passed < shortest { steadySince = look.answered }
    }

    private mutating func judge(_ view: LedgerView, acting: Bool) -> [Effect] {
        var effects = reportEnds(view)
        guard acting else { return effects }
        if view.age >= Terms.settlingOfServer {
            for life in view.lives where life.tag != tag && life.isExpired { effects.append(.fence(life.tag)) }
        }
        if let epoch = view.epoch, view.epochAge > Terms.registrationTime, isRegistered(view, under: epoch),
            view.lives.contains(where: { $0.isUnfenced && !$0.isRegistered(under: epoch) })
        {
            effects.append(.fenceUnregistered)
        }
        return effects
    }

    private func isRegistered(_ view: LedgerView, under epoch: Epoch) -> Bool {
        view.lives.contains { $0.tag == tag && $0.epoch == epoch.number }
    }

    /// Reports which lives have ended, each once for each heir.
    private mutating func reportEnds(_ view: LedgerView) -> [Effect] {
        let rows = Dictionary(view.lives.map { ($0.tag, $0) }) { first, _ in first }
        var effects: [Effect] = []
        for life in view.lives where life.tag != tag && (life.isVoid || reported[life.tag] != nil) {
            let heir = Self.lastHeir(of: life, in: rows)
            if let known = reported[life.tag], known == heir { continue }
            reported[life.tag] = .some(heir)
            expected.remove(life.tag)
            effects.append(.nodeLost(life.tag, heir: heir))
        }
        for missing in expected.filter({ rows[$0] == nil }).sorted(by: { $0.life < $1.life }) {
            expected.remove(missing)
            if missing != tag { effects.append(.nodeLost(missing, heir: nil)) }
        }
        // Lives that are no longer in the view have ended, as standing(of:heard:) says.
        reported = reported.filter { rows[$0.key] != nil }
        return effects
    }

    /// Follows the heirs of heirs to one that has not ended. Nil if the ledger no longer has its row.
    private static func lastHeir(of life: LedgerView.Life, in rows: [NodeTag: LedgerView.Life]) -> NodeTag? {
        var life = life
        // An heir was not fenced when it became one, so there is no circle. The bound is for a ledger that is wrong.
        for _ in 0..<rows.count {
            guard case .fenced(let heir, _) = life.state else { return life.tag }
            guard let next = rows[heir] else { return nil }
            if !next.isVoid { return heir }
            life = next
        }
        return nil
    }

    /// The time until the next lease expires, or the next places become void.
    private func untilChange(_ view: LedgerView) -> Duration {
        let soonest = view.lives.compactMap { life -> Duration? in
            switch life.state {
            case .unfenced(let expiresIn): life.tag == tag || expiresIn <= .zero ? nil : expiresIn
            case .fenced(_, let voidIn): voidIn <= .zero ? nil : voidIn
            }
        }.min()
        guard let soonest else { return Self.interval }
        // This node's clock may be faster by 2 %.
        return max(Self.shortestInterval, soonest * 51 / 50 + .milliseconds(1))
    }
}

extension LedgerView.Life {
    /// Whether it may act if its lease is valid.
    public var isUnfenced: Bool {
        if case .unfenced = state { true } else { false }
    }

    /// Whether Redis has its places under this epoch, because they are entered there or because it has none.
    func isRegistered(under current: Epoch) -> Bool { epoch == nil || epoch == current.number }

    /// Whether its lease has expired, and it may be fenced.
    var isExpired: Bool {
        if case .unfenced(let expiresIn) = state { expiresIn < .zero } else { false }
    }

    /// Whether its places are void.
    var isVoid: Bool {
        if case .fenced(_, let voidIn) = state { voidIn <= .zero } else { false }
    }
}
