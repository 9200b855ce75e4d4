import Wire

/// Whether a person would see a warning.
package enum WarningReach: Equatable, Sendable {
    /// At least one of the connected clients shows it.
    case shown
    /// All connected clients ignore it, as older ones and RouletteTok's do.
    case ignored
    case notConnected
}

/// What the shell needs to know to accept a sample, or to send a warning.
extension Hub {
    /// Returns whose camera a sample with this token shows; nil if the chat is over, or the token is not one to publish in a chat.
    package func sampleSource(for grant: SessionGrant) -> SampleSource? {
        guard let match = grant.match, let holder = grant.holder, grant.role == .publisher,
            let person = chattingHere(in: match).first(where: { context.project.holder($0, of: match) == holder })
        else { return nil }
        return SampleSource(match: match, person: person, session: grant.session)
    }

    /// The people of this node in a match, which may be on another one.
    private func chattingHere(in match: MatchID) -> [IdentityID] {
        if let person = distantSessions.chats[match] { return [person] }
        let sides = matches.read(match) { $0.sides } ?? []
        return sides.map(\.identity).filter { people.contains($0) }
    }

    /// Returns whether a warning to this person would be seen: whether they have a connection to this server, and one of a client that
    /// shows warnings.
    package func warningReach(_ person: IdentityID) -> WarningReach {
        let live = people.read(person) { person in
            person.devices.clients.filter { person.devices.isLive($0) }.compactMap { person.devices[$0] }
        }
        guard let live, !live.isEmpty else { return .notConnected }
        return live.contains(where: \.showsWarnings) ? .shown : .ignored
    }

    /// The number of sides of video chats from which no sample came although the server checks them.
    public var unsampledChats: Int { context.figures.unsampledChats }
}
