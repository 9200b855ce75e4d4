import Cluster
import Wire

// Requests that another node does not answer in time, although it is alive and no letters are lost. Otherwise, the requests end earlier
// (`Hub+DistantRooms`, `Hub+DistantSessions`).

extension Hub {
    /// Minimum time between two checks, because each check goes through all requests.
    private static let lookInterval = Duration.milliseconds(250)

    /// A request was posted to the node of the room, match or call that it is for.
    mutating func posted(_ asked: Request, _ request: DistantSessions.OpenRequest, to node: NodeTag) {
        distantSessions.posted(asked, request, to: node, until: deadlineForAnswer())
    }

    /// A request was posted to a node. Returns when it fails if that node does not answer.
    mutating func deadlineForAnswer() -> Timestamp {
        let deadline = context.now + context.rules.distantRequestTimeout
        if !awaitsAnswers {
            awaitsAnswers = true
            timers.schedule(.postedRequests, deadline)
        }
        return deadline
    }

    /// Fails the requests that were not answered in time. Returns when to check again; nil if there are no requests.
    mutating func failUnanswered() -> Timestamp? {
        let next = context.now + context.rules.distantRequestTimeout
        let isGone = { [clients] (client: ConnectionID) in !clients.contains(client) }
        for join in distant.failJoins(now: context.now, lookAgainAt: next, isGone: isGone) {
            context.fail(.nodeSilent, join.asked)
            // The node handles this after the join, so the client does not stay there.
            context.post(.room(join.content, .gone(join.asked.client)), to: join.node)
        }
        for request in distantSessions.failRequests(now: context.now, lookAgainAt: next, isGone: isGone) {
            fail(request)
        }
        let deadlines = [distant.nextDeadline, distantSessions.nextDeadline].compactMap(\.self)
        awaitsAnswers = !deadlines.isEmpty
        return deadlines.min().map { max($0, context.now + Self.lookInterval) }
    }

    private mutating func fail(_ request: PostedRequests<DistantSessions.OpenRequest>.Unanswered) {
        switch request.content {
        case .join(let session, let match):
            let refused = ClientEvent.joinRefused(re: request.asked.re, .nodeSilent, match: match)
            context.tell(.client(request.asked.client, refused))
            leave(session, request.asked.client, at: request.node)
        // The report must not be lost. The other node may store it too.
        case .report(_, let report): store(report, request.asked)
        case .subscribe, .other: context.fail(.nodeSilent, request.asked)
        }
    }

    /// Removes a client from a session on another node that it has not joined as far as this node knows.
    mutating func leave(_ session: SessionID, _ client: ConnectionID, at node: NodeTag) {
        context.post(.session(session, .gone(client, .networkDisconnected)), to: node)
    }

    /// A node has answered a request that has failed. Undoes what the request did there. The client does not get the answer.
    mutating func undo(
        _ message: ServerMessage, to request: DistantSessions.OpenRequest, for client: ConnectionID, at node: NodeTag
    ) {
        switch (message, request) {
        case (.session(.published(let published)), _):
            let verb = SessionVerb.unpublish(.init(session: published.session, stream: published.stream.id))
            post(verb, in: published.session, by: Request(client, published.re), to: node)
        case (.ok(let answer), .subscribe(let session, let stream)):
            // The request may have changed a subscription that the client knows. If the client has subscribed again, the node gets that
            // request before this verb.
            guard distant.streams[stream]?.subscribers.contains(client) == false,
                !distantSessions.awaitsSubscription(of: client, to: stream)
            else { return }
            let verb = SessionVerb.unsubscribe(.init(session: session, stream: stream))
            post(verb, in: session, by: Request(client, answer.re), to: node)
        default: return
        }
    }

    /// Posts a verb that undoes a request. The client does not get the answer to this either.
    private mutating func post(_ verb: SessionVerb, in session: SessionID, by undone: Request, to node: NodeTag) {
        context.post(.session(session, .verb(undone.client, re: undone.re, verb)), to: node)
        distantSessions.failed(undone, to: node, lookAgainAt: deadlineForAnswer())
    }
}

extension WireError {
    /// The error for a request that another node has not answered in time.
    static let nodeSilent = WireError(
        .clusterUnavailable, "Another server of this cluster is not answering. Try again in a moment.",
        retryable: true, retryAfter: .seconds(2))
}
