import Cluster
import HTTPTypes
import Hummingbird
import Wire

/// The HTTP interface for all nodes of this server's cluster, at `/v1/nodes` (`docs/rest.md`). For the operator, as ``NodeEndpoint``.
enum NodesEndpoint: Sendable {
    case list, change

    static let routes: [(HTTPRequest.Method, String, NodesEndpoint)] = [
        (.get, "/v1/nodes", .list), (.patch, "/v1/nodes/:node", .change),
    ]

    func respond(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        switch self {
        case .list: return try gateway.nodeList().response
        case .change: return try await change(gateway, request)
        }
    }

    private func change(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        guard case .object(let object)? = try? JSONReader.parse(request.body),
            object.members.allSatisfy({ $0.name == "state" })
        else {
            throw WireError(.malformed, "The request body must be a JSON object with \"state\".")
        }
        let (name, state) = (request.path.get("node") ?? "", try NodeRecord.State(requested: object))
        let change = try gateway.change(name, to: state)
        try await change.finish(state)
        if change.isNew { await gateway.record(state.auditAction, name) }
        return try gateway.response(to: change, state, of: name)
    }
}

extension Gateway {
    /// Returns the response to a request that changes the state of a node: the node, as this one knows it now.
    func response(to change: NodeChange, _ state: NodeRecord.State, of name: String) throws(WireError) -> GateResponse {
        guard var node = try nodeList()[name] else {
            throw WireError(.notFound, "\(name) has just ended. List the nodes again.", retryable: true)
        }
        // The ledger is read again within a second.
        if case .elsewhere = change { node.requested = state }
        return node.response
    }
}
