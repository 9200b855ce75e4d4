/// Chooses the node of a cluster for each socket (`protocol/README.md` §3.1).
///
/// After ``timeout`` without a welcome from the wanted node, one attempt goes to any node. If that fails too, it was the
/// network, so the wanted node is tried again: only the node of the last welcome can resume the connection.
struct NodeChoice: Equatable, Sendable {
    /// How long to try one node, counted from the first attempt.
    static let timeout = Duration.seconds(2)
    /// The maximum number of redirects within ``redirectPeriod``. Two nodes that name each other would otherwise never
    /// stop.
    static let maxRedirects = 3
    static let redirectPeriod = Duration.seconds(30)

    /// The node of the last welcome, which has the connection to resume; nil if the server has no nodes.
    private(set) var home: String?
    /// When to try any node instead; nil if the current attempt is not limited.
    private(set) var deadline: Timestamp?
    private var wanted: String?
    /// The times of the latest redirects.
    private var redirects: [Timestamp] = []

    /// Returns the node for a socket that is opened now; nil for any.
    mutating func next(now: Timestamp) -> String? {
        guard let wanted else { return nil }
        if let deadline, deadline <= now {
            self.deadline = nil
            return nil
        }
        deadline = deadline ?? now + Self.timeout
        return wanted
    }

    /// - Parameter node: the node that sent its welcome; nil if the server has no nodes.
    mutating func welcomed(by node: String?) { (home, wanted, deadline) = (node, node, nil) }

    /// Forgets the node of the last welcome, because it has sent this client away and keeps no connection to resume. The next socket can
    /// go to any node.
    mutating func forget() { (home, wanted, deadline) = (nil, nil, nil) }

    /// Gives the wanted node its full time again, because the network changed.
    mutating func hurry() { deadline = nil }

    /// Chooses the node that the server named.
    ///
    /// - Returns: false if the client must not move.
    mutating func redirect(to node: String, isConnected: Bool, now: Timestamp) -> Bool {
        guard !isConnected || node != home else { return false }
        redirects.removeAll { now - $0 >= Self.redirectPeriod }
        guard redirects.count < Self.maxRedirects else { return false }
        redirects.append(now)
        (wanted, deadline) = (node, nil)
        return true
    }
}
