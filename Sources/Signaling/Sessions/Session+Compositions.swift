import Wire

/// Informs archives and broadcasts of what happens in their session.
extension Session {
    /// Throws if this session may have no archives and broadcasts.
    func permit<Container: StreamContainer>(_ container: Container.Type, _ context: Context) throws(WireError) {
        guard !isPrivate(context) else {
            throw WireError(Container.conflict, "Roulette chats and calls never have \(Container.noun)s.")
        }
        guard isRouted else {
            throw WireError(
                Container.conflict,
                "This session is relayed, so its media does not go through the server. Create a routed one.")
        }
    }

    /// Whether this is a session of the roulette, of a call or of a legacy client. Their ids say so, except those of calls
    /// that were placed before an upgrade of the server.
    func isPrivate(_ context: Context) -> Bool {
        context.projects[apiKey]?.mayBeRecorded(id) != true || bindings.values.contains { $0.rights == nil }
    }

    /// Reports what has happened to the archives and broadcasts.
    func forward(_ news: SessionNews, _ context: inout Context) {
        for archive in archives { context.tell(.archive(archive.info.archive, .session(news))) }
        for broadcast in broadcasts { context.tell(.broadcast(broadcast.info.broadcast, .session(news))) }
    }

    /// A member accepts or refuses to be recorded, or to be broadcast. The answers are separate: consent to a recording is not
    /// consent to viewers.
    mutating func consent(_ verb: SessionVerb.Consent, by client: ConnectionID, _ context: inout Context) {
        let news = SessionNews.consent(client, verb.accept)
        if verb.broadcast == true {
            guard !broadcasts.isEmpty else { return }
            members[client]?.acceptsBroadcast = verb.accept
            for broadcast in broadcasts { context.tell(.broadcast(broadcast.info.broadcast, .session(news))) }
        } else {
            guard !archives.isEmpty else { return }
            members[client]?.acceptsRecording = verb.accept
            for archive in archives { context.tell(.archive(archive.info.archive, .session(news))) }
        }
    }

    /// A member who has left is asked again if its connection joins again, even if the session is still recorded.
    func forgetConsent(of member: Member, _ context: inout Context) {
        let news = SessionNews.consent(member.connection.id, false)
        if member.acceptsRecording == true {
            for archive in archives { context.tell(.archive(archive.info.archive, .session(news))) }
        }
        if member.acceptsBroadcast == true {
            for broadcast in broadcasts { context.tell(.broadcast(broadcast.info.broadcast, .session(news))) }
        }
    }

    /// The streams of all members, in the order of joining and publishing.
    var presentStreams: [SessionStream] {
        order.flatMap { members[$0]?.streams ?? [] }.compactMap { streams[$0] }.compactMap(sessionStream)
    }

    /// Returns what archives and broadcasts need to know about a stream; nil if its publisher has left.
    func sessionStream(_ published: Published) -> SessionStream? {
        guard let member = members[published.stream.connection] else { return nil }
        let stream = published.stream
        return SessionStream(
            stream.id,
            RecordedStream(
                publisher: stream.connection, connectionData: member.connection.data, videoType: stream.videoType,
                name: stream.name, classes: published.layoutClasses))
    }
}
