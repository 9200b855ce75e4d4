/// The part of a URL's query that names a node of a cluster: `?at=n2`. The load balancer passes such requests to that node.
enum NodeQuery {
    /// Returns the name of the node that a URL names; nil if it names none. Node names contain no characters that are percent-encoded in a
    /// URL.
    static func name(in uri: String) -> String? {
        parameters(of: uri).first { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    }

    /// Returns a relative reference to the same URL on that node: only a query, so the path is kept (RFC 3986 §5.3). The other parameters
    /// are kept, too.
    static func reference(to node: String, from uri: String) -> String {
        let others = parameters(of: uri).filter { !$0.hasPrefix(prefix) }.map { String($0) }
        return "?" + (others + [prefix + node]).joined(separator: "&")
    }

    private static let prefix = "at="

    private static func parameters(of uri: String) -> [Substring] {
        uri.drop { $0 != "?" }.dropFirst().split(separator: "&")
    }
}
