import Cluster
import Wire

/// What has to be done to take a node of the cluster out of service, or to put it back.
enum NodeChange: Sendable {
    /// Nothing more: it was this node. `isNew` is false if it was in that state already.
    case here(isNew: Bool)
    /// Another node has to be asked.
    case elsewhere(NodeTag, any NodeRequests)

    /// Whether this changes anything, as far as this node knows.
    var isNew: Bool {
        switch self {
        case .here(let isNew): isNew
        case .elsewhere: true
        }
    }

    /// Asks the other node, if there is one.
    ///
    /// - Throws: `cluster_unavailable` if PostgreSQL does not answer, `not_found` if that life is over.
    func finish(_ state: NodeRecord.State) async throws(WireError) {
        guard case .elsewhere(let tag, let requests) = self else { return }
        let isLiving: Bool
        do throws(LedgerError) {
            isLiving = try await requests.request(state, of: tag)
        } catch {
            throw WireError(
                .clusterUnavailable,
                "PostgreSQL does not answer, so \(tag.nodeName) was not asked. Use the command on the machine of "
                    + "\(tag.nodeName), or try again when PostgreSQL is back.", retryable: true)
        }
        guard isLiving else {
            throw WireError(.notFound, "\(tag.nodeName) has just ended. List the nodes again.", retryable: true)
        }
    }
}

extension Gateway {
    /// What this node knows about all nodes of its cluster.
    ///
    /// - Throws: `not_found` if this server is alone.
    func nodeList() throws(WireError) -> NodeList {
        guard let nodes else {
            throw WireError(
                .notFound,
                "This server is not a node of a cluster. Use confab node show, drain and serve without a name, or "
                    + "/v1/node.")
        }
        return nodes.list
    }

    /// Changes the state of this node, or finds the node that must be asked.
    ///
    /// - Parameter name: the name of a node, such as `n2`.
    /// - Throws: `not_found` if no such node lives.
    func change(_ name: String, to state: NodeRecord.State) throws(WireError) -> NodeChange {
        let list = try nodeList()
        guard let nodes, let node = list[name], node.condition != .fenced else {
            let living = list.nodes.filter { $0.condition != .fenced }.map(\.tag.nodeName).joined(separator: ", ")
            throw WireError(.notFound, "No node of this name lives. Those that live are \(living).")
        }
        return node.tag == list.asked ? .here(isNew: change(to: state)) : .elsewhere(node.tag, nodes.requests)
    }
}

extension NodeRecord.State {
    /// The action of the audit log.
    var auditAction: String {
        switch self {
        case .serving: "node.serve"
        case .draining: "node.drain"
        }
    }

    /// Reads the member `state` of a request.
    init(requested members: JSONObject) throws(WireError) {
        guard case .string(let text)? = members["state"], let state = NodeRecord.State(rawValue: text) else {
            throw WireError(.malformed, "\"state\" must be \"draining\" or \"serving\".")
        }
        self = state
    }
}
