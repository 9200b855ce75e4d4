import Wire

/// The people whom a host of a room, or a cohost, mutes or whose screens they stop. `RoomRights` decides whether they may.
extension Room {
    func mute(_ verb: RoomVerb.Target, by member: RoomRoster.Member, _ context: inout Context) throws(WireError) {
        context.tell(.session(session, .room(.mute(try target(verb, by: member)))))
    }

    func stopShare(_ verb: RoomVerb.Target, by member: RoomRoster.Member, _ context: inout Context) throws(WireError) {
        context.tell(.session(session, .room(.stopScreens(try target(verb, by: member)))))
    }

    /// Returns the named person, or everyone but the member if nobody is named.
    private func target(_ verb: RoomVerb.Target, by member: RoomRoster.Member) throws(WireError) -> RoomTarget {
        guard let client = verb.connection else { return .everyone(except: member.binding) }
        return .one(try person(client).binding)
    }
}

extension RoomTarget {
    func includes(_ place: MatchID?) -> Bool {
        switch self {
        case .one(let one): place == one
        case .everyone(let except): place != except
        }
    }
}

/// Mutes streams at the request of a moderator of the session, a host of the session's room, or an application's
/// server.
///
/// A muted publisher's client receives `session.muted` and turns its microphone off. Because a client may ignore this, a
/// routed session also stops forwarding the audio. No one is unmuted by others: each publisher decides that.
extension Session {
    mutating func forceMute(_ verb: SessionVerb.ForceMute, by member: Member, _ context: inout Context)
        throws(WireError)
    {
        try member.rights.permit(.forceMute)
        if let stream = verb.stream {
            let owner = try existing(stream).stream.connection
            context.send(
                .session(.muted(.init(session: id, active: verb.active, stream: stream))), to: owner)
            if verb.active { silence(stream, &context) }
            return
        }
        try setMuted(
            verb.active, by: .member(member.identity), excluding: Set(verb.excluded ?? []), &context)
    }

    /// If `isMuted` is true, mutes all current streams that are not excluded, and all future streams. If it is false,
    /// future streams are no longer muted, but current streams stay muted.
    /// Does nothing if the session is in this state and so is the audio of these streams.
    ///
    /// - Throws: `rate_limited` if a budget is exhausted.
    mutating func setMuted(
        _ isMuted: Bool, by moderator: Moderator, excluding excluded: Set<StreamID>, _ context: inout Context
    ) throws(WireError) {
        let concerned = order.flatMap { members[$0]?.streams ?? [] }.filter { !excluded.contains($0) }
        let isChanged = self.isMuted != isMuted
        // The end of a mute also concerns streams that were muted one by one, because WHIP clients turn their audio on again.
        guard isChanged || concerned.contains(where: { streams[$0]?.stream.hasAudio == isMuted }) else { return }
        // Each muted stream costs a message to its publisher, in addition to the message to all members.
        try charge(1 + (isMuted ? concerned.count / max(1, order.count) : 0), context)
        if isChanged, case .application = moderator { try context.takeDecision(of: apiKey) }
        setMuted(isMuted, by: moderator, &context)
        broadcast(.session(.muted(.init(session: id, active: isMuted))), &context)
        guard isMuted else { return }
        for stream in concerned {
            if let owner = streams[stream]?.stream.connection { mute(stream, of: owner, &context) }
        }
    }

    /// Mutes all streams of one person, or of all people except one, at the request of a host or cohost. `Room` has checked
    /// the rights of the host.
    mutating func mute(_ target: RoomTarget, _ context: inout Context) {
        for member in order.compactMap({ members[$0] }) where target.includes(member.match) {
            for stream in member.streams { mute(stream, of: member.connection.id, &context) }
        }
    }

    /// Mutes one stream. Its publisher may unmute it later.
    mutating func mute(_ stream: StreamID, of owner: ConnectionID, _ context: inout Context) {
        context.send(.session(.muted(.init(session: id, active: true, stream: stream))), to: owner)
        silence(stream, &context)
    }

    /// In a routed session, stops forwarding the audio of a muted stream, even if the publisher's client ignores the
    /// mute. The publisher may unmute the stream later.
    private mutating func silence(_ id: StreamID, _ context: inout Context) {
        guard isRouted, var stream = streams[id]?.stream else { return }
        stream.hasAudio = false
        change(stream, &context)
    }

    /// Stores whether future streams are muted.
    mutating func setMuted(_ isMuted: Bool, by moderator: Moderator, _ context: inout Context) {
        guard self.isMuted != isMuted else { return }
        self.isMuted = isMuted
        context.persist(.muted(id, isMuted, by: moderator, at: context.wallNow))
    }
}
