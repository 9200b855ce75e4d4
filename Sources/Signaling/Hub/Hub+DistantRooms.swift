import Cluster
import Wire

// Rooms that span nodes. The room and its session are on one node, as without relays. The requests of clients on other nodes are posted
// to it, and what it sends to them is posted back. It also posts the commands for the media planes of their nodes. Without relays,
// nothing of this happens: clients are redirected to the room's node.

// MARK: - On the node of the client

extension Hub {
    /// Handles a redirect without moving the client, if possible: posts a join to the room's node, or lets a stranger wait in the hall from
    /// here. Also answers whether a room would admit a client of PerchRTC's protocol. Returns whether the redirect was handled.
    mutating func crosses(_ letter: Letter, to tag: NodeTag) -> Bool {
        guard let own = context.tag, context.mediaNodes?.contains(tag) == true else { return false }
        if case .hall(let person) = letter {
            context.tell(.person(person, .hallIsAt(tag)))
            return true
        }
        if case .roomRegistry(.operate(let request)) = letter, case .check = request.action {
            // The room decides when the client joins.
            context.answer(request.socket, .admissible)
            return true
        }
        guard case .roomRegistry(.join(let application)) = letter, let room = application.join.name else {
            return false
        }
        guard application.applicant.client.tag(unless: own) == nil else { return false }
        distant.posted(application.request, for: room, to: tag, until: deadlineForAnswer())
        context.post(letter, to: tag)
        return true
    }

    /// Notes what a letter of another node says about a client of this one. Returns whether the client gets the letter.
    mutating func note(_ event: ClientEvent, for client: ConnectionID, from tag: NodeTag) -> Bool {
        guard noteSession(event, of: client, from: tag) else { return false }
        switch event {
        case .room(let seat):
            if let seat {
                // The client disconnected while the answer was in transit. Leave the room or its lobby again.
                guard clients.contains(client) else {
                    context.post(.room(seat.name, .gone(client)), to: tag)
                    return false
                }
                guard admits(seat, of: client, from: tag) else {
                    if distant.hasFailed(client, in: seat.name, on: tag) {
                        // The join has failed, because this answer is late. Leave the room or its lobby again.
                        context.post(.room(seat.name, .gone(client)), to: tag)
                    } else {
                        context.figures.unexpectedLetters += 1
                    }
                    return false
                }
            } else if distant.seat(of: client)?.tag != tag {
                // This is about a join that has failed. The client may be in another room by now.
                return false
            }
            distant.sit(client, on: seat, at: tag)
        case .deliver(let message) where distant.waits(client):
            return noteAnswer(to: client, re: message.re, from: tag, isRefusal: message.isError)
        case .joinRefused(let re, _, _): return noteAnswer(to: client, re: re, from: tag, isRefusal: true)
        case .expel: distant.forgetJoins(of: client, to: tag)
        default: break
        }
        return true
    }

    /// Notes an answer of another node. Returns whether the client gets it.
    private mutating func noteAnswer(
        to client: ConnectionID, re: UInt64?, from tag: NodeTag, isRefusal: Bool
    ) -> Bool {
        guard let join = distant.answered(client, re: re, by: tag) else { return true }
        guard !join.hasFailed else { return false }
        // A client that joins has no seat, so this seat is from an earlier join that has failed.
        if isRefusal, let seat = distant.seat(of: client), seat.tag == tag {
            distant.leave(client)
            context.tell(.client(client, .room(nil)))
            context.post(.room(seat.name, .gone(client)), to: tag)
        }
        return true
    }

    /// Whether a client of this node may get a seat on that node. The client must be waiting there for the room, or for the answer to a
    /// join. The room's session must not be on this node or on a third one.
    private func admits(_ seat: RoomSeat, of client: ConnectionID, from tag: NodeTag) -> Bool {
        guard distant.expects(client, in: seat.name, on: tag) else { return false }
        guard let session = seat.place?.session else { return true }
        guard !sessions.contains(session) else { return false }
        return (distant.node(of: session) ?? distantSessions.node(of: session) ?? tag) == tag
    }

    /// Returns the node to which a letter to a room or its session is posted, because the client that it concerns has its seat there.
    /// Nil if the letter is for this node.
    mutating func distantNode(of letter: Letter) -> NodeTag? {
        switch letter {
        case .room(let name, let event):
            guard let client = event.client, let seat = distant.seat(of: client), seat.name == name else { return nil }
            switch event {
            case .gone: distant.leave(client)
            // If this failed and was handled later, the client would not learn that it has left.
            case .verb(_, _, .leave): break
            case .verb(_, let re, _): posted(Request(client, re), .other, to: seat.tag)
            default: break
            }
            return seat.tag
        case .roomRegistry(.keep(let client, let re, let name, _)):
            guard let seat = distant.seat(of: client), seat.name == name else { return nil }
            posted(Request(client, re), .other, to: seat.tag)
            return seat.tag
        case .session(let id, let event):
            if event.isOfSession { return distant.node(of: id) ?? distantSessions.node(of: id) }
            if let client = event.client, let seat = distant.seat(of: client), seat.session == id {
                switch event {
                case .join(_, _, let grant, let re):
                    // That node does not take an application's token from here, so the client is redirected.
                    guard let match = grant.match else { return nil }
                    posted(Request(client, re), .join(id, match), to: seat.tag)
                case .verb(_, let re, let verb): posted(Request(client, re), .init(verb), to: seat.tag)
                default: break
                }
                return seat.tag
            }
            return node(ofSession: id, for: event)
        default: return nil
        }
    }

    /// Carries out a command that the node of a session has for this node's media plane.
    mutating func received(_ command: MediaCommand, from tag: NodeTag) {
        switch command {
        case .publish(let stream, _, let client, _, _, _, _):
            guard distant.publish(stream, by: client, from: tag) else { break }
            return context.media(command)
        case .update(let stream, let client, _, _), .unpublish(let stream, let client):
            // After letters were lost, this node has forgotten the streams of the other one.
            guard distant.streams[stream] != nil else { return }
            guard distant.owns(stream, by: client, tag) else { break }
            if case .unpublish = command { distant.unpublish(stream) }
            return context.media(command)
        case .subscribe(let stream, _, let client, _, _, _, _), .unsubscribe(let stream, let client):
            guard let own = context.tag, client.tag(unless: own) == nil else { break }
            // A client that has left meanwhile has no subscriptions, and a stream that this node has forgotten has no subscribers.
            guard distant.streams[stream]?.tag == tag else { return }
            if case .unsubscribe = command { distant.unsubscribed(client, from: stream) }
            if clients.contains(client) { context.media(command) }
            return
        // These are commands of a client, which gives them on its own node.
        case .offer, .close, .estimate, .leave: break
        }
        context.figures.unexpectedLetters += 1
    }
}

// MARK: - On the node of the room

extension Hub {
    /// Whether this letter about a room comes from the node of the client that it concerns. No node may speak for the clients of
    /// others.
    func admits(_ letter: Letter, from tag: NodeTag) -> Bool {
        guard context.spansNodes, let own = context.tag else { return false }
        let client: ConnectionID?
        switch letter {
        case .roomRegistry(.join(let application)): client = application.applicant.client
        case .roomRegistry(.keep(let sender, _, _, _)): client = sender
        case .room(_, let event): client = event.client
        // A token for a room is bound to a place in it, and a token for a chat to its match. Tokens for other sessions are used on the
        // session's node.
        case .session(_, .join(let sender, _, let grant, _)): client = grant.match == nil ? nil : sender
        case .session(_, .sampled(let match, let person, _)), .session(_, .judged(let match, let person, _)):
            // Without a match, the chat has ended meanwhile, and the session ignores the event.
            guard let sides = matches.read(match, { $0.sides }) else { return match.node(unless: own) == nil }
            return sides.contains { $0.identity == person && $0.node == tag }
        case .session(_, let event):
            if event.isOfSession { return true }
            client = event.client
        default: return false
        }
        guard let client else { return false }
        return client.tag(unless: own) == tag
    }
}

// MARK: - When a node or letters are lost

extension Hub {
    /// A node is lost, or letters between it and this node were. What both know of each other's rooms is no longer the same, so the
    /// clients in these rooms begin again.
    mutating func distantLost(_ tag: NodeTag, isOver: Bool) {
        guard context.spansNodes else { return }
        strangersLost(on: tag, isOver: isOver)
        distantSessionsLost(on: tag, isOver: isOver)
        callsLost(on: tag)
        for client in distant.clients(on: tag) {
            // A join that nobody will answer ends with the connection too.
            distant.forgetJoins(of: client, to: tag)
            if let seat = distant.seat(of: client), seat.tag == tag {
                distant.leave(client)
                context.tell(.client(client, .room(nil)))
                if !isOver { context.post(.room(seat.name, .gone(client)), to: tag) }
            }
            context.tell(.client(client, .expel(.placesUnavailable, .serviceRestart)))
        }
        distant.forgetJoins(to: tag, isOver: isOver)
        for stream in distant.removeStreams(of: tag) { context.media(.unpublish(stream.id, by: stream.publisher)) }
        removeMembers(of: tag)
    }

    /// Removes the clients of another node from the rooms of this one.
    private mutating func removeMembers(of tag: NodeTag) {
        guard let own = context.tag else { return }
        var members: [(session: SessionID, client: ConnectionID)] = []
        sessions.forEach { session in
            for client in session.early.clients where client.tag(unless: own) == tag {
                members.append((session.id, client))
            }
            guard session.distant[tag] != nil else { return }
            for client in session.order where client.tag(unless: own) == tag { members.append((session.id, client)) }
        }
        for member in members.sorted(by: { $0.client < $1.client }) {
            context.tell(.session(member.session, .gone(member.client, .networkDisconnected)))
        }
        var people: [(room: RoomName, client: ConnectionID)] = []
        rooms.forEach { room in
            let clients = room.roster.members.map(\.client) + room.lobby.waiting.map(\.client)
            for client in clients where client.tag(unless: own) == tag { people.append((room.name, client)) }
        }
        for person in people.sorted(by: { $0.client < $1.client }) {
            context.tell(.room(person.room, .gone(person.client)))
            // If the node lives, its client must join again.
            let error = WireError.elsewhere(.room(person.room), at: nil)
            context.tell(.client(person.client, .expel(error, .serviceRestart)))
        }
    }
}

extension ServerMessage {
    fileprivate var isError: Bool { if case .error = self { true } else { false } }
}

extension RoomEvent {
    /// The client that the event concerns, and whose node sends it; nil if it concerns none.
    fileprivate var client: ConnectionID? {
        switch self {
        case .verb(let client, _, _), .away(let client, _), .gone(let client), .leftSession(let client, _): client
        case .open, .restore, .operate, .list, .join, .close, .personDeleted, .notStored, .placeLost: nil
        }
    }
}

extension SessionEvent {
    /// The client that the event concerns, and whose node sends it; nil if it concerns none.
    var client: ConnectionID? {
        switch self {
        case .join(let client, _, _, _), .verb(let client, _, _), .dropped(let client), .returned(let client),
            .gone(let client, _), .rosterAcknowledged(let client), .lagging(let client, _),
            .subscriptionChanged(_, let client), .layersWanted(_, let client):
            client
        default: nil
        }
    }

    /// Whether the media plane of any node with members says this about the whole session, or about a stream. `speaking` is only for the
    /// session on the same node: that node hears everyone, and it alone chooses the active speaker.
    fileprivate var isOfSession: Bool {
        switch self {
        case .streamQuality, .full: true
        default: false
        }
    }
}
