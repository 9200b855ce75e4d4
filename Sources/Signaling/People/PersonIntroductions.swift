import Wire

/// Requests that name somebody by a public id: first it is found out who that is, then they go on.
extension Person {
    /// Asks who is known by this id; `introduced` goes on.
    func introduce(
        _ person: PersonID, for message: ClientMessage, by client: ConnectionID, re: UInt64,
        into effects: inout [Effect]
    ) {
        effects.tell(.introduce(person, Introduction(identity: id, client: client, re: re, message)))
    }

    mutating func introduced(
        _ introduction: Introduction, to other: IdentityID?, now: Timestamp, _ surroundings: Surroundings,
        into effects: inout [Effect]
    ) {
        let (client, re) = (introduction.client, introduction.re)
        guard let other else { return notFound(re, client, into: &effects) }
        switch introduction.message {
        case .presence(let verb):
            introduced(to: other, for: verb, by: client, re: re, now: now, surroundings, into: &effects)
        case .call(.start(let start)):
            introduced(to: other, for: start, by: client, re: re, now: now, surroundings, into: &effects)
        default: notFound(re, client, into: &effects)
        }
    }

    func notFound(_ re: UInt64, _ client: ConnectionID, into effects: inout [Effect]) {
        effects.fail(WireError(.notFound, "Nobody is known by this id; check the link."), re: re, to: client)
    }
}
