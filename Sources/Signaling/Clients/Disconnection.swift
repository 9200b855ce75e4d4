import Wire

// What happens when a client loses its socket. Unless it is leaving, it may resume until `Rules.resumeGrace` has passed.
// Meanwhile it is `dropped`: its sessions, its room, its chat and its calls continue, but it leaves the queue of the roulette. A
// client that leaves, or does not resume in time, is `gone` and is removed from all of them. `Client` decides whether a client
// may resume.

extension CloseCode {
    /// Whether a client that closes with this code has left on purpose, so that its connection is not kept for a resume
    /// (`protocol/README.md` §3).
    public var isLeaving: Bool { self == .normal || self == .goingAway || self == .noStatus }
}

extension Client {
    /// Handles the loss of the current socket.
    ///
    /// - Parameter leaving: whether the client closed it because it leaves, such as a page that is closed.
    mutating func lost(leaving: Bool, _ context: inout Context) {
        if leaving {
            depart(.clientDisconnected, &context)
        } else {
            drop(until: context.now + context.rules.resumeGrace, &context)
        }
    }

    private mutating func drop(until: Timestamp, _ context: inout Context) {
        presence = .dropped(until: until)
        for session in sessions { context.tell(.session(session, .dropped(id))) }
        if let room { context.tell(.room(room.name, .away(id, true))) }
        context.tell(.person(identity, .dropped(id)))
    }

    /// Announces that the client has resumed after it had been dropped.
    func returned(_ context: inout Context) {
        for session in sessions { context.tell(.session(session, .returned(id))) }
        if let room { context.tell(.room(room.name, .away(id, false))) }
        context.tell(.person(identity, .returned(id)))
    }

    mutating func depart(_ reason: GoneReason, _ context: inout Context) {
        guard presence != .gone else { return }
        presence = .gone
        // Notify the person before the sessions. The person then ends the match, which closes the match's session before that
        // session notices a missing member.
        context.tell(.person(identity, .departed(id)))
        for session in sessions { context.tell(.session(session, .gone(id, reason))) }
        // The room then closes the client's place in the session. The session already knows the reason from its `gone`
        // event.
        if let room { context.tell(.room(room.name, .gone(id))) }
        if usesMedia { context.tell(.media(.leave(id))) }
    }
}

// MARK: - Sessions and rooms

extension Session {
    mutating func setDropped(_ isDropped: Bool, _ client: ConnectionID, _ context: inout Context) {
        guard let member = members[client], member.isDropped != isDropped else { return }
        members[client]?.isDropped = isDropped
        // Charge a drop together with the later return. If the budget is exhausted, announce neither.
        var isAnnounced = member.isDropAnnounced
        if isDropped { isAnnounced = affords(2, context) }
        members[client]?.isDropAnnounced = isDropped && isAnnounced
        guard isAnnounced else { return }
        let event = SessionNotice.ConnectionReference(session: id, connection: client)
        broadcast(
            isDropped ? .session(.connectionReconnecting(event)) : .session(.connectionReconnected(event)),
            about: member.number, except: client, &context)
    }
}

extension Room {
    mutating func setDropped(_ isDropped: Bool, _ client: ConnectionID, _ context: inout Context) {
        lobby.setAway(isDropped, client)
        // The charge for a drop includes the return. If the drop is not announced, the return is not announced
        // either.
        if isDropped, roster[client] != nil, !arrivals.affordsDrop(to: roster.count, context) { return }
        guard roster.setDropped(isDropped, client), let member = roster[client] else { return }
        // Send this to the client too: it may have entered while it was disconnected, or may still show its
        // person's previous state.
        broadcast(.person(member.person), &context)
    }
}

// MARK: - People

extension Person {
    mutating func dropped(_ client: ConnectionID, _ context: inout Context) {
        devices.setDropped(client, true)
        if devices.isWatching(client) { context.tell(.directory(.viewerAway(client, true))) }
        calls.dropped(client, snapshot, &context)
        roulette.dropped(client, of: id, &context)
    }

    mutating func returned(_ client: ConnectionID, _ context: inout Context) {
        devices.setDropped(client, false)
        if devices.isWatching(client) { context.tell(.directory(.viewerAway(client, false))) }
        calls.returned(client, snapshot, &context)
        roulette.returned(client, snapshot, &context)
    }

    mutating func departed(_ client: ConnectionID, _ context: inout Context) {
        guard let device = devices.remove(client) else { return }
        if device.isWatching { context.tell(.directory(.unwatch(client))) }
        calls.departed(client, wasDropped: device.isDropped, snapshot, &context)
        roulette.departed(client, snapshot, &context)
        // Keep the person in memory only if there is recent activity to remember and the person can return. Legacy clients
        // cannot return. Blocks do not count, because they are in storage. In a cluster, nobody is kept, because the person
        // may return on another node, which cannot create the person's machine before this one has ended.
        let hasStateToKeep =
            roulette.hasStateToKeep || locationState.hasStateToKeep || calls.hasStateToKeep
            || contacts.hasStateToKeep
        if context.tag != nil {
            if devices.isEmpty { devices.withdrawCode(of: id, &context) }
        } else if devices.isEmpty, device.home == nil, hasStateToKeep {
            absentSince = context.now
        }
    }
}

// The match tells the partner of a chat.
extension RouletteState {
    mutating func dropped(_ client: ConnectionID, of id: IdentityID, _ context: inout Context) {
        guard let search, search.client == client else { return }
        switch activity {
        case .waiting, .reserved:
            leavePool(id, &context)
            activity = .away(search)
        case .penalized: activity = .away(search)
        case .chatting(_, let chat): context.tell(.match(chat.match, .away(id, true)))
        case .idle, .away: break
        }
    }

    mutating func returned(_ client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let search, search.client == client else { return }
        switch activity {
        case .away: resume(search, re: nil, snapshot, &context)
        case .chatting(_, let chat): context.tell(.match(chat.match, .away(snapshot.id, false)))
        case .idle, .penalized, .waiting, .reserved: break
        }
    }

    mutating func departed(_ client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        if search?.client == client { stop(.partnerLeft, notifies: false, snapshot, &context) }
    }
}

// The call tells the other person.
extension CallState {
    func dropped(_ client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        for part in parts {
            if part.holder == client { context.tell(.call(part.id, .away(snapshot.id, true))) }
            if part.rung?.contains(client) ?? false { reportRinging(part, snapshot, &context) }
        }
    }

    mutating func returned(_ client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        for part in parts where part.holder == client { context.tell(.call(part.id, .away(snapshot.id, false))) }
        if snapshot.devices.hasAppeared(client) { appeared(client, snapshot, &context) }
    }

    /// Handles the departure of a device. The device is already removed from `devices`.
    mutating func departed(
        _ client: ConnectionID, wasDropped: Bool, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        if asking?.client == client { asking = nil }
        for var part in parts {
            if part.holder == client, part.ending == nil {
                if !wasDropped { part.ending = client }
                self[part.id] = part
                context.tell(.call(part.id, .leave(snapshot.id, wasDropped ? .lost : .hungUp)))
            } else if var rung = part.rung, rung.remove(client) != nil {
                part.state = .ringing(rung)
                self[part.id] = part
                let isOutOfReach = !snapshot.devices.hasPush && !snapshot.devices.hasAppeared
                if isOutOfReach {
                    context.tell(.call(part.id, .outOfReach))
                } else {
                    reportRinging(part, snapshot, &context)
                }
            }
        }
    }
}
