import Wire

/// The effects of a ban on people who are connected. `Gateway+Bans` finds new bans in storage, refuses banned people who
/// connect, and closes the connections of banned addresses.
///
/// `CallState+Incoming` and `RouletteState` apply the ban of a person who is not connected but still known: they call
/// `PersonSnapshot.banError`, so a call gets the same answer as if the person were offline, and the person is not matched.
/// `Match` ends the chat for the partner.
extension Hub {
    /// Applies a ban of an identity, which may be a person's identity or that of a linked device. Ignores a ban of
    /// addresses.
    mutating func banned(_ ban: Ban) {
        guard case .identity(let identity) = ban.subject else { return }
        context.tell(.person(identity, .banned(ban)))
        clients.banned(device: identity, ban, &context)
    }
}

extension Person {
    /// Records the ban. If it is active, also ends the person's chat and calls and disconnects all devices.
    mutating func banned(_ ban: Ban, _ context: inout Context) {
        self.ban = ban.isActive(at: context.wallNow) ? ban : nil
        guard let error = snapshot.banError(context.wallNow) else { return }
        roulette.stop(.banned, notifies: true, snapshot, &context)
        calls.endAll(.hungUp, snapshot, &context)
        for client in devices.clients { context.tell(.client(client, .expel(error, .forbidden))) }
    }
}

extension Clients {
    /// Disconnects the clients on a linked device if the ban of the device's own identity is active. The ban does not
    /// apply to the person to whom the device belongs, who has another identity.
    fileprivate func banned(device: IdentityID, _ ban: Ban, _ context: inout Context) {
        guard ban.isActive(at: context.wallNow) else { return }
        for client in (linked[device] ?? []).sorted() {
            context.tell(.client(client, .expel(.banned(ban, now: context.wallNow), .forbidden)))
        }
    }
}
