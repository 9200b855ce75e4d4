import Cluster
import Logging
import Signaling
import Wire

// What this node and the others publish about themselves, and the choice of a node.

extension ClusterNode {
    /// Uses the secrets of a project file that has changed.
    func use(_ project: ProjectFile) { use(secrets?.use(project, at: wallNow)) }

    /// Stops using a secret from before a rotation when its time is over. Called with each renewal.
    func reviewSecrets() { use(secrets?.review(at: wallNow)) }

    private var wallNow: Timestamp { Timestamp(milliseconds: wall().wholeMilliseconds) }

    private func use(_ secrets: SealingSecrets?) {
        guard let secrets else { return }
        records?.use(NodeRecordSeal(secrets))
        post?.use(secrets)
    }

    /// This node's record at the moment.
    var currentRecord: NodeRecord {
        var record = describe()
        record.places = registry.held.count
        record.checkedMsAgo = door?.sinceCheck(at: clock()).map { Int($0.wholeMilliseconds) }
        guard let condition = heldBack else { return record }
        // Until this node can create something, nobody should be sent here.
        record.state = .draining
        if record.condition != NodeCondition.stopping.rawValue { record.condition = condition.rawValue }
        return record
    }

    /// What keeps this node from creating something; nil if nothing does.
    private var heldBack: NodeCondition? {
        isAbandoning ? .cutOff : !acts ? .waiting : registry.hasRegistered ? nil : .registering
    }

    /// Publishes this node's record. Called with each renewal.
    func publish() {
        let now = clock()
        let traffic = doorTraffic()
        door?.note(checks: traffic.checks, heard: traffic.heard, others: othersChecked(at: now), at: now)
        let record = currentRecord
        own = record
        do {
            guard let sealed = try records?.sealed(record) else { return }
            table.publish(sealed)
        } catch {
            logger.error("This node's record could not be sealed: \(error)")
        }
    }

    /// Reads the records of the other living nodes. Called after each look at the ledger.
    func readRecords() {
        guard records != nil else { return }
        let others = lives.view?.view.lives.filter { $0.isUnfenced && $0.tag != tag }.map(\.tag) ?? []
        table.records(of: others) { [weak self] found in
            guard let self, let found, let refusals = records?.read(found, living: others) else { return }
            for (tag, refusal) in refusals {
                logger.warning(
                    "The record of node \(tag.node) in Redis is ignored: \(refusal).", metadata: ["life": "\(tag)"])
            }
            recordsReadAt = clock()
            count()
            relays?.read(records?.records ?? [:])
        }
    }

    /// How long ago the load balancer asked each of the other nodes. Empty if it is not known, because Redis does not answer.
    private func othersChecked(at now: Cluster.Instant) -> [Duration?] {
        guard let records, let recordsReadAt, now - recordsReadAt < Self.freshRecords else { return [] }
        return records.records.values.map { $0.checkedMsAgo.map { .milliseconds($0) + (now - recordsReadAt) } }
    }

    /// Whether clients cannot reach this node, although the load balancer reaches others.
    var isCutOff: Bool { door?.isCutOff(clients: own?.counts.clients ?? 0, at: clock()) ?? false }

    /// Lets the hub know how many people the other nodes have.
    private func count() {
        let counts = (records?.records.values).map { records in
            records.reduce(into: ClientCounts()) { sum, record in
                sum.clients += record.counts.clients
                sum.waiting += record.counts.waiting
            }
        }
        guard let counts, counts != othersCounted else { return }
        othersCounted = counts
        submit(.othersCounted(counts))
    }

    /// Returns another node on which to create this machine; nil if this node should.
    func choice(for machine: PlacedMachine) -> NodeTag? {
        guard machine.mayBeAnywhere, let own, let records else { return nil }
        var random = SystemRandomNumberGenerator()
        return records.choice(insteadOf: own, using: &random)
    }

    /// The newest record of each living node, this one included.
    var knownRecords: [NodeRecord] { [own].compactMap(\.self) + (records?.records.values.map(\.self) ?? []) }
}

extension PlacedMachine {
    /// Whether any node is as good for this machine as the one whose client needs it.
    fileprivate var mayBeAnywhere: Bool {
        switch self {
        case .room, .hall, .directory: true
        case .person, .session, .deviceCodes: false
        }
    }
}
