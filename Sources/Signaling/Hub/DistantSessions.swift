import Cluster
import Wire

/// Chats and calls on other nodes that people of this node take part in: their sessions, and requests of this node's clients that another
/// node has not answered.
///
/// A match or call and its session are on one node, whose tag is in the id. A person and their client stay on the node of the client's
/// socket. Invariant: a session is on one node, and is known while clients of this node are in it.
struct DistantSessions: Equatable, Sendable {
    /// A request that was posted to another node.
    enum OpenRequest: Equatable, Sendable {
        /// A join of this session, with the token of this match or call.
        case join(SessionID, MatchID)
        /// A report, which the session completes.
        case report(SessionID, Report)
        /// A subscription in a routed session.
        case subscribe(SessionID, StreamID)
        case other

        init(_ verb: SessionVerb) {
            // Without mids, the media plane forwards nothing, so there is nothing to undo.
            if case .subscribe(let verb) = verb, !verb.mids.isEmpty {
                self = .subscribe(verb.session, verb.stream)
            } else {
                self = .other
            }
        }
    }

    /// A session on another node, with the number of this node's clients in it.
    private struct Session: Equatable, Sendable {
        let node: NodeTag
        var visitors = 0
    }

    /// What ends when a node, or letters between it and this node, are lost.
    struct Lost: Equatable, Sendable {
        var requests: [PostedRequests<OpenRequest>.Unanswered] = []
        var visits: [Visit] = []
        var chats: [Chat] = []

        struct Visit: Equatable, Sendable {
            let client: ConnectionID
            let session: SessionID
        }

        struct Chat: Equatable, Sendable {
            let match: MatchID
            let person: IdentityID
        }
    }

    /// The current lives of other nodes that have had relays to this node. Letters to other lives would be lost.
    private(set) var living: Set<NodeTag> = []
    /// The person of this node in each match on another node.
    private(set) var chats: [MatchID: IdentityID] = [:]
    private var visits: [ConnectionID: Set<SessionID>] = [:]
    private var sessions: [SessionID: Session] = [:]
    private var requests = PostedRequests<OpenRequest>()

    // MARK: Nodes

    mutating func met(_ nodes: Set<NodeTag>) { living.formUnion(nodes) }
    mutating func ended(_ node: NodeTag) { living.remove(node) }

    /// Returns the node of a match or call; nil if it is this one. Also nil if that node's life is over, because the node that continues
    /// its calls may be this one.
    func node(of id: some Identifier128, unless own: NodeTag) -> NodeTag? {
        id.node(unless: own).flatMap { living.contains($0) ? $0 : nil }
    }

    // MARK: Matches

    mutating func began(_ match: MatchID, of person: IdentityID) { chats[match] = person }
    mutating func ended(_ match: MatchID) { chats[match] = nil }

    // MARK: Sessions

    /// Returns the node of a session that clients of this node are in, if it is another node.
    func node(of session: SessionID) -> NodeTag? { sessions[session]?.node }

    /// Returns the node of a session that this client is in, if it is another node.
    func node(of session: SessionID, with client: ConnectionID) -> NodeTag? {
        visits[client]?.contains(session) == true ? sessions[session]?.node : nil
    }

    /// The client has joined a session on another node.
    mutating func enter(_ client: ConnectionID, _ session: SessionID, at node: NodeTag) {
        guard sessions[session, default: Session(node: node)].node == node,
            visits[client, default: []].insert(session).inserted
        else { return }
        sessions[session, default: Session(node: node)].visitors += 1
    }

    /// The client is no longer in the session.
    mutating func leave(_ client: ConnectionID, _ session: SessionID) {
        guard visits[client]?.remove(session) != nil else { return }
        if visits[client]?.isEmpty == true { visits[client] = nil }
        sessions[session]?.visitors -= 1
        if sessions[session]?.visitors == 0 { sessions[session] = nil }
    }

    // MARK: Requests

    /// Whether this client has an unanswered request.
    func waits(_ client: ConnectionID) -> Bool { requests.contains(client) }

    /// Whether this client waits for the answer of a node to a join of this session.
    func awaits(_ session: SessionID, _ client: ConnectionID, at node: NodeTag) -> Bool {
        requests.posted(by: client).contains {
            if case .join(session, _) = $0.content { $0.node == node && !$0.hasFailed } else { false }
        }
    }

    /// Whether this client waits for the answer to a subscription to this stream.
    func awaitsSubscription(of client: ConnectionID, to stream: StreamID) -> Bool {
        requests.posted(by: client).contains {
            if case .subscribe(_, stream) = $0.content { !$0.hasFailed } else { false }
        }
    }

    /// A request was posted to a node, which must answer by the given time.
    mutating func posted(_ asked: Request, _ request: OpenRequest, to node: NodeTag, until: Timestamp) {
        requests.insert(asked, .init(node: node, content: request, until: until))
    }

    /// A request was posted to a node, and the client must not get its answer.
    mutating func failed(_ asked: Request, to node: NodeTag, lookAgainAt next: Timestamp) {
        requests.insert(asked, .init(node: node, content: .other, until: next, hasFailed: true))
    }

    /// A node has answered a request. Returns the request; nil if it was not posted to that node.
    mutating func answered(
        _ client: ConnectionID, re: UInt64?, by node: NodeTag
    ) -> PostedRequests<OpenRequest>.Posted? {
        requests.remove(client, re: re, from: node)
    }

    /// Marks the requests as failed that were not answered in time. Returns them.
    mutating func failRequests(
        now: Timestamp, lookAgainAt next: Timestamp, isGone: (ConnectionID) -> Bool
    ) -> [PostedRequests<OpenRequest>.Unanswered] {
        requests.fail(now: now, lookAgainAt: next, isGone: isGone)
    }

    /// When to look at the next request; nil if there is none.
    var nextDeadline: Timestamp? { requests.nextDeadline }

    // MARK: Losing

    /// Forgets everything on a node. Returns it in a fixed order.
    ///
    /// - Parameter isOver: whether the node's life is over.
    mutating func takeLost(_ node: NodeTag, isOver: Bool) -> Lost {
        var lost = Lost()
        lost.requests = requests.removeAll(to: node, isOver: isOver)
        for (client, entered) in visits.sorted(by: { $0.key < $1.key }) {
            for session in entered.sorted(by: { $0.text < $1.text }) where sessions[session]?.node == node {
                lost.visits.append(.init(client: client, session: session))
                leave(client, session)
            }
        }
        for (match, person) in chats.sorted(by: { $0.key < $1.key }) where match.isOn(node) {
            lost.chats.append(.init(match: match, person: person))
            ended(match)
        }
        return lost
    }
}
