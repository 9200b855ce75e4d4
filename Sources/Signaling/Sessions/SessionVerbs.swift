import Wire

/// What a member of a session may ask for, each judged by the member's role (OpenTok's, `Capabilities`).
extension Session {
    mutating func perform(
        _ message: ClientMessage, by member: Member, re: UInt64, now: Timestamp, _ rules: Rules,
        using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        let client = member.connection.id
        do throws(WireError) {
            switch message {
            case .publish(let verb):
                return try publish(verb, by: member, re: re, now: now, rules, using: &generator, into: &effects)
            case .unpublish(let verb): try unpublish(verb.stream, by: client, into: &effects)
            case .update(let verb): try update(verb, by: client, into: &effects)
            case .subscribe(let verb): try subscribe(verb, by: member, now: now, rules, into: &effects)
            case .unsubscribe(let verb): try unsubscribe(verb.stream, by: client, into: &effects)
            case .negotiate(let verb): try negotiate(verb, by: client, into: &effects)
            case .connected(let verb): try connected(verb, by: client)
            case .signal(let verb): try signal(verb, by: member, now: now, rules, into: &effects)
            case .forceDisconnect(let verb): try forceDisconnect(verb.connection, by: member, into: &effects)
            case .forceUnpublish(let verb): try forceUnpublish(verb.stream, by: member, into: &effects)
            case .forceMute(let verb): try forceMute(verb, by: member, into: &effects)
            default: throw WireError(.unknownType, "A session does not know \"\(message.type)\".")
            }
            effects.send(.ok(Answer(re: re)), to: client)
        } catch {
            effects.fail(error, re: re, to: client)
        }
    }

    private func permit(_ allowed: Bool, _ deed: String) throws(WireError) {
        guard allowed else { throw WireError(.notPermitted, "The token's role does not allow \(deed).") }
    }

    // MARK: Streams

    private mutating func publish(
        _ verb: Publish, by member: Member, re: UInt64, now: Timestamp, _ rules: Rules,
        using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) throws(WireError) {
        try permit(member.capabilities.publish, "publishing")
        try permitMedia(rules)
        guard member.streams.count < rules.streamsPerConnection else {
            throw WireError(
                .sessionFull, "A connection may publish \(rules.streamsPerConnection) streams; unpublish one.")
        }
        let client = member.connection.id
        var stream = Stream()
        stream.id = .random(using: &generator)
        stream.connection = client
        stream.createdAt = now
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
        route(published, into: &effects)
        effects.send(.published(Wire.Published(re: re, session: id, stream: stream)), to: client)
        broadcast(.streamCreated(WithStream(session: id, stream: stream)), except: client, into: &effects)
        if isMuted {
            effects.send(.muted(Muted(session: id, active: true, stream: stream.id)), to: client)
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

    private mutating func unpublish(
        _ stream: StreamID, by client: ConnectionID, into effects: inout [Effect]
    ) throws(WireError) {
        _ = try owned(stream, by: client)
        removeStream(stream, owner: client, into: &effects)
        let event = StreamDestroyed(session: id, stream: stream, reason: .clientUnpublished)
        broadcast(.streamDestroyed(event), except: client, into: &effects)
    }

    private mutating func removeStream(_ stream: StreamID, owner: ConnectionID, into effects: inout [Effect]) {
        members[owner]?.streams.removeAll { $0 == stream }
        forget(stream, into: &effects)
    }

    private mutating func update(
        _ verb: Update, by client: ConnectionID, into effects: inout [Effect]
    ) throws(WireError) {
        var stream = try owned(verb.stream, by: client).stream
        stream.hasAudio = verb.hasAudio ?? stream.hasAudio
        stream.hasVideo = verb.hasVideo ?? stream.hasVideo
        stream.width = verb.width ?? stream.width
        stream.height = verb.height ?? stream.height
        change(stream, mids: verb.mids, into: &effects)
    }

    private mutating func subscribe(
        _ verb: Subscribe, by member: Member, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) throws(WireError) {
        try permit(member.capabilities.subscribe, "subscribing")
        try permitMedia(rules)
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
        route(verb, by: client, former: former, into: &effects)
        beginWait(client, publisher, now: now, rules)
        endWait(client, publisher)
        // Which picture somebody would like is the server's business.
        if let former, isRouted, (former.audio, former.video) == (verb.audio, verb.video),
            former.preference != verb.preference
        {
            return
        }
        let event = Subscribed(
            session: id, stream: verb.stream, connection: client, audio: verb.audio, video: verb.video
        )
        effects.send(.subscribed(event), to: publisher)
    }

    private mutating func unsubscribe(
        _ stream: StreamID, by client: ConnectionID, into effects: inout [Effect]
    ) throws(WireError) {
        let publisher = try existing(stream).stream.connection
        guard let former = streams[stream]?.subscribers.removeValue(forKey: client) else {
            throw WireError(.notFound, "This connection does not subscribe to that stream.")
        }
        members[client]?.subscriptions.remove(stream)
        stopRouting(former, by: client, into: &effects)
        endWait(client, publisher)
        let event = Unsubscribed(session: id, stream: stream, connection: client)
        effects.send(.unsubscribed(event), to: publisher)
    }

    // MARK: Between two connections

    private func negotiate(
        _ verb: Negotiate, by client: ConnectionID, into effects: inout [Effect]
    ) throws(WireError) {
        guard !isRouted else {
            throw WireError(.notPermitted, "This session's media is routed; negotiate with the server by media.offer.")
        }
        guard members[verb.to] != nil else {
            throw WireError(.notFound, "That connection is not in this session any more.")
        }
        guard subscribes(client, to: verb.to) || subscribes(verb.to, to: client) else {
            throw WireError(.notPermitted, "Only connections of which one subscribes to the other negotiate.")
        }
        effects.send(.negotiate(Negotiation(session: id, from: client, verb)), to: verb.to)
    }

    private func subscribes(_ subscriber: ConnectionID, to publisher: ConnectionID) -> Bool {
        members[publisher]?.streams.contains { streams[$0]?.subscribers[subscriber] != nil } ?? false
    }

    private mutating func signal(
        _ verb: Signal, by member: Member, now: Timestamp, _ rules: Rules, into effects: inout [Effect]
    ) throws(WireError) {
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
        let event = ServerMessage.signal(
            SignalReceived(session: id, from: client, type: verb.type, data: verb.data)
        )
        if let to = verb.to {
            guard members[to] != nil else {
                throw WireError(.notFound, "That connection is not in this session any more.")
            }
            effects.send(event, to: to)
        } else {
            broadcast(event, into: &effects)
        }
        // Said to one alone or to all: what a partner heard belongs in a complaint about it. What he did not hear
        // does not, or twenty lines said to oneself would wash the others out.
        if verb.to.flatMap({ members[$0]?.identity }) != member.identity {
            keepLine(verb, from: member.identity, now: now, rules)
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

    private mutating func forceDisconnect(
        _ target: ConnectionID, by member: Member, into effects: inout [Effect]
    ) throws(WireError) {
        try permit(member.capabilities.forceDisconnect, "disconnecting others")
        guard let member = members[target] else {
            throw WireError(.notFound, "That connection is not in this session any more.")
        }
        revoke(member)
        effects.tell(.client(target, .leftSession(id, .forceDisconnected)))
        remove(target, .forceDisconnected, into: &effects)
    }

    private mutating func forceUnpublish(
        _ stream: StreamID, by member: Member, into effects: inout [Effect]
    ) throws(WireError) {
        try permit(member.capabilities.forceUnpublish, "unpublishing others")
        let owner = try existing(stream).stream.connection
        removeStream(stream, owner: owner, into: &effects)
        let event = StreamDestroyed(session: id, stream: stream, reason: .forceUnpublished)
        broadcast(.streamDestroyed(event), into: &effects)
    }

    private mutating func forceMute(
        _ verb: ForceMute, by member: Member, into effects: inout [Effect]
    ) throws(WireError) {
        try permit(member.capabilities.forceMute, "muting others")
        if let stream = verb.stream {
            let owner = try existing(stream).stream.connection
            effects.send(.muted(Muted(session: id, active: verb.active, stream: stream)), to: owner)
            if verb.active { silence(stream, into: &effects) }
            return
        }
        isMuted = verb.active
        broadcast(.muted(Muted(session: id, active: verb.active)), into: &effects)
        guard verb.active else { return }
        let excluded = Set(verb.excluded ?? [])
        for client in order {
            for stream in members[client]?.streams ?? [] where !excluded.contains(stream) {
                effects.send(.muted(Muted(session: id, active: true, stream: stream)), to: client)
                silence(stream, into: &effects)
            }
        }
    }
}
