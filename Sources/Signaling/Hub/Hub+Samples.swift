import Wire

/// What the shell needs to know to accept a sample, or to send a warning.
extension Hub {
    /// Returns whose camera a sample with this token shows; nil if the chat is over, or the token is not one to publish in a chat.
    package func sampleSource(for grant: SessionGrant) -> SampleSource? {
        guard let match = grant.match, let holder = grant.holder, grant.role == .publisher,
            let people = matches.read(match, { $0.people }),
            let person = people.first(where: { context.project.holder($0, of: match) == holder })
        else { return nil }
        return SampleSource(match: match, person: person, session: grant.session)
    }

    /// Returns whether this person has a connection to this server, so that a warning can reach them.
    package func isConnected(_ person: IdentityID) -> Bool {
        people.read(person) { person in person.devices.clients.contains { person.devices.isLive($0) } } ?? false
    }

    /// The number of sides of video chats from which no sample came although the server checks them.
    public var unsampledChats: Int { context.figures.unsampledChats }
}
