import Wire

/// The session of a room, where roles can change and the room's rules apply to moderation.
extension Session {
    mutating func handle(_ event: RoomSessionEvent, _ context: inout Context) {
        switch event {
        case .place(let place, let rights):
            bindings[place, default: Binding(places: 1)].rights = rights
            for client in order where members[client]?.match == place {
                members[client]?.rights = SessionRights(rights.role.sessionRole)
            }
            endForbiddenScreens(&context)
        case .placeClosed(let place, let reason): close(place, as: reason, &context)
        case .mute(let target): mute(target, &context)
        case .stopScreens(let target): endScreens(&context) { target.includes($0.match) }
        case .screens(let onlyOfHosts):
            hasScreensOnlyOfHosts = onlyOfHosts
            endForbiddenScreens(&context)
        }
    }

    /// Throws if the room lets only hosts and cohosts share screens and this member is neither. A client that
    /// declares its screen as a camera cannot be detected.
    func permitScreen(_ verb: SessionVerb.Publish, by member: Member) throws(WireError) {
        guard verb.videoType == .screen, !mayShareScreen(member) else { return }
        throw WireError(.notPermitted, "Only hosts and cohosts may share a screen in this room. Ask one of them.")
    }

    private func mayShareScreen(_ member: Member) -> Bool {
        !hasScreensOnlyOfHosts || roomRights(of: member)?.mayShareScreens(.hosts) ?? false
    }

    /// Throws if the session belongs to a room that does not allow this moderator to remove this person.
    func permitRemoval(of member: Member, by moderator: Member) throws(WireError) {
        guard let rights = roomRights(of: moderator), let others = roomRights(of: member) else { return }
        try rights.permit(.remove(others))
    }

    private func roomRights(of member: Member) -> RoomRights? { member.match.flatMap { bindings[$0]?.rights } }

    private mutating func endForbiddenScreens(_ context: inout Context) {
        guard hasScreensOnlyOfHosts else { return }
        let forbidden = Set(order.filter { members[$0].map { !mayShareScreen($0) } ?? false })
        endScreens(&context) { forbidden.contains($0.connection.id) }
    }

    private mutating func endScreens(_ context: inout Context, of isConcerned: (Member) -> Bool) {
        for member in order.compactMap({ members[$0] }) where isConcerned(member) {
            for stream in member.streams where streams[stream]?.stream.videoType == .screen {
                forceEnd(stream, of: member.connection.id, &context)
            }
        }
    }
}
