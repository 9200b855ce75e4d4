import Cluster
import Wire

// The sessions of chats and calls that span nodes. The match or call and its session are on one node. The clients of the people on other
// nodes join the session from there, as they join those of rooms (`Hub+DistantRooms`).

extension Hub {
    /// Returns the node of the match or call that an event for a session belongs to. The event must be posted there. Nil if it is for this
    /// node.
    mutating func node(ofSession id: SessionID, for event: SessionEvent) -> NodeTag? {
        guard let own = context.tag else { return nil }
        switch event {
        case .join(let client, let identity, let grant, let re):
            guard let match = grant.match, client.tag(unless: own) == nil,
                let node = distantSessions.node(of: match, unless: own),
                places?.isAsked(.person(identity)) != true
            else { return nil }
            posted(Request(client, re), .join(id, match), to: node)
            return node
        case .report(let report, let client, let re):
            guard let node = distantSessions.node(of: report.match, unless: own) else { return nil }
            posted(Request(client, re), .report(id, report), to: node)
            return node
        case .sampled(let match, _, _), .judged(let match, _, _):
            return distantSessions.node(of: match, unless: own)
        default: break
        }
        guard let client = event.client, let node = distantSessions.node(of: id, with: client) else { return nil }
        switch event {
        case .gone: distantSessions.leave(client, id)
        case .verb(_, let re, let verb): posted(Request(client, re), .init(verb), to: node)
        default: break
        }
        return node
    }

    /// Notes what a letter of another node says about a client of this one in a session there. Returns whether the client gets the letter.
    mutating func noteSession(_ event: ClientEvent, of client: ConnectionID, from tag: NodeTag) -> Bool {
        switch event {
        case .deliver(.session(.joined(let joined))): return hasJoined(client, joined, at: tag)
        case .deliver(let message) where distantSessions.waits(client):
            guard let answered = distantSessions.answered(client, re: message.re, by: tag) else { return true }
            return noteAnswer(message, to: client, answered, from: tag)
        case .joinRefused(let re, _, _): return distantSessions.answered(client, re: re, by: tag)?.hasFailed != true
        case .leftSession(let session, _, _):
            if distantSessions.node(of: session) == tag { distantSessions.leave(client, session) }
        default: break
        }
        return true
    }

    /// Notes the answer of another node to a request. Returns whether the client gets the answer.
    private mutating func noteAnswer(
        _ message: ServerMessage, to client: ConnectionID,
        _ request: PostedRequests<DistantSessions.OpenRequest>.Posted, from tag: NodeTag
    ) -> Bool {
        guard !request.hasFailed else {
            undo(message, to: request.content, for: client, at: tag)
            return false
        }
        guard case .error(let failure) = message, let re = failure.re else {
            if case .subscribe(_, let stream) = request.content { distant.subscribed(client, to: stream) }
            return true
        }
        switch request.content {
        case .report(_, let report):
            store(report, Request(client, re))
            return false
        case .join(let session, _):
            // An earlier join has failed, and its answer was late. Without this, no further join could succeed. A join that is not yet
            // answered must not be undone.
            let isIn =
                distantSessions.node(of: session, with: client) != nil || isSeated(client, in: session, at: tag)
                || distantSessions.awaits(session, client, at: tag)
            if failure.error.code == .alreadyJoined, !isIn { leave(session, client, at: tag) }
        case .subscribe, .other: break
        }
        return true
    }

    /// Notes that a client of this node has joined a session on another one. Returns false if the client has not requested the session from
    /// that node.
    private mutating func hasJoined(_ client: ConnectionID, _ joined: SessionNotice.Joined, at tag: NodeTag) -> Bool {
        let isSeated = isSeated(client, in: joined.session, at: tag)
        // After letters were lost, this node has answered the request itself. A client with a seat was disconnected.
        guard let request = distantSessions.answered(client, re: joined.re, by: tag) else { return isSeated }
        guard !request.hasFailed else {
            // The answer is late. If the client joins again, the node has removed it before.
            if !distantSessions.awaits(joined.session, client, at: tag) { leave(joined.session, client, at: tag) }
            return false
        }
        if case .join(joined.session, _) = request.content {
            if !isSeated { distantSessions.enter(client, joined.session, at: tag) }
            return true
        }
        context.figures.unexpectedLetters += 1
        if case .report(_, let report) = request.content {
            store(report, Request(client, joined.re))
        } else {
            context.fail(.placesUnavailable, Request(client, joined.re))
        }
        return false
    }

    /// Whether a client of this node is in a room on that one with this session.
    private func isSeated(_ client: ConnectionID, in session: SessionID, at tag: NodeTag) -> Bool {
        guard let seat = distant.seat(of: client) else { return false }
        return seat.tag == tag && seat.session == session
    }

    /// Stores a report without the chat lines, because the node of the match cannot add them.
    mutating func store(_ report: Report, _ request: Request) {
        context.persist(.report(report))
        context.ok(request)
    }

    /// Handles a report of a person on another node about the partner in a match of this one.
    mutating func received(_ report: Report, by request: Request, to session: SessionID, from tag: NodeTag) {
        guard let own = context.tag, request.client.tag(unless: own) == tag, report.match.node(unless: own) == nil
        else { return context.figures.unexpectedLetters += 1 }
        switch sessions.read(session, { $0.permits(report, from: tag) }) ?? nil {
        case true?: context.tell(.session(session, .report(report, by: request.client, re: request.re)))
        case false?: context.figures.unexpectedLetters += 1
        // This node no longer knows who was in the match. The reporter's node does, and stores the report.
        case nil: context.fail(.chatNotKept, request)
        }
    }

    /// A node is lost, or letters between it and this node were. The chats in which people of both nodes are end.
    mutating func distantSessionsLost(on tag: NodeTag, isOver: Bool) {
        let lost = distantSessions.takeLost(tag, isOver: isOver)
        for visit in lost.visits {
            context.tell(.client(visit.client, .leftSession(visit.session, .matchEnded)))
            let gone = SessionEvent.gone(visit.client, .networkDisconnected)
            if !isOver { context.post(.session(visit.session, gone), to: tag) }
        }
        for open in lost.requests {
            // The connection of a client in a room there ends, and its requests with it (`distantLost`).
            let isSeated = distant.seat(of: open.asked.client)?.tag == tag
            switch open.content {
            case .join where isSeated, .subscribe where isSeated, .other where isSeated: break
            case .join(_, let match):
                let refused = ClientEvent.joinRefused(re: open.asked.re, .matchOfTokenEnded, match: match)
                context.tell(.client(open.asked.client, refused))
            // The report must not be lost. If the other node is alive, it may have stored the report already.
            case .report(let session, let report):
                context.tell(.session(session, .report(report, by: open.asked.client, re: open.asked.re)))
            case .subscribe, .other: context.fail(.placesUnavailable, open.asked)
            }
        }
        for chat in lost.chats {
            context.tell(.person(chat.person, .matchEnded(chat.match, .partnerLeft)))
            if !isOver { context.post(.match(chat.match, .leave(chat.person, .partnerLeft)), to: tag) }
        }
        matchesLost(on: tag, isOver: isOver)
    }

    /// Ends the matches of this node with people on that one.
    private mutating func matchesLost(on tag: NodeTag, isOver: Bool) {
        for match in matches.ids(where: { $0.sides.contains { $0.node == tag } }).sorted() {
            for side in matches.read(match, { $0.sides }) ?? [] where side.node == tag {
                context.tell(.match(match, .leave(side.identity, .partnerLeft)))
                let ended = PersonEvent.matchEnded(match, .partnerLeft)
                if !isOver { context.post(.person(side.identity, ended), to: tag) }
            }
        }
    }
}

extension WireError {
    /// The answer to a report about a chat that is no longer in memory.
    fileprivate static let chatNotKept = WireError(.notMatched, "This chat ended too long ago to be reported.")
}
