import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// A node of a simulated cluster.
final class ClusterNode {
    let number: UInt16
    var tag: NodeTag
    var stage: Stage
    /// When the node was killed; nil while it lives.
    var deadSince: Timestamp?
    /// What an operator has requested: `serving`, `draining` or `drained`.
    var condition = NodeCondition.serving

    var isDraining: Bool { condition != .serving }
    var isLive: Bool { deadSince == nil }
    var name: String { tag.nodeName }

    init(_ tag: NodeTag, _ stage: Stage) { (number, self.tag, self.stage) = (tag.node, tag, stage) }
}

/// Several hubs with one clock, one storage and one registry of places, and clients that follow redirects. The seed determines
/// everything in a run.
final class ClusterWorld {
    /// How long a killed node's places stay valid: the lease and a look.
    static let fence: Duration = .milliseconds(3500)

    let seed: UInt64
    var random: SeededGenerator
    let shelf = Shelf()
    private(set) var nodes: [ClusterNode] = []
    var registry: SimulatedRegistry
    var post: SimulatedPost
    private(set) var clients: [ClusterClient] = []
    private(set) var now = Timestamp(milliseconds: 1_790_000_000_000)
    private var lastLife: UInt32 = 0
    private let adjust: (inout Rules) -> Void
    /// Runs after each step, with everything that it caused.
    var judge: () -> Void = {}
    /// The number of random events so far, and how often each kind happened.
    var events = 0
    private(set) var figures: [String: Int] = [:]
    /// The latest sessions of rooms, chats and calls, also of those that are over.
    var latestSessions: [SessionID] = []
    private(set) var fault: String?

    /// Whether media can cross between all nodes, so that rooms, chats and calls span them.
    let spans: Bool
    /// Whether clients accept most of the calls that ring.
    var answersCalls = false

    init(
        nodes count: Int, seed: UInt64 = 1, spans: Bool = false, _ adjust: @escaping (inout Rules) -> Void = { _ in }
    ) {
        (self.seed, self.spans, self.adjust) = (seed, spans, adjust)
        random = SeededGenerator(seed: seed)
        registry = SimulatedRegistry(seed: seed &+ 1)
        post = SimulatedPost(seed: seed &+ 2)
        for number in 1...count {
            let tag = nextTag(UInt16(number))
            nodes.append(ClusterNode(tag, makeStage(tag)))
        }
        connectMedia()
    }

    /// Lets all nodes know to which others media can cross.
    private func connectMedia() {
        guard spans else { return }
        let tags = Set(live.map(\.tag))
        for node in live { node.stage.handle(.mediaCrosses(to: tags.subtracting([node.tag]))) }
    }

    private func nextTag(_ number: UInt16) -> NodeTag {
        lastLife += 1
        return NodeTag(node: number, life: lastLife)!
    }

    private func makeStage(_ tag: NodeTag) -> Stage {
        let stage = Stage(seed: random.next(), tag: tag, shelf: shelf, adjust)
        stage.pass(now - stage.now)
        stage.carryOutPlace = { [unowned self] in carryOut($0, of: tag) }
        post.begin(tag, now: now)
        return stage
    }

    private func carryOut(_ effect: Effect, of tag: NodeTag) {
        guard case .post(let receiver, let letter) = effect else {
            return registry.carryOut(effect, of: tag, now: now)
        }
        arrived += post.post(letter, from: tag, to: receiver, now: now)
    }

    /// What has arrived at nodes while another one was handling something.
    private var arrived: [(NodeTag, Input)] = []

    subscript(name: String) -> ClusterNode? { nodes.first { $0.name == name } }
    var live: [ClusterNode] { nodes.filter(\.isLive) }
    /// The nodes to which the balancer sends new sockets.
    var ready: [ClusterNode] { nodes.filter { $0.isLive && !$0.isDraining } }

    func count(_ what: String) { figures[what, default: 0] += 1 }
    func fail(_ text: String) { if fault == nil { fault = text } }

    // MARK: Clients

    /// A client connects: to the node with this number, or to any.
    @discardableResult func arrive(_ identity: IdentityID? = nil, at number: Int? = nil) -> ClusterClient {
        let client = ClusterClient(in: self, as: identity ?? .random(using: &random))
        clients.append(client)
        client.connect(to: number.map { nodes[$0 - 1] })
        settle()
        return client
    }

    func forget(_ client: ClusterClient) { clients.removeAll { $0 === client } }

    // MARK: Time

    /// Passes time. Everything happens at the time when it is due.
    func pass(_ duration: Duration) {
        let end = now + duration
        while let next = nextDue, next <= end {
            advance(to: max(now, next))
            settle()
        }
        advance(to: end)
        settle()
    }

    private var nextDue: Timestamp? {
        let times =
            [registry.nextDue, post.nextDue, draining.isEmpty ? nil : lastDrain + .seconds(1)]
            + clients.map(\.connectAt)
            + live.map(\.stage.hub.nextTimeout)
            + nodes.map { $0.deadSince.map { $0 + Self.fence } }
        return times.compactMap(\.self).min()
    }

    private func advance(to time: Timestamp) {
        now = time
        for node in live { node.stage.pass(time - node.stage.now) }
        for node in nodes where node.deadSince.map({ $0 + Self.fence <= time }) ?? false { fence(node) }
        if lastDrain + .seconds(1) <= time {
            lastDrain = time
            for node in draining { node.stage.handle(.service(node.condition)) }
        }
        for client in clients { client.connectIfDue() }
    }

    private var draining: [ClusterNode] { nodes.filter { $0.isLive && $0.isDraining } }
    private var lastDrain = Timestamp(milliseconds: 0)

    /// Performs everything that is due now, until nothing is left.
    func settle() {
        var isBusy = true
        while isBusy {
            isBusy = false
            while let next = registry.nextDue, next <= now {
                isBusy = true
                guard let (tag, input) = registry.takeDue(now, stored: stored) else { continue }
                live.first { $0.tag == tag }?.stage.handle(input)
            }
            if settlePost() { isBusy = true }
            for client in clients where client.read() { isBusy = true }
        }
        judge()
    }

    /// Lets letters arrive that are due. Returns whether any did.
    private func settlePost() -> Bool {
        if let next = post.nextDue, next <= now { arrived += post.takeDue(now) }
        guard !arrived.isEmpty else { return false }
        let inputs = arrived
        arrived = []
        for (tag, input) in inputs { live.first { $0.tag == tag }?.stage.handle(input) }
        return true
    }

    private func stored(_ machine: PlacedMachine) -> StoredState {
        switch machine {
        case .person(let identity): .person(shelf.archive.record(of: identity))
        case .room(let name):
            shelf.archive.rooms.values.first { $0.name == name }.map { .room($0) } ?? .nothing
        case .session, .hall, .directory, .deviceCodes: .nothing
        }
    }

    /// How long two strangers have been waiting on different nodes by now.
    func bothWaiting(_ isCounted: (ClusterClient) -> Bool = { _ in true }) -> Duration {
        var since: [UInt16: Timestamp] = [:]
        for client in clients where isCounted(client) {
            guard let node = client.node, let waiting = client.waitingSince else { continue }
            since[node.number] = min(waiting, since[node.number] ?? waiting)
        }
        guard since.count > 1, let later = since.values.sorted().dropFirst().first else { return .zero }
        return now - later
    }

    // MARK: Nodes

    /// Begins to stop a node, as the server does: again each second until nothing is left.
    ///
    /// - Parameter condition: `drained` after the server has disconnected everyone.
    func drain(_ node: ClusterNode, to condition: NodeCondition = .draining) {
        node.condition = condition
        node.stage.handle(.service(condition))
        settle()
    }

    /// Kills a node: its sockets break, and its places stay until the fence.
    func kill(_ node: ClusterNode) {
        guard node.isLive else { return }
        node.deadSince = now
        node.condition = .serving
        registry.forget(node.tag)
        post.forget(node.tag)
        for client in clients where client.node === node { client.lostNode() }
        settle()
    }

    /// Starts a killed node again. It ends its former life at once.
    func restart(_ node: ClusterNode) {
        guard !node.isLive else { return }
        fence(node)
        node.tag = nextTag(node.number)
        node.stage = makeStage(node.tag)
        node.deadSince = nil
        connectMedia()
        settle()
    }

    /// Lets the heir of a dead node continue its calls.
    private func restoreCalls(of dead: NodeTag, on heir: ClusterNode) {
        let calls = shelf.archive.openCalls.values.filter { shelf.archive.callHomes[$0.id] == dead }
        for call in calls.sorted(by: { $0.id < $1.id }) {
            shelf.archive.callHomes[call.id] = heir.tag
            let archive = shelf.archive
            heir.stage.handle(
                .restored(call, caller: archive.record(of: call.caller), callee: archive.record(of: call.callee)))
        }
    }

    private var fenced: Set<NodeTag> = []

    /// The node that continues the calls of the next node that dies; nil for any.
    var heir: ClusterNode?

    private func fence(_ node: ClusterNode) {
        guard fenced.insert(node.tag).inserted else { return }
        registry.fence(node.tag)
        post.fence(node.tag)
        // The fence is now in the past.
        node.deadSince = Timestamp(milliseconds: Int64.max / 2)
        guard let heir = heir ?? live.randomElement(using: &random) else { return }
        for other in live { other.stage.handle(.nodeLost(node.tag, heir: heir.tag)) }
        connectMedia()
        restoreCalls(of: node.tag, on: heir)
    }
}
