import Wire

/// Requests that name somebody by a public id: first it is found out who that is, then they go on.
extension Person {
    /// Asks who is known by this id; `introduced` goes on.
    func introduce(_ person: PersonID, for message: ClientMessage, _ request: Request, _ turn: inout Turn) {
        let introduction = Introduction(identity: id, client: request.client, re: request.re, message)
        turn.tell(.lookup(person, .asked(introduction)))
    }

    mutating func introduced(_ introduction: Introduction, to other: IdentityID?, _ turn: inout Turn) {
        let request = introduction.request
        guard let other else { return notFound(request, &turn) }
        switch introduction.message {
        case .presence(let verb):
            introduced(to: other, for: verb, request, &turn)
        case .call(.start(let start)):
            introduced(to: other, for: start, request, &turn)
        default: notFound(request, &turn)
        }
    }

    func notFound(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.notFound, "Nobody is known by this id; check the link."), request)
    }
}
