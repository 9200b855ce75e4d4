import Cluster
import HTTPTypes
import Hummingbird
import Logging
import Wire

/// The HTTP interface for this server as one of several, at `/v1/node` (`docs/rest.md`). For the operator: every request requires
/// a token signed with the API secret of the main project.
enum NodeEndpoint: Sendable {
    case describe, change

    static let layers = EndpointLayers(point: .operation, authorization: .operators)
    /// Maximum size of a request's body in bytes.
    static let maxBodySize = 1024

    static let routes: [(HTTPRequest.Method, String, NodeEndpoint)] = [
        (.get, "/v1/node", .describe), (.patch, "/v1/node", .change),
    ]

    func respond(_ gateway: Gateway, _ request: GateRequest) async throws(WireError) -> GateResponse {
        if self == .change {
            let state = try state(request, gateway)
            if gateway.change(to: state) { await gateway.record(state.auditAction, gateway.nodeName ?? "") }
        }
        return Self.description(of: gateway)
    }

    /// Reads which state the request wants.
    private func state(_ request: GateRequest, _ gateway: Gateway) throws(WireError) -> NodeRecord.State {
        guard case .object(let object)? = try? JSONReader.parse(request.body),
            object.members.allSatisfy({ ["node", "state"].contains($0.name) })
        else {
            throw WireError(
                .malformed, "The request body must be a JSON object with \"state\", and \"node\" if you want.")
        }
        if let wanted = object["node"], wanted != gateway.nodeName.map(JSONValue.string) {
            let own = gateway.nodeName.map { "This node is \($0)." } ?? "This server is not a node of a cluster."
            throw WireError(.notFound, "\(own) Send the request to the node that you want to change.")
        }
        return try NodeRecord.State(requested: object)
    }

    private static func description(of gateway: Gateway) -> GateResponse {
        var members: [JSONObject.Member] = []
        if let name = gateway.nodeName { members.append(.init(name: "node", value: .string(name))) }
        members.append(.init(name: "state", value: .string(gateway.requestedCondition.rawValue)))
        if let left = gateway.drainLeft {
            members.append(.init(name: "disconnectsInMs", value: .integer(left.wholeMilliseconds)))
        }
        members.append(.init(name: "connections", value: .integer(Int64(gateway.openConnections))))
        return OpenTokResponse.object(members)
    }
}

extension Gateway {
    /// The name of this node, such as `n2`; nil if this server is alone.
    var nodeName: String? { configuration.cluster.node.map { "n\($0)" } }
}
