/// The part of a URL's query that names a node of a cluster: `?at=n2`. The load balancer passes such requests to that node.
enum NodeQuery {
    /// Returns the name of the node that a URL names; nil if it names none. Node names contain no characters that are percent-encoded in a
    /// URL.
    static func name(in uri: String) -> String? {
        let query = uri.drop { $0 != "?" }.dropFirst()
        return query.split(separator: "&").first { $0.hasPrefix("at=") }.map { String($0.dropFirst(3)) }
    }

    /// Returns a relative reference to the same path on that node: only a query, so the path is kept (RFC 3986 §5.3).
    static func reference(to node: String) -> String { "?at=\(node)" }
}
