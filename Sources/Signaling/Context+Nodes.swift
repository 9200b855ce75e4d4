import Cluster
import Wire

/// Sends letters to machines whose node is known. Without a cluster, all machines are on this node.
extension Context {
    /// Whether rooms, chats and calls can span nodes.
    var spansNodes: Bool { mediaNodes != nil }

    /// How long a stranger waits in the pool of this node before waiting in the hall.
    var hallWait: Duration {
        mediaNodes?.isEmpty == false ? min(rules.localWait, rules.spanningHallWait) : rules.localWait
    }

    /// Whether media can cross between this node and the given one. Always true for this node and for nil.
    func hasMedia(with node: NodeTag?) -> Bool {
        guard let node, node != tag else { return true }
        return mediaNodes?.contains(node) == true
    }

    /// Sends an event to a person.
    ///
    /// - Parameter node: the person's node; nil for this one.
    mutating func tell(_ person: IdentityID, _ event: PersonEvent, at node: NodeTag?) {
        guard let node, node != tag else { return tell(.person(person, event)) }
        post(.person(person, event), to: node)
    }

    /// Sends an event to the pool of a node.
    ///
    /// - Parameter node: the pool's node; nil for this one.
    mutating func tell(_ event: PoolEvent, at node: NodeTag?) {
        guard let node, node != tag else { return tell(.pool(event)) }
        post(.pool(event), to: node)
    }
}

extension Identifier128 {
    /// The life of the node that has the machine with this id; nil if that is `own`. Only for ids of ``Context/newID(at:)``.
    func node(unless own: NodeTag) -> NodeTag? {
        isOn(own) ? nil : NodeTag(rawValue: high >> 24)
    }

    /// Whether the given node has the machine with this id.
    func isOn(_ node: NodeTag) -> Bool { high >> 24 == node.rawValue }
}

extension MatchID {
    /// Returns the id to which tokens for a legacy client's home session are bound during this match. For a home session on `node` and a
    /// match on another node. The id has the tag of the session's node, because a join finds its session by the id in the token. Both nodes
    /// derive the same id.
    func bound(to node: NodeTag) -> MatchID { MatchID(high: node.rawValue << 24 | high & 0xFF_FFFF, low: low) }
}
