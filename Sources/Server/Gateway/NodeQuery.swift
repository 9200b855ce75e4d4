/// The part of a URL's query that names a node of a cluster: `?at=n2`. The load balancer passes such requests to that node.
enum NodeQuery {
    /// Returns the name of the node that a URL names; nil if it names none. Names of nodes have no characters that a URL encodes.
    static func name(in uri: String) -> String? {
        let query = uri.drop { $0 != "?" }.dropFirst()
        return query.split(separator: "&").first { $0.hasPrefix("at=") }.map { String($0.dropFirst(3)) }
    }

    /// Returns a reference to the same URL at this node (RFC 3986 §5.3): only a query, which keeps the path.
    static func reference(to node: String) -> String { "?at=\(node)" }
}
