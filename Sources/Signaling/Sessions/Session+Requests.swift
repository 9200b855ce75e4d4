import Wire

/// What a member of a session may ask for, each judged by the member's role (OpenTok's, `Capabilities`).
extension Session {
    mutating func perform(_ verb: SessionVerb, by member: Member, re: UInt64, _ turn: inout Turn) {
        let client = member.connection.id
        do throws(WireError) {
            switch verb {
            case .publish(let verb):
                return try publish(verb, by: member, re: re, &turn)
            case .unpublish(let verb): try unpublish(verb.stream, by: client, &turn)
            case .update(let verb): try update(verb, by: client, &turn)
            case .subscribe(let verb): try subscribe(verb, by: member, &turn)
            case .unsubscribe(let verb): try unsubscribe(verb.stream, by: client, &turn)
            case .negotiate(let verb): try negotiate(verb, by: client, &turn)
            case .connected(let verb): try connected(verb, by: client)
            case .signal(let verb): try signal(verb, by: member, &turn)
            case .forceDisconnect(let verb): try forceDisconnect(verb.connection, by: member, &turn)
            case .forceUnpublish(let verb): try forceUnpublish(verb.stream, by: member, &turn)
            case .forceMute(let verb): try forceMute(verb, by: member, &turn)
            // The client's machine performs these.
            case .join, .leave: return
            }
            turn.send(.ok(.init(re: re)), to: client)
        } catch {
            turn.fail(error, re: re, to: client)
        }
    }

    private func permit(_ allowed: Bool, _ deed: String) throws(WireError) {
        guard allowed else { throw WireError(.notPermitted, "The token's role does not allow \(deed).") }
    }

    // MARK: Streams

    private mutating func publish(_ verb: SessionVerb.Publish, by member: Member, re: UInt64, _ turn: inout Turn)
        throws(WireError)
    {
        try permit(member.capabilities.publish, "publishing")
        try permitMedia(turn)
        guard member.streams.count < turn.rules.streamsPerConnection else {
            throw WireError(
                .sessionFull, "A connection may publish \(turn.rules.streamsPerConnection) streams; unpublish one.")
        }
        let client = member.connection.id
        var stream = StreamInfo()
        stream.id = .random(using: &turn.random)
        stream.connection = client
        stream.createdAt = turn.now
        stream.name = verb.name ?? ""
        // Where everybody is muted, so is who comes later; where the server can, it sees to that.
        stream.hasAudio = verb.hasAudio && !(isRouted && isMuted)
        stream.hasVideo = verb.hasVideo
        stream.videoType = verb.videoType
        stream.width = verb.width
        stream.height = verb.height
        let published = Published(stream: stream, mids: isRouted ? verb.mids : MediaMids())
        streams[stream.id] = published
        members[client]?.streams.append(stream.id)
        route(published, &turn)
        turn.send(.session(.published(.init(re: re, session: id, stream: stream))), to: client)
        broadcast(
            .session(.streamCreated(.init(session: id, stream: stream))), except: client, &turn)
        if isMuted {
            turn.send(.session(.muted(.init(session: id, active: true, stream: stream.id))), to: client)
        }
    }

    private func owned(_ stream: StreamID, by client: ConnectionID) throws(WireError) -> Published {
        guard let published = streams[stream], published.stream.connection == client else {
            throw WireError(.notFound, "This connection does not publish that stream.")
        }
        return published
    }

    private func existing(_ stream: StreamID) throws(WireError) -> Published {
        guard let published = streams[stream] else {
            throw WireError(.notFound, "That stream is not in this session any more.")
        }
        return published
    }

    private mutating func unpublish(_ stream: StreamID, by client: ConnectionID, _ turn: inout Turn) throws(WireError) {
        _ = try owned(stream, by: client)
        removeStream(stream, owner: client, &turn)
        let event = SessionNotice.StreamDestroyed(session: id, stream: stream, reason: .clientUnpublished)
        broadcast(.session(.streamDestroyed(event)), except: client, &turn)
    }

    private mutating func removeStream(_ stream: StreamID, owner: ConnectionID, _ turn: inout Turn) {
        members[owner]?.streams.removeAll { $0 == stream }
        forget(stream, &turn)
    }

    private mutating func update(_ verb: SessionVerb.Update, by client: ConnectionID, _ turn: inout Turn)
        throws(WireError)
    {
        var stream = try owned(verb.stream, by: client).stream
        stream.hasAudio = verb.hasAudio ?? stream.hasAudio
        stream.hasVideo = verb.hasVideo ?? stream.hasVideo
        stream.width = verb.width ?? stream.width
        stream.height = verb.height ?? stream.height
        change(stream, mids: verb.mids, &turn)
    }

    private mutating func subscribe(_ verb: SessionVerb.Subscribe, by member: Member, _ turn: inout Turn)
        throws(WireError)
    {
        try permit(member.capabilities.subscribe, "subscribing")
        try permitMedia(turn)
        let client = member.connection.id
        let publisher = try existing(verb.stream).stream.connection
        guard isRouted || publisher != client else {
            throw WireError(
                .notPermitted, "Relayed sessions have no way back to oneself; show the local stream instead.")
        }
        var verb = verb
        if !isRouted { verb.mids = MediaMids() }
        let former = streams[verb.stream]?.subscribers.updateValue(verb, forKey: client)
        members[client]?.subscriptions.insert(verb.stream)
        route(verb, by: client, former: former, &turn)
        beginWait(client, publisher, turn)
        endWait(client, publisher)
        // Which picture somebody would like is the server's business.
        if let former, isRouted, (former.audio, former.video) == (verb.audio, verb.video),
            former.preference != verb.preference
        {
            return
        }
        let event = SessionNotice.Subscribed(
            session: id, stream: verb.stream, connection: client, audio: verb.audio, video: verb.video
        )
        turn.send(.session(.subscribed(event)), to: publisher)
    }

    private mutating func unsubscribe(_ stream: StreamID, by client: ConnectionID, _ turn: inout Turn) throws(WireError)
    {
        let publisher = try existing(stream).stream.connection
        guard let former = streams[stream]?.subscribers.removeValue(forKey: client) else {
            throw WireError(.notFound, "This connection does not subscribe to that stream.")
        }
        members[client]?.subscriptions.remove(stream)
        stopRouting(former, by: client, &turn)
        endWait(client, publisher)
        let event = SessionNotice.Unsubscribed(session: id, stream: stream, connection: client)
        turn.send(.session(.unsubscribed(event)), to: publisher)
    }

    // MARK: Between two connections

    private func negotiate(_ verb: SessionVerb.Negotiate, by client: ConnectionID, _ turn: inout Turn) throws(WireError)
    {
        guard !isRouted else {
            throw WireError(.notPermitted, "This session's media is routed; negotiate with the server by media.offer.")
        }
        guard members[verb.to] != nil else {
            throw WireError(.notFound, "That connection is not in this session any more.")
        }
        guard subscribes(client, to: verb.to) || subscribes(verb.to, to: client) else {
            throw WireError(.notPermitted, "Only connections of which one subscribes to the other negotiate.")
        }
        turn.send(.session(.negotiate(.init(session: id, from: client, verb))), to: verb.to)
    }

    private func subscribes(_ subscriber: ConnectionID, to publisher: ConnectionID) -> Bool {
        members[publisher]?.streams.contains { streams[$0]?.subscribers[subscriber] != nil } ?? false
    }

    private mutating func signal(_ verb: SessionVerb.Signal, by member: Member, _ turn: inout Turn) throws(WireError) {
        try permit(member.capabilities.signal, "signalling")
        if let type = verb.type, !Self.isSignalType(type) {
            throw WireError(
                .signalInvalid, "A signal's type has at most \(Limits.signalType) characters of A-Z a-z 0-9 - _ ~."
            )
        }
        guard verb.data?.utf8.count ?? 0 <= Limits.signalData else {
            throw WireError(.signalTooLarge, "A signal's data has at most \(Limits.signalData) bytes; split it.")
        }
        let client = member.connection.id
        let event = ServerMessage.session(
            .signal(
                SessionNotice.Signal(session: id, from: client, type: verb.type, data: verb.data)
            ))
        if let to = verb.to {
            guard members[to] != nil else {
                throw WireError(.notFound, "That connection is not in this session any more.")
            }
            turn.send(event, to: to)
        } else {
            broadcast(event, &turn)
        }
        // Said to one alone or to all: what a partner heard belongs in a complaint about it. What he did not hear
        // does not, or twenty lines said to oneself would wash the others out.
        if verb.to.flatMap({ members[$0]?.identity }) != member.identity {
            keepLine(verb, from: member.identity, turn)
        }
    }

    private static func isSignalType(_ type: String) -> Bool {
        type.utf8.count <= Limits.signalType
            && type.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
                    true
                default: false
                }
            }
    }

    // MARK: Moderation

    private mutating func forceDisconnect(_ target: ConnectionID, by member: Member, _ turn: inout Turn)
        throws(WireError)
    {
        try permit(member.capabilities.forceDisconnect, "disconnecting others")
        guard let member = members[target] else {
            throw WireError(.notFound, "That connection is not in this session any more.")
        }
        revoke(member)
        turn.tell(.client(target, .leftSession(id, .forceDisconnected)))
        remove(target, .forceDisconnected, &turn)
    }

    private mutating func forceUnpublish(_ stream: StreamID, by member: Member, _ turn: inout Turn) throws(WireError) {
        try permit(member.capabilities.forceUnpublish, "unpublishing others")
        let owner = try existing(stream).stream.connection
        removeStream(stream, owner: owner, &turn)
        let event = SessionNotice.StreamDestroyed(session: id, stream: stream, reason: .forceUnpublished)
        broadcast(.session(.streamDestroyed(event)), &turn)
    }

    private mutating func forceMute(_ verb: SessionVerb.ForceMute, by member: Member, _ turn: inout Turn)
        throws(WireError)
    {
        try permit(member.capabilities.forceMute, "muting others")
        if let stream = verb.stream {
            let owner = try existing(stream).stream.connection
            turn.send(
                .session(.muted(.init(session: id, active: verb.active, stream: stream))), to: owner)
            if verb.active { silence(stream, &turn) }
            return
        }
        isMuted = verb.active
        broadcast(.session(.muted(.init(session: id, active: verb.active))), &turn)
        guard verb.active else { return }
        let excluded = Set(verb.excluded ?? [])
        for client in order {
            for stream in members[client]?.streams ?? [] where !excluded.contains(stream) {
                turn.send(.session(.muted(.init(session: id, active: true, stream: stream))), to: client)
                silence(stream, &turn)
            }
        }
    }
}
