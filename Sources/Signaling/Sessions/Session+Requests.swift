import Wire

/// Handles the requests of a session's members, and checks that each member's role permits them (`SessionRights`).
extension Session {
    mutating func perform(_ verb: SessionVerb, by member: Member, re: UInt64, _ context: inout Context) {
        let client = member.connection.id
        do throws(WireError) {
            switch verb {
            case .publish(let verb):
                return try publish(verb, by: member, re: re, &context)
            case .unpublish(let verb): try unpublish(verb.stream, by: client, &context)
            case .update(let verb): try update(verb, by: client, &context)
            case .subscribe(let verb): try subscribe(verb, by: member, &context)
            case .unsubscribe(let verb): try unsubscribe(verb.stream, by: client, &context)
            case .negotiate(let verb): try negotiate(verb, by: client, &context)
            case .connected(let verb): try connected(verb, by: client)
            case .consent(let verb): consent(verb, by: client, &context)
            case .startArchive(let verb): try startArchive(verb, by: member, &context)
            case .stopArchive(let verb): return try stopArchive(verb.archive, by: member, re: re, &context)
            case .signal(let verb): try signal(verb, by: member, &context)
            case .forceDisconnect(let verb): try forceDisconnect(verb.connection, by: member, &context)
            case .forceUnpublish(let verb): try forceUnpublish(verb.stream, by: member, &context)
            case .forceMute(let verb): try forceMute(verb, by: member, &context)
            // The client's state machine handles these requests.
            case .join, .leave: return
            }
            context.send(.ok(.init(re: re)), to: client)
        } catch {
            context.fail(error, re: re, to: client)
        }
    }

    // MARK: Streams

    private mutating func publish(_ verb: SessionVerb.Publish, by member: Member, re: UInt64, _ context: inout Context)
        throws(WireError)
    {
        try member.rights.permit(.publish)
        try permitMedia(context)
        try permitScreen(verb, by: member)
        try permitBandwidth(video: verb.hasVideo, counting: \.streams, &context)
        guard member.streams.count < context.rules.streamsPerConnection else {
            throw WireError(
                .sessionFull,
                "A connection can publish at most \(context.rules.streamsPerConnection) streams. Unpublish one first.")
        }
        // The first `streamsPerConnection` publications of a member are free. Further ones are charged, together with
        // the later end of the stream.
        if member.publications >= context.rules.streamsPerConnection { try charge(2, context) }
        let client = member.connection.id
        var stream = StreamInfo()
        stream.id = .random(using: &context.random)
        stream.connection = client
        stream.createdAt = context.wallNow
        stream.name = verb.name ?? ""
        stream.initials = verb.initials
        // After a mute of all members, new publishers are muted too. In a routed session the server enforces this.
        stream.hasAudio = verb.hasAudio && !(isRouted && isMuted)
        stream.hasVideo = verb.hasVideo
        stream.videoType = verb.videoType
        stream.width = verb.width
        stream.height = verb.height
        stream.frameRate = verb.frameRate
        var published = Published(stream, mids: isRouted ? verb.mids : MediaMids())
        published.layoutClasses = member.layoutClasses
        streams[stream.id] = published
        members[client]?.streams.append(stream.id)
        members[client]?.publications += 1
        route(published, &context)
        if let stream = sessionStream(published) { forward(.published(stream), &context) }
        report(.streamCreated(stream, of: member.connection), &context)
        context.send(.session(.published(.init(re: re, session: id, stream: stream))), to: client)
        broadcast(
            .session(.streamCreated(.init(session: id, stream: stream))), about: member.number, except: client, &context
        )
        if isMuted {
            context.send(.session(.muted(.init(session: id, active: true, stream: stream.id))), to: client)
        }
        // Its archive may have ended because nobody published.
        recordAutomatically(&context)
    }

    private func owned(_ stream: StreamID, by client: ConnectionID) throws(WireError) -> Published {
        guard let published = streams[stream], published.stream.connection == client else {
            throw WireError(.notFound, "You are not publishing this stream. Send session.publish first.")
        }
        return published
    }

    func existing(_ stream: StreamID) throws(WireError) -> Published {
        guard let published = streams[stream] else {
            throw WireError(.notFound, "This stream is not in the session. Use the ID from session.streamCreated.")
        }
        return published
    }

    private mutating func unpublish(_ stream: StreamID, by client: ConnectionID, _ context: inout Context)
        throws(WireError)
    {
        _ = try owned(stream, by: client)
        removeStream(stream, owner: client, .clientUnpublished, &context)
        let event = SessionNotice.StreamDestroyed(session: id, stream: stream, reason: .clientUnpublished)
        broadcast(.session(.streamDestroyed(event)), about: members[client]?.number, except: client, &context)
    }

    private mutating func removeStream(
        _ stream: StreamID, owner: ConnectionID, _ reason: GoneReason, _ context: inout Context
    ) {
        members[owner]?.streams.removeAll { $0 == stream }
        if let connection = members[owner]?.connection { forget(stream, of: connection, reason, &context) }
    }

    private mutating func update(_ verb: SessionVerb.Update, by client: ConnectionID, _ context: inout Context)
        throws(WireError)
    {
        let published = try owned(verb.stream, by: client)
        // Check the limit when video is turned on too. Otherwise a stream could be published without video to avoid
        // the limit.
        try permitBandwidth(
            video: verb.hasVideo == true && !published.hasHadVideo, counting: \.streams, &context)
        var stream = published.stream
        stream.hasAudio = verb.hasAudio ?? stream.hasAudio
        stream.hasVideo = verb.hasVideo ?? stream.hasVideo
        stream.width = verb.width ?? stream.width
        stream.height = verb.height ?? stream.height
        change(stream, mids: verb.mids, &context)
    }

    private mutating func subscribe(_ verb: SessionVerb.Subscribe, by member: Member, _ context: inout Context)
        throws(WireError)
    {
        try member.rights.permit(.subscribe)
        try permitMedia(context)
        let client = member.connection.id
        let stream = try existing(verb.stream).stream
        let publisher = stream.connection
        guard isRouted || publisher != client else {
            throw WireError(
                .notPermitted,
                "You cannot subscribe to your own stream in a relayed session. Show the local stream instead.")
        }
        // Check the limit only for new subscriptions: an existing one may change, or move to a new peer connection. A
        // stream without video uses little bandwidth, so a subscription to it is accepted even if it requests video.
        if streams[verb.stream]?.subscribers[client] == nil {
            try permitBandwidth(video: verb.video && stream.hasVideo, counting: \.subscriptions, &context)
        }
        var verb = verb
        if !isRouted { verb.mids = MediaMids() }
        let former = streams[verb.stream]?.subscribers.updateValue(verb, forKey: client)
        members[client]?.subscriptions.insert(verb.stream)
        route(verb, by: client, former: former, &context)
        beginWait(client, publisher, context)
        endWait(client, publisher)
        // If only the preference changed, do not notify the publisher. Only the media plane needs the preference.
        if let former, isRouted, (former.audio, former.video) == (verb.audio, verb.video),
            former.preference != verb.preference
        {
            return
        }
        let event = SessionNotice.Subscribed(
            session: id, stream: verb.stream, connection: client, audio: verb.audio, video: verb.video
        )
        context.send(.session(.subscribed(event)), to: publisher)
    }

    private mutating func unsubscribe(_ stream: StreamID, by client: ConnectionID, _ context: inout Context)
        throws(WireError)
    {
        let publisher = try existing(stream).stream.connection
        guard let former = streams[stream]?.subscribers.removeValue(forKey: client) else {
            throw WireError(.notFound, "You are not subscribed to this stream. Send session.subscribe first.")
        }
        members[client]?.subscriptions.remove(stream)
        stopRouting(former, by: client, &context)
        endWait(client, publisher)
        let event = SessionNotice.Unsubscribed(session: id, stream: stream, connection: client)
        context.send(.session(.unsubscribed(event)), to: publisher)
    }

    // MARK: Between connections

    private func negotiate(_ verb: SessionVerb.Negotiate, by client: ConnectionID, _ context: inout Context)
        throws(WireError)
    {
        guard !isRouted else {
            throw WireError(.notPermitted, "This session is routed. Negotiate with the server instead (media.offer).")
        }
        guard members[verb.to] != nil else {
            throw WireError.noConnection
        }
        guard subscribes(client, to: verb.to) || subscribes(verb.to, to: client) else {
            throw WireError(.notPermitted, "Negotiation is allowed only between a publisher and its subscriber.")
        }
        context.send(.session(.negotiate(.init(session: id, from: client, verb))), to: verb.to)
    }

    private func subscribes(_ subscriber: ConnectionID, to publisher: ConnectionID) -> Bool {
        members[publisher]?.streams.contains { streams[$0]?.subscribers[subscriber] != nil } ?? false
    }

    private mutating func signal(_ verb: SessionVerb.Signal, by member: Member, _ context: inout Context)
        throws(WireError)
    {
        try member.rights.permit(.signal)
        try signal(type: verb.type, data: verb.data, from: member.connection.id, to: verb.to, &context)
        // Keep text that the partner received, in case of a report, whether it was sent to one connection or to all.
        // Skip messages that members send to themselves, because these could displace the other lines, of which only
        // the latest are kept.
        if verb.to.flatMap({ members[$0]?.identity }) != member.identity {
            keepLine(verb, from: member.identity, context)
        }
    }

    /// Sends a signal.
    ///
    /// - Parameters:
    ///   - sender: the member that sends the signal; nil if an application's server does.
    ///   - receiver: the member that receives the signal; nil for all.
    mutating func signal(
        type: String?, data: String?, from sender: ConnectionID?, to receiver: ConnectionID?, _ context: inout Context
    ) throws(WireError) {
        if let type, !Self.isSignalType(type) {
            throw WireError(
                .signalInvalid,
                "A signal's type must not exceed \(Limits.signalType) characters. "
                    + "Use only letters (A-Z, a-z), digits, \"-\", \"_\" and \"~\".")
        }
        guard data?.utf8.count ?? 0 <= Limits.signalData else {
            throw WireError(
                .signalTooLarge,
                "A signal's data must not exceed \(Limits.signalData) bytes. Split it into several signals.")
        }
        let signal = SessionNotice.Signal(session: id, from: sender, type: type, data: data)
        if let receiver {
            guard members[receiver] != nil else { throw .noConnection }
            context.send(.session(.signal(signal)), to: receiver)
        } else {
            // Charge the encoded size, which can be larger than the text: JSON encodes a control character in six
            // bytes.
            try charge(textSize: JSONWriter.size(of: data ?? "") + (type?.utf8.count ?? 0), context)
            broadcast(.session(.signal(signal)), &context)
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

    private mutating func forceDisconnect(_ target: ConnectionID, by member: Member, _ context: inout Context)
        throws(WireError)
    {
        try member.rights.permit(.forceDisconnect)
        guard let removed = members[target] else {
            throw WireError.noConnection
        }
        try permitRemoval(of: removed, by: member)
        try disconnect(removed, by: member, &context)
    }

    /// Removes a member and everyone else who joined with the same token, because a token can be shared. Revokes the
    /// token.
    ///
    /// - Parameter moderator: nil if an application's server requests this.
    /// - Throws: `rate_limited` if the project has too many revoked tokens.
    mutating func disconnect(_ member: Member, by moderator: Member?, _ context: inout Context) throws(WireError) {
        try revoke(member, by: moderator.map { .member($0.identity) } ?? .application(apiKey), &context)
        let holders = order.filter { members[$0]?.token.fingerprint == member.token.fingerprint }
        for holder in holders {
            context.tell(.client(holder, .leftSession(id, .forceDisconnected, by: moderator?.connection.id)))
        }
        remove(holders, .forceDisconnected, &context)
    }

    private mutating func forceUnpublish(_ stream: StreamID, by member: Member, _ context: inout Context)
        throws(WireError)
    {
        try member.rights.permit(.forceUnpublish)
        forceEnd(stream, of: try existing(stream).stream.connection, &context)
    }

    /// Ends a stream and notifies everyone, including its publisher.
    mutating func forceEnd(_ stream: StreamID, of owner: ConnectionID, _ context: inout Context) {
        removeStream(stream, owner: owner, .forceUnpublished, &context)
        let event = SessionNotice.StreamDestroyed(session: id, stream: stream, reason: .forceUnpublished)
        broadcast(.session(.streamDestroyed(event)), about: members[owner]?.number, &context)
    }
}

extension WireError {
    static let noConnection = WireError(
        .notFound, "This connection is not in the session. Choose one that is.")
}
