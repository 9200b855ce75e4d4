import Cluster
import Wire

/// Requests of this node's clients that were posted to other nodes and are not answered.
///
/// A request that is not answered in time fails. It is kept until it is answered, or until its client or the other node is gone. So a late
/// answer is recognized: the client does not get a second answer, and what the request opened on the other node is closed again. The
/// budgets of clients bound the number of requests that have not failed, and `maxFailed` that of the others.
struct PostedRequests<Content: Equatable & Sendable>: Equatable, Sendable {
    struct Posted: Equatable, Sendable {
        let node: NodeTag
        let content: Content
        /// When the request fails or, if it has failed, when to look whether its client is gone.
        var until: Timestamp
        /// Whether the client has got an error, because the answer did not come in time.
        var hasFailed = false
    }

    /// A request that was not answered in time, or whose node is lost.
    struct Unanswered: Equatable, Sendable {
        let asked: Request
        let node: NodeTag
        let content: Content
    }

    /// Maximum number of failed requests of each client that are kept, because a node may never answer them. If older ones are answered
    /// after all, the client gets a second answer.
    static var maxFailed: Int { 100 }

    /// Keyed by the client and the number of the request. No client has an empty dictionary.
    private var requests: [ConnectionID: [UInt64: Posted]] = [:]

    func contains(_ client: ConnectionID) -> Bool { requests[client] != nil }

    /// Returns the requests of a client, in no particular order.
    func posted(by client: ConnectionID) -> [Posted] { requests[client].map { Array($0.values) } ?? [] }

    /// Returns the clients that wait for an answer of this node, in no particular order.
    func clients(waitingFor node: NodeTag) -> [ConnectionID] {
        requests.filter { $0.value.values.contains { $0.node == node && !$0.hasFailed } }.map(\.key)
    }

    mutating func insert(_ asked: Request, _ posted: Posted) { requests[asked.client, default: [:]][asked.re] = posted }

    /// A node has answered a request. Returns the request; nil if it was not posted to that node.
    mutating func remove(_ client: ConnectionID, re: UInt64?, from node: NodeTag) -> Posted? {
        guard let re, let posted = requests[client]?[re], posted.node == node else { return nil }
        remove(Request(client, re))
        return posted
    }

    private mutating func remove(_ asked: Request) {
        requests[asked.client]?[asked.re] = nil
        if requests[asked.client]?.isEmpty == true { requests[asked.client] = nil }
    }

    mutating func removeAll(of client: ConnectionID, to node: NodeTag) {
        for (re, posted) in requests[client] ?? [:] where posted.node == node { remove(Request(client, re)) }
    }

    /// Removes the requests to a node, because it is lost, or because letters to or from it are. Returns those that have not failed, in a
    /// fixed order.
    ///
    /// - Parameter isOver: whether the node's life is over. Otherwise it may still answer those that have failed.
    mutating func removeAll(to node: NodeTag, isOver: Bool) -> [Unanswered] {
        let gone = sorted { $0.node == node && (isOver || !$0.hasFailed) }
        for entry in gone { remove(entry.asked) }
        return gone.filter { !$0.posted.hasFailed }.map { Self.unanswered($0) }
    }

    /// Marks requests as failed that were not answered in time, and returns them in a fixed order. Forgets requests whose clients are gone.
    ///
    /// - Parameter next: when to look at failed requests again.
    mutating func fail(now: Timestamp, lookAgainAt next: Timestamp, isGone: (ConnectionID) -> Bool) -> [Unanswered] {
        let due = sorted { $0.until <= now }
        for entry in due {
            guard !isGone(entry.asked.client) else {
                remove(entry.asked)
                continue
            }
            var posted = entry.posted
            (posted.until, posted.hasFailed) = (next, true)
            insert(entry.asked, posted)
        }
        for client in Set(due.map(\.asked.client)) { forgetOldest(of: client) }
        return due.filter { !$0.posted.hasFailed }.map { Self.unanswered($0) }
    }

    private mutating func forgetOldest(of client: ConnectionID) {
        let failed = requests[client]?.filter(\.value.hasFailed).keys.sorted() ?? []
        for re in failed.dropLast(Self.maxFailed) { remove(Request(client, re)) }
    }

    /// When to look at the next request; nil if there is none.
    var nextDeadline: Timestamp? { requests.values.compactMap { $0.values.map(\.until).min() }.min() }

    private func sorted(_ isIncluded: (Posted) -> Bool) -> [(asked: Request, posted: Posted)] {
        var found: [(asked: Request, posted: Posted)] = []
        for (client, open) in requests {
            for (re, posted) in open where isIncluded(posted) { found.append((Request(client, re), posted)) }
        }
        return found.sorted { ($0.asked.client, $0.asked.re) < ($1.asked.client, $1.asked.re) }
    }

    private static func unanswered(_ entry: (asked: Request, posted: Posted)) -> Unanswered {
        Unanswered(asked: entry.asked, node: entry.posted.node, content: entry.posted.content)
    }
}
