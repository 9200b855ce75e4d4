import Wire

/// A session and who is in it, for the operator's page.
package struct SessionOverview: Equatable, Sendable {
    /// A connection in the session.
    package struct Member: Equatable, Sendable {
        /// The connection's id.
        package var connection: ConnectionID
        /// The person's identity.
        package var identity: IdentityID
        /// The name of a person in a room; empty for all others.
        package var name = ""
        /// When the connection joined the session.
        package var joinedAt: Timestamp
        /// Whether the client has dropped and may come back.
        package var isReconnecting: Bool
        /// The streams that the connection publishes.
        package var streams: [StreamInfo]
        /// The number of streams that the connection subscribes to.
        package var subscriptions: Int
    }

    /// The session's id.
    package var id: SessionID
    /// The API key of the session's project.
    package var apiKey: String
    /// The media mode, after a fallback the present one.
    package var mediaMode: MediaMode
    /// The room whose session this is; nil if it is none of a room.
    package var room: RoomName?
    /// Whether at least one archive of the session runs.
    package var isRecorded: Bool
    /// Whether at least one broadcast of the session runs.
    package var isBroadcast: Bool
    /// The number of all members.
    package var memberCount: Int
    /// The number of all streams.
    package var streamCount: Int
    /// The members in the order of joining, up to a limit.
    package var members: [Member]
}

extension Hub {
    /// Returns sessions, those with the most members first, and how many sessions have members in all.
    ///
    /// - Parameters:
    ///   - first: how many sessions to leave out: those before this page.
    ///   - limit: the maximum number of sessions.
    ///   - members: the maximum number of members of each session.
    package func sessionOverviews(
        from first: Int = 0, limit: Int, members: Int
    ) -> (count: Int, sessions: [SessionOverview]) {
        var sizes: [(id: SessionID, members: Int)] = []
        sessions.forEach { if !$0.members.isEmpty { sizes.append(($0.id, $0.members.count)) } }
        let largest = sizes.sorted { ($1.members, $0.id.text) < ($0.members, $1.id.text) }
            .dropFirst(max(0, first)).prefix(max(0, limit))
        var names: [SessionID: RoomName] = [:]
        rooms.forEach { names[$0.session] = $0.name }
        let overviews = largest.compactMap { size in
            sessions.read(size.id) { session in
                let room = names[session.id]
                let people = room.flatMap { rooms.read($0) { $0.roster.people } } ?? []
                let named = Dictionary(people.map { ($0.connection, $0.displayName) }) { first, _ in first }
                return session.overview(members: members, in: room, named: named)
            }
        }
        return (sizes.count, overviews)
    }
}

extension Hub {
    /// A number that differs when ``sessionOverviews(from:limit:members:)`` does, except by a rare chance. It is only comparable with
    /// others of this process.
    package var overviewMark: Int {
        var hasher = Hasher()
        sessions.forEach { if !$0.members.isEmpty { $0.mark(&hasher) } }
        return hasher.finalize()
    }
}

extension Session {
    fileprivate func mark(_ hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(mediaMode)
        hasher.combine(archives.count)
        hasher.combine(broadcasts.count)
        for connection in order {
            guard let member = members[connection] else { continue }
            hasher.combine(connection)
            hasher.combine(member.isDropped)
            hasher.combine(member.subscriptions.count)
            for id in member.streams {
                hasher.combine(id)
                hasher.combine(streams[id]?.stream.hasAudio)
                hasher.combine(streams[id]?.stream.hasVideo)
            }
        }
    }

    fileprivate func overview(
        members limit: Int, in room: RoomName?, named names: [ConnectionID: String]
    ) -> SessionOverview {
        let shown = order.prefix(max(0, limit)).compactMap { id in
            members[id].map { member in
                SessionOverview.Member(
                    connection: id, identity: member.identity, name: names[id] ?? "",
                    joinedAt: member.connection.createdAt, isReconnecting: member.isDropped,
                    streams: member.streams.compactMap { streams[$0]?.stream },
                    subscriptions: member.subscriptions.count)
            }
        }
        return SessionOverview(
            id: id, apiKey: apiKey, mediaMode: mediaMode, room: room, isRecorded: !archives.isEmpty,
            isBroadcast: !broadcasts.isEmpty, memberCount: members.count, streamCount: streams.count, members: shown)
    }
}
