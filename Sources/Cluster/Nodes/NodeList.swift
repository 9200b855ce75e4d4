/// What one node knows about all nodes of its cluster, for operators.
///
/// The ledger decides which nodes live. What they do and how much is in their records.
public struct NodeList: Hashable, Sendable {
    /// A node in its newest life.
    public struct Node: Hashable, Sendable {
        /// The newest life of the node.
        public var tag: NodeTag
        /// What it does.
        public var condition: NodeCondition
        /// How long its lease is valid, as of when the ledger was read; zero if it has expired. Nil if the life is over.
        public var lease: Duration?
        /// The life that fenced it. Nil if it is not fenced.
        public var heir: NodeTag?
        /// What an operator has requested through another node, and the node has not carried out yet.
        public var requested: NodeRecord.State?
        /// What it has published. Nil if the life is over, or if the record could not be read.
        public var record: NodeRecord?
        /// The relays from the asked node to this one. Nil for the asked node itself, if it opens no relays, and if the life is over.
        public var relays: RelayStates?
    }

    /// The life of the node that was asked.
    public let asked: NodeTag
    /// How long ago that node has read the ledger. Nil if it has not read it yet.
    public let age: Duration?
    /// The nodes by number, each once.
    public let nodes: [Node]

    /// - Parameters:
    ///   - own: the record of the node that is asked, with its ``NodeRecord/condition``.
    ///   - lease: how long that node may act; zero if it may not.
    ///   - view: what it has read from the ledger last; nil if nothing.
    ///   - age: how long ago.
    ///   - others: the records of other nodes that are not too old.
    ///   - relays: the relays of the asked node, keyed by the life of the other node. Nil if it opens none.
    public init(
        asked own: NodeRecord, lease: Duration, view: LedgerView?, age: Duration?, others: some Sequence<NodeRecord>,
        relays: [NodeTag: RelayStates]? = nil
    ) {
        asked = own.tag
        self.age = view == nil ? nil : age
        let records = Dictionary(others.map { ($0.tag, $0) }) { first, _ in first }
        var newest: [UInt16: LedgerView.Life] = [:]
        for life in view?.lives ?? [] where newest[life.tag.node].map({ $0.tag.life < life.tag.life }) ?? true {
            newest[life.tag.node] = life
        }
        let requested = newest[own.tag.node].flatMap { $0.tag == own.tag ? $0.requested : nil }
        newest[own.tag.node] = nil
        let mine = Node(
            tag: own.tag, condition: own.knownCondition, lease: lease, requested: requested, record: own)
        let rest = newest.values.map { life in
            Node(life, records[life.tag], relays.map { $0[life.tag] ?? RelayStates() })
        }
        nodes = ([mine] + rest).sorted { $0.tag.node < $1.tag.node }
    }

    /// Returns the node with this name, such as `n2`; nil if there is none.
    public subscript(name: String) -> Node? { nodes.first { $0.tag.nodeName == name } }

    /// How many nodes are in each condition. Conditions of no node are missing.
    public var counts: [NodeCondition: Int] {
        nodes.reduce(into: [:]) { counts, node in counts[node.condition, default: 0] += 1 }
    }
}

extension NodeList.Node {
    /// - Parameters:
    ///   - record: what the life has published; nil if that is not known.
    ///   - relays: the relays to it; nil if the asked node opens none.
    fileprivate init(_ life: LedgerView.Life, _ record: NodeRecord?, _ relays: RelayStates?) {
        switch life.state {
        case .fenced(let heir, _):
            self.init(tag: life.tag, condition: .fenced, heir: heir)
        case .unfenced(let expiresIn):
            // A node that reaches only Redis may still publish that it serves.
            let condition: NodeCondition =
                expiresIn <= .zero ? .waiting : record?.knownCondition ?? .unknown
            self.init(
                tag: life.tag, condition: condition, lease: max(.zero, expiresIn), requested: life.requested,
                record: record, relays: relays)
        }
    }
}

extension NodeRecord {
    /// The condition of the record. A release that does not publish it, or has other ones, only says whether it serves.
    fileprivate var knownCondition: NodeCondition {
        condition.flatMap { NodeCondition(rawValue: $0) } ?? (state == .serving ? .serving : .draining)
    }
}
