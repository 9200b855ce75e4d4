import Cluster
import Logging
import NIOCore
import Signaling
import Wire

/// The table of places in Redis, as this node sees it. Used on the event loop of the gateway.
protocol PlaceTable: AnyObject {
    /// Sets the function that is called when the connection is made, with what identifies that Redis's memory, and with nil when
    /// it is lost.
    func observe(_ report: @escaping (_ store: String?) -> Void)
    /// Carries out a command. `completion` is called once, on the event loop, with nil if the command failed.
    func send(_ command: PlaceCommand, completion: @escaping (PlaceReply?) -> Void)
    /// Makes Redis refuse claims and registrations of a fenced life.
    func announceDeath(of life: NodeTag)
    /// Stores this node's sealed record. It is kept for some seconds.
    func publish(_ sealed: [UInt8])
    /// Reads the sealed records of these lives, as far as they exist. `completion` is called once, on the event loop, with nil if
    /// Redis did not answer.
    func records(of tags: [NodeTag], completion: @escaping ([NodeTag: [UInt8]]?) -> Void)
}

/// This server as a node of a cluster: carries out what its lease, the lives of all nodes and the places require.
///
/// It contains no rules. ``Lease`` decides whether this node may act, ``Lives`` which nodes have ended, and the registry of places which
/// state machines may exist here. This passes their effects on to the ledger (PostgreSQL), to the table of places (Redis) and to
/// the runner, and the answers back. It is used on the event loop of the gateway.
final class ClusterNode: MachinePlaces {
    /// What the node needs of storage. Each throws if storage cannot do it.
    struct Reading: Sendable {
        /// Reads what is kept for a state machine whose place was claimed.
        var state: @Sendable (PlacedMachine) async throws -> StoredState
        /// Takes over the calls of a life that is over, and returns the inputs that restore them.
        var calls: @Sendable (_ life: UInt32) async throws -> [Input]
        /// Reports to webhooks that the connections of a life that is over have ended.
        var endSessions: @Sendable (_ life: NodeTag) async throws -> Void
    }

    /// A question about a place that is not answered yet.
    private struct Asked {
        var machine: PlacedMachine
        var since: Cluster.Instant
        /// Whether another node may create the machine, if it is nowhere: this node is busy.
        var mayChoose = false
    }

    /// How long a question about a place may wait. After that, its clients get `cluster_unavailable`.
    static let longestWait = Duration.seconds(5)
    private static let sentAwayFor = Duration.seconds(30)
    /// How long a node that is cut off from its clients does not renew its lease. Others fence it after about 3.5 s.
    private static let abandonment = Duration.seconds(8)
    /// Older records of other nodes say nothing about whom the load balancer asks now.
    static let freshRecords = Duration.seconds(3)
    /// With more, this node creates everything itself. Clients choose the names of rooms.
    private static let maxSentAway = 1000

    let tag: NodeTag
    let ledger: any Ledger
    let table: any PlaceTable
    private let reading: Reading
    private let eventLoop: any EventLoop
    let logger: Logger
    let clock: () -> Cluster.Instant
    private let former: NodeTag?
    private weak var runner: HubRunner?
    private(set) var lease: Lease
    private(set) var lives: Lives
    private(set) var registry: PlaceRegistry
    private(set) var frozen = FrozenTime()
    private var serviceRequests = ServiceRequests()
    /// The questions that are not answered yet, and since when they wait.
    private var asked: [PlaceKey: Asked] = [:]
    /// What other nodes were chosen for, and until when this node does not choose again. Who comes back after being sent away gets
    /// it here, so nobody is sent to and fro.
    private var sentAway: [PlaceKey: Cluster.Instant] = [:]
    /// Calls that were read from storage, and whose people's places cannot be claimed yet.
    private var restored: [Input] = []
    /// Which secrets count. Nil if this node exchanges nothing with the others.
    var secrets: SecretReview?
    /// What this node publishes, and what the others have published. Nil if this node publishes nothing.
    var records: NodeRecords?
    /// When the records of the others were read last; nil if never.
    var recordsReadAt: Cluster.Instant?
    /// Describes this node now, except for what only this class knows.
    let describe: () -> NodeRecord
    let metrics = ClusterMetrics()
    /// Posts letters to the other nodes, and receives theirs. Nil if this node posts none.
    var post: RedisPost?
    /// The relays to the other nodes, over which media crosses. Nil if this node opens none.
    var relays: ClusterRelays?
    /// Whether people can reach this node, and the signs of it.
    var door: DoorWatch?
    var doorTraffic: () -> DoorTraffic = { DoorTraffic() }
    /// Until when this node does not renew its lease, so that another one ends its life and continues its calls.
    private var abandonedUntil: Cluster.Instant?
    /// What the hub knows about the other nodes.
    var othersCounted = ClientCounts()
    /// What this node published last.
    var own: NodeRecord?
    private var timer: Scheduled<Void>?
    private var hasStopped = false
    /// Whether the last question to PostgreSQL was answered.
    private var isAnswered = true
    /// What an operator has requested of this node.
    var requestedCondition: () -> NodeCondition = { .serving }
    /// Takes this node out of service, or puts it back, because an operator has requested that through another node.
    var changeService: (NodeRecord.State) -> Void = { _ in }
    private var wasDraining = false
    /// When this node delivers webhooks.
    var turn: WebhookTurn?
    /// Called when this node may act for the first time.
    var onFirstAct: () -> Void = {}
    private var hasActed = false
    /// Reads this machine's wall clock: the time since 1970.
    var wall: () -> Duration = { .zero }
    private var clockCheck = ClockCheck()
    /// Called once, when this life is over. The server drops everything, and begins another life.
    var onFenced: (NodeTag?) -> Void = { _ in }

    /// - Parameters:
    ///   - tag: the life that the ledger has begun.
    ///   - former: the life that this server's data directory had before; see ``Ledger/begin(node:former:)``.
    ///   - describe: describes this node at the moment. It need not know the cluster.
    ///   - clock: a monotonic clock that also counts the time in which the machine sleeps.
    init(
        tag: NodeTag, former: NodeTag?, ledger: any Ledger, table: any PlaceTable, runner: HubRunner,
        reading: Reading, describe: @escaping () -> NodeRecord, eventLoop: any EventLoop, logger: Logger,
        clock: @escaping () -> Cluster.Instant
    ) {
        let now = clock()
        (self.tag, self.ledger, self.table, self.reading) = (tag, ledger, table, reading)
        self.describe = describe
        (self.runner, self.eventLoop, self.logger, self.clock) = (runner, eventLoop, logger, clock)
        self.former = former
        lease = Lease(of: tag, begun: now)
        lives = Lives(of: tag, former: former, at: now)
        registry = PlaceRegistry(of: tag)
    }

    /// Begins to renew the lease, to watch the other lives, and to claim places.
    func start() {
        eventLoop.preconditionInEventLoop()
        runner?.mayAct = { [weak self] in self?.acts ?? false }
        runner?.places = self
        connectPost()
        table.observe { [weak self] store in
            self?.handle(store.map { .connected(store: $0) } ?? .disconnected)
        }
        // Calls of a server that was alone have no life.
        restoreCalls(of: 0)
        if let former { takeOver(former) }
        advance()
    }

    /// Stops all timers. The lease runs out by itself.
    func stop() {
        hasStopped = true
        timer?.cancel()
        post?.stop()
        relays?.stop()
    }

    /// Lets letters of the other nodes be inputs for the rules, and the other way around.
    private func connectPost() {
        guard let post else { return }
        runner?.post = post
        runner?.relays = relays
        post.standing = { [weak self] life, heard in self?.lives.standing(of: life, heard: heard) ?? .unclear }
        post.receive = { [weak self] items, handled, carriedOut in
            self?.runner?.submit(received: items, handled: handled, carriedOut: carriedOut)
        }
        post.relieved = { [weak self] in self?.runner?.resumeReaders() }
        post.stored = { [metrics] in metrics.recordPost($0) }
    }

    /// Whether the rules may act now.
    var acts: Bool { !hasStopped && lease.acts(at: clock()) }

    /// Why a load balancer should send no new clients here.
    var holds: Set<Readiness.Hold> { !acts ? [.frozen] : registry.hasRegistered ? [] : [.registering] }

    // MARK: Time

    private func advance() {
        guard !hasStopped else { return }
        let now = clock()
        for effect in lease.tick(at: now) { carryOut(effect) }
        for effect in lives.tick(at: now) { carryOut(effect) }
        expireQuestions(at: now)
        drain()
        schedule()
    }

    /// Passes what an operator has requested to the rules, repeatedly while this node is out of service, so that they send idle clients
    /// to other nodes.
    private func drain() {
        guard acts else { return }
        let condition = requestedCondition()
        if condition != .serving || wasDraining { runner?.submit(.service(condition)) }
        wasDraining = condition != .serving
    }

    private func schedule() {
        timer?.cancel()
        guard !hasStopped, let next = [lease.nextWakeUp, lives.nextWakeUp].compactMap(\.self).min() else { return }
        let node = NIOLoopBound(self, eventLoop: eventLoop)
        // Never earlier than the wake-up, so that it is due then.
        let delay = max(.zero, next - clock()) + .milliseconds(1)
        timer = eventLoop.scheduleTask(in: TimeAmount(delay)) { node.value.advance() }
    }

    // MARK: The lease

    private func carryOut(_ effect: Lease.Effect) {
        switch effect {
        case .renew(let number): renew(number)
        case .froze:
            logger.warning("This node waits: PostgreSQL does not renew its lease. Media continues.")
            frozen.froze(at: clock())
            _ = runner?.freezesUnlessAllowed()
        case .thawed:
            logger.info("This node acts: its lease is valid.")
            frozen.thawed(at: clock())
            if !hasActed { onFirstAct() }
            hasActed = true
            runner?.thaw()
        case .fenced(let heir):
            logger.error(
                "This node's life was ended\(heir.map { " by node \($0.node)" } ?? ""). It begins another one.")
            stop()
            onFenced(heir)
        }
    }

    private func renew(_ number: UInt64) {
        reviewSecrets()
        publish()
        abandonIfCutOff()
        if isAbandoning { return lease.failed(number) }
        ask { [ledger, tag] in
            try await ledger.renew(tag)
        } then: { node, renewal in
            guard let renewal else { return node.lease.failed(number) }
            for effect in node.lease.answered(number, renewal, at: node.clock()) { node.carryOut(effect) }
            node.noteTurn()
        }
    }

    /// Whether this node lets its lease expire, because clients do not reach it.
    var isAbandoning: Bool { abandonedUntil.map { clock() < $0 } ?? false }

    /// Stops to renew the lease for a while if clients cannot reach the node. Their rooms, chats and calls then continue on the nodes
    /// that fence this one. If none does, this node renews, and tries again while it is cut off.
    private func abandonIfCutOff() {
        guard !isAbandoning, acts, isCutOff else { return }
        logger.error(
            """
            The load balancer and clients no longer reach this node, but they reach other nodes. Its life ends, so that people can \
            continue there. Check the network between this machine and the load balancer.
            """)
        abandonedUntil = clock() + Self.abandonment
    }

    /// Says for how long this node may do what only one of all nodes may do.
    private func noteTurn() {
        guard lives.isOldest, case .acting(let until) = lease.state else { return turn?.last(.zero) ?? () }
        turn?.last(until - clock())
    }

    // MARK: The lives

    private func carryOut(_ effect: Lives.Effect) {
        switch effect {
        case .look(let number): look(number)
        case .fence(let life):
            logger.notice("Node \(life.node) has not renewed its lease, and is fenced.")
            ask { [ledger, tag] in
                try await ledger.fence(life, heir: tag)
            } then: { _, _ in
            }
        case .fenceUnregistered:
            ask { [ledger, tag] in
                try await ledger.fenceUnregistered(heir: tag)
            } then: { _, _ in
            }
        case .nodeLost(let life, let heir):
            logger.notice("The life of node \(life.node) is over.")
            table.announceDeath(of: life)
            post?.ended(life)
            relays?.ended(life)
            runner?.submit(.nodeLost(life, heir: heir ?? tag))
            if heir == tag { takeOver(life) }
        }
    }

    /// Does what a life that is over has left to do.
    private func takeOver(_ life: NodeTag) {
        restoreCalls(of: life.life)
        endSessions(of: life)
    }

    private func endSessions(of life: NodeTag) {
        ask { [reading] in
            try await reading.endSessions(life)
        } then: { node, done in
            if done == nil { node.later { $0.endSessions(of: life) } }
        }
    }

    /// Tries again in a second.
    private func later(_ body: @escaping @Sendable (ClusterNode) -> Void) {
        let node = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(in: .seconds(1)) {
            if !node.value.hasStopped { body(node.value) }
        }
    }

    /// Continues the calls of a life that is over. Their people must join again.
    private func restoreCalls(of life: UInt32) {
        ask { [reading] in
            try await reading.calls(life)
        } then: { node, inputs in
            guard let inputs else {
                node.logger.warning(
                    "The calls of an earlier life could not be read. Trying again.", metadata: ["life": "\(life)"])
                return node.later { $0.restoreCalls(of: life) }
            }
            node.restored += inputs
            node.continueCalls()
        }
    }

    /// Continues the calls that wait. A person's place must be claimed soon after that, or the call would be dropped.
    private func continueCalls() {
        let now = clock()
        guard !restored.isEmpty, registry.admitsClaims(lives: lives, acting: lease.acts(at: now), at: now) else {
            return
        }
        let inputs = restored
        restored = []
        for input in inputs { submit(input) }
    }

    private func look(_ number: UInt64) {
        let asked = clock()
        ask { [ledger] in
            try await ledger.look()
        } then: { node, view in
            let now = node.clock()
            guard let view else { return node.lives.lookFailed(number, at: now) }
            node.compareClocks(view, waited: now - asked)
            for effect in node.lives.looked(number, view, acting: node.lease.acts(at: now), at: now) {
                node.carryOut(effect)
            }
            node.carryOutRequest(view)
            node.handle(.looked)
            node.post?.looked()
            node.post?.measureStream()
            node.readRecords()
        }
    }

    /// Carries out what an operator has requested of this node through another one.
    private func carryOutRequest(_ view: LedgerView) {
        for effect in serviceRequests.looked(view.lives.first { $0.tag == tag }?.requested) {
            switch effect {
            case .change(let state): changeService(state)
            case .note(let state):
                ask { [ledger, tag] in
                    try await ledger.noteCarriedOut(state, by: tag)
                } then: { _, _ in
                }
            }
        }
    }

    private func compareClocks(_ view: LedgerView, waited: Duration) {
        let difference = ClockCheck.difference(ledger: view.clock, wall: wall(), waited: waited)
        switch clockCheck.note(difference) {
        case .differs(let difference)?:
            logger.warning(
                "This machine's clock differs from that of PostgreSQL. Set both with NTP: times in tokens and calls depend on it.",
                metadata: ["aheadByMs": "\(difference.wholeMilliseconds)"])
        case .agrees?: logger.notice("This machine's clock agrees with that of PostgreSQL again.")
        case nil: break
        }
    }

    // MARK: Places

    func reach(_ key: PlaceKey, _ machine: PlacedMachine, claims: Bool) {
        let mayChoose = claims && registry.held[key] == nil && sentAway[key] == nil && choice(for: machine) != nil
        let pending = asked[key]
        asked[key] = Asked(
            machine: machine, since: pending?.since ?? clock(),
            mayChoose: mayChoose || (!claims && pending?.mayChoose == true))
        // A place that exists somewhere is not chosen again.
        handle(claims && !mayChoose ? .claim(key) : .find(key))
    }

    func release(_ key: PlaceKey) {
        asked[key] = nil
        handle(.release(key))
    }

    private func handle(_ input: PlaceRegistry.Input) {
        let now = clock()
        for effect in registry.handle(input, lives: lives, acting: lease.acts(at: now), at: now) { carryOut(effect) }
        continueCalls()
    }

    private func carryOut(_ effect: PlaceRegistry.Effect) {
        switch effect {
        case .send(let command, let number):
            table.send(command) { [weak self] reply in
                self?.handle(reply.map { .replied(number, $0) } ?? .failed(number))
            }
        case .beginEpoch(let store):
            ask { [ledger, tag] in
                try await ledger.beginEpoch(of: store, by: tag)
            } then: { _, _ in
            }
        case .note(let epoch):
            ask { [ledger, tag] in
                try await ledger.register(tag, under: epoch)
            } then: { node, isNoted in
                node.handle(.noted(epoch, isNoted ?? false))
            }
        case .answer(let key, let answer): answered(key, answer)
        case .lost(let key, _): submit(.lostPlace(key))
        }
    }

    private func answered(_ key: PlaceKey, _ answer: PlaceRegistry.Answer) {
        guard let question = asked.removeValue(forKey: key) else { return }
        let machine = question.machine
        switch answer {
        case .claimed: read(key, machine)
        case .at(let holder): submit(.placed(key, at: holder))
        case .nowhere:
            guard question.mayChoose else { return submit(.unplaced(key)) }
            if sentAway.count < Self.maxSentAway, let other = choice(for: machine) {
                sentAway[key] = clock() + Self.sentAwayFor
                return submit(.placed(key, at: other))
            }
            asked[key] = Asked(machine: machine, since: question.since)
            handle(.claim(key))
        case .refused: submit(.placesUnavailable(key))
        }
    }

    /// Reads what storage has for a machine whose place is this node's.
    private func read(_ key: PlaceKey, _ machine: PlacedMachine) {
        let start = runner?.lookupStart ?? LookupStart()
        ask { [reading] in
            try await reading.state(machine)
        } then: { node, stored in
            // While storage was read, another node may have got the place of a Redis that had forgotten this one.
            guard let stored, node.registry.held[key] != nil else {
                node.handle(.release(key))
                node.submit(.placesUnavailable(key))
                return
            }
            node.execute { $0.runner?.submit(claimOf: key, machine, stored, lookupStart: start) }
        }
    }

    /// Gives up the questions that have waited too long: Redis cannot be reached, or the cluster is changing.
    private func expireQuestions(at now: Cluster.Instant) {
        sentAway = sentAway.filter { $0.value > now }
        for (key, question) in asked where now - question.since > Self.longestWait {
            asked[key] = nil
            handle(.release(key))
            submit(.placesUnavailable(key))
        }
    }

    /// Submits an input later in this turn of the event loop, because the runner may be calling.
    func submit(_ input: Input) { execute { $0.runner?.submit(input) } }

    private func execute(_ body: @escaping @Sendable (ClusterNode) -> Void) {
        NIOLoopBound(self, eventLoop: eventLoop).execute(body)
    }

    // MARK: Waiting for answers

    /// Logs the first of several errors in a row.
    private func note<Answer>(_ result: Result<Answer, any Error>) {
        switch result {
        case .success: isAnswered = true
        case .failure(let error):
            if isAnswered { logger.warning("PostgreSQL did not answer this node: \(error)") }
            isAnswered = false
        }
    }

    /// Asks the ledger or storage, and handles the answer on the event loop; nil if there is none.
    private func ask<Answer: Sendable>(
        _ question: @escaping @Sendable () async throws -> Answer,
        then handle: @escaping (ClusterNode, Answer?) -> Void
    ) {
        let node = NIOLoopBound(self, eventLoop: eventLoop)
        let handle = NIOLoopBound(handle, eventLoop: eventLoop)
        Task {
            let result: Result<Answer, any Error>
            do {
                result = .success(try await question())
            } catch {
                result = .failure(error)
            }
            node.eventLoop.execute {
                guard !node.value.hasStopped else { return }
                node.value.note(result)
                handle.value(node.value, try? result.get())
                node.value.schedule()
            }
        }
    }
}
