import Cluster
import TestSupport

/// Nodes, a ledger and Redis in simulated time, in bad weather. After each event it judges what must never be.
///
/// Times are microseconds. Each node, and the ledger, has a clock of its own.
struct ClusterModel {
    /// What happens, how often, and which rule is taken away.
    struct Plan {
        var nodes: UInt16 = 4
        /// Places that people want; zero for a cluster without Redis.
        var places = 0
        /// How many places with an origin people want in addition: one of each of the latest lives.
        var origins = 0
        /// The range of the clocks' rates, in millionths. Two clocks may differ by twice as much.
        var rate: Int64 = 10_000
        /// Whether all clocks of nodes are as slow as they may be, and the ledger's as fast.
        var hasOppositeRates = false
        /// How long a renewal is valid.
        var validity = Terms.leaseValidity
        var rules = LedgerModel.Rules()
        /// The mean time between two troubles.
        var calm: Int64 = 1_000_000
        /// The relative frequencies of troubles.
        var troubles: [(Trouble, Int)] = [(.pause, 6), (.cut, 5), (.kill, 1), (.failover, 2), (.clockStep, 1)]
        /// Whether places can be claimed as soon as no key is there: without rule 7.
        var claimsAtOnce = false
        /// Whether the ledger's next server has the same clock.
        var keepsClock = false
        /// Whether steps of the ledger's clock are hidden from the nodes.
        var hidesSteps = false
        /// The longest pause, cut, and time without a ledger.
        var longestPause: Int64 = 9_000_000
        var longestCut: Int64 = 12_000_000
        /// The longest cut from the ledger, if it is another one.
        var longestLedgerCut: Int64?
        var longestOutage: Int64 = 15_000_000
        /// The most that a failover loses: a second by a clock that is 2 % faster.
        var longestLoss: Int64 = 980_000
    }

    enum Trouble { case pause, cut, kill, failover, clockStep, redisCut, redisForgets }

    enum Event {
        case wake(Int, life: Int)
        case trouble
        case atLedger(Int, life: Int, LedgerCall)
        case fromLedger(Int, life: Int, LedgerAnswer)
        case lookTimeout(Int, life: Int, number: UInt64)
        case begin(Int)
        case people(Int)
        case atRedis(Int, connection: Int, store: Int, PlaceCommand, number: UInt64)
        case fromRedis(Int, connection: Int, number: UInt64, PlaceReply)
        case redisTimeout(Int, connection: Int, number: UInt64)
        case connect(Int)
        case letter(Int, PlaceKey)
    }

    enum LedgerCall {
        case begin
        case renew(UInt64)
        case look(UInt64)
        case fence(NodeTag)
        case fenceUnregistered
        case beginEpoch(String)
        case note(Epoch)
    }

    enum LedgerAnswer {
        case began(Beginning)
        case renewed(UInt64, Renewal)
        case looked(UInt64, LedgerView)
        case noted(Epoch, Bool)
    }

    struct Node {
        var clock = ModelClock()
        var machine: Machines?
        var former: NodeTag?
        /// Counts lives and kills. Events of an earlier one are dropped.
        var life = 0
        var pausedUntil: Int64 = 0
        var cutUntil: Int64 = 0
        var redisCutUntil: Int64 = 0
        /// Counts connections to Redis. Nil while there is none.
        var connection: Int?
        var lastConnection = 0
        /// The Redis that this node sees.
        var store = 0
        /// When the last command of the connection arrives, so that they keep their order.
        var lastArrival: Int64 = 0
        var wakesAt: Int64?
    }

    /// The machines of one life.
    struct Machines {
        var lease: Lease
        var lives: Lives
        var registry: PlaceRegistry
        var tag: NodeTag { lease.tag }
    }

    /// What was counted.
    struct Figures: CustomStringConvertible {
        var events = 0
        /// Simulated seconds.
        var seconds: Int64 = 0
        var acts = 0
        var fences = 0
        var lives = 0
        var failovers = 0
        var claims = 0
        /// Claims of places whose origin has ended.
        var inherited = 0
        var epochs = 0
        /// Moments at which a life acted that was fenced, or whose end had been reported to others.
        var overlaps = 0
        /// Moments at which two nodes that acted had one place. One of them may have it as its origin.
        var twoOwners = 0
        var description: String {
            "\(events) events in \(seconds) s, \(lives) lives, \(acts) acts, \(fences) fences, \(failovers) failovers, \(claims) claims, "
                + "\(epochs) epochs, \(overlaps) overlaps, \(twoOwners) moments with two owners"
        }
    }

    let plan: Plan
    var random: SeededGenerator
    var queue = EventQueue<Event>()
    var now: Int64 = 0
    var nodes: [Node] = []
    var ledger = LedgerModel()
    var ledgerBackAt: Int64 = 0
    var redis: [PlaceStore] = [PlaceStore()]
    /// Whether troubles still happen.
    var isCalm = false
    /// The lives whose end was reported to a node.
    var reported: Set<NodeTag> = []
    /// A place of each life that has claimed another one.
    var origins: [PlaceKey] = []
    var figures = Figures()

    init(_ plan: Plan, seed: UInt64) {
        (self.plan, random) = (plan, SeededGenerator(seed: seed))
        ledger.rules = plan.rules
        ledger.clock = ModelClock(offset: anHour(), rate: plan.hasOppositeRates ? plan.rate : rate())
        for index in 0..<Int(plan.nodes) {
            let clock = ModelClock(offset: anHour(), rate: plan.hasOppositeRates ? -plan.rate : rate())
            nodes.append(Node(clock: clock))
            queue.add(.begin(index), at: Int64(index) * 1000)
            guard plan.places > 0 else { continue }
            queue.add(.connect(index), at: 100_000)
            queue.add(.people(index), at: 1_000_000)
        }
        queue.add(.trouble, at: 8_000_000)
    }

    var places: [PlaceKey] { (0..<plan.places).map { PlaceKey(.room, "\($0)") } + origins.suffix(plan.origins) }

    // MARK: Running

    /// Handles this many events, or fewer if `isEnough` says so.
    mutating func run(events: Int, until isEnough: (Figures) -> Bool = { _ in false }) {
        for _ in 0..<events {
            guard let (time, event) = queue.next() else { return }
            now = max(now, time)
            figures.events += 1
            figures.seconds = now / 1_000_000
            handle(event)
            judge()
            if isEnough(figures) { return }
        }
    }

    /// Runs for this many microseconds, but not for more than a million events.
    mutating func run(for duration: Int64) {
        let end = now + duration
        for _ in 0..<1_000_000 where now < end { run(events: 1) }
    }

    /// Ends all troubles.
    mutating func calmDown() {
        isCalm = true
        ledgerBackAt = now
        for index in nodes.indices {
            (nodes[index].pausedUntil, nodes[index].cutUntil, nodes[index].redisCutUntil) = (now, now, now)
            if plan.places > 0 { queue.add(.connect(index), at: now) }
        }
    }

    // MARK: Judging

    func acts(_ index: Int) -> Bool {
        let node = nodes[index]
        return now >= node.pausedUntil && node.machine?.lease.acts(at: local(index)) ?? false
    }

    private mutating func judge() {
        var owners: [PlaceKey: Int] = [:]
        var acting: Set<NodeTag> = []
        for index in nodes.indices where acts(index) {
            guard let machine = nodes[index].machine else { continue }
            figures.acts += 1
            acting.insert(machine.tag)
            let row = ledger.row(of: machine.tag)
            let isOver = row.map { $0.isFenced && !$0.isUnregistered } ?? true
            if isOver || reported.contains(machine.tag) { figures.overlaps += 1 }
            for key in machine.registry.held.keys { owners[key, default: 0] += 1 }
        }
        let isShared = owners.contains { owner in
            owner.value > 1 || owner.key.origin.map { acting.contains($0) } ?? false
        }
        if isShared { figures.twoOwners += 1 }
        figures.fences = ledger.fences
    }

    // MARK: Parts

    func local(_ index: Int) -> Instant { Instant(.microseconds(nodes[index].clock.reading(at: now))) }

    mutating func upTo(_ limit: Int64) -> Int64 { Int64.random(in: 0...limit, using: &random) }
    mutating func anHour() -> Int64 { Int64.random(in: -3_600_000_000...3_600_000_000, using: &random) }
    mutating func rate() -> Int64 { Int64.random(in: -plan.rate...plan.rate, using: &random) }

    /// How long a message takes: mostly little, sometimes seconds.
    mutating func delay() -> Int64 {
        upTo(199) == 0 ? upTo(3_000_000) : 100 + upTo(4_000)
    }
}

extension Duration {
    /// In microseconds, rounded down.
    var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}
