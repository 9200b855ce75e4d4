import Wire

/// How calls end for a person: which devices hear of it, what goes into the log, and what is told again until it is seen.
extension CallDesk {
    /// How long a note of a missed call is of use to a sleeping device.
    private static let missedNoticeLife: Duration = .seconds(86_400)

    /// - Returns: the call, if the two were connected in it.
    mutating func over(_ end: CallEnd, _ facts: Facts, _ turn: inout Turn) -> Part? {
        let part = self[end.record.call]
        self[end.record.call] = nil
        if case .entering(let client, let re?, _)? = part?.state {
            wrongCallState(Request(client, re), "This call is over.", &turn)
        }
        let listeners = listeners(to: end, part, facts)
        var record = end.record
        let isHeard = part?.ending != nil || listeners.contains { facts.devices.isLive($0.client) }
        record.isSeen = isHeard && record.outcome != .missed
        if record.outcome != .merged { keep(record, facts, &turn) }
        if let client = part?.ending, let re = part?.endingRequest {
            // Not before it is stored that the call is over.
            turn.send(.ok(.init(re: re)), to: client)
        }
        let other = turn.project.personID(of: record.other)
        for listener in listeners {
            let ended = CallNotice.Ended(record, as: listener.outcome, into: end.into, other)
            turn.send(.call(.ended(ended)), to: listener.client)
        }
        wake(record, part, facts, &turn)
        if let part, part.direction == .outgoing {
            vain.count(record, turn)
            if let other = end.into { goOn(in: other, part, facts, &turn) }
        }
        return part.flatMap { $0.acceptedAt == nil ? nil : $0 }
    }

    private struct Listener {
        var client: ConnectionID
        var outcome: CallOutcome
    }

    /// Who hears of it, and what as: the devices that had to do with it, or where none of these is there, whichever are.
    /// What goes on in another call is no end that a person could have missed, so that others are told of that call alone.
    private func listeners(to end: CallEnd, _ part: Part?, _ facts: Facts) -> [Listener] {
        let outcome = end.record.outcome
        let present = facts.devices.present.map { Listener(client: $0, outcome: outcome) }
        guard let part else { return present }
        var clients: Set<ConnectionID> = []
        // The one that decided; to the others it happened elsewhere.
        var chosen: ConnectionID?
        switch part.state {
        case .asked: break
        case .ringing(let rung):
            clients = rung
            chosen = part.ending ?? (end.into == nil ? nil : engaged?.holder)
        case .entering(let client, _, let rung): (clients, chosen) = (rung.union([client]), client)
        case .placed(let client), .accepted(let client, _): if let client { clients = [client] }
        }
        if let ending = part.ending { clients.insert(ending) }
        let told = clients.sorted().filter { facts.devices[$0] != nil }.map { client in
            Listener(client: client, outcome: (chosen ?? client) == client ? outcome : outcome.elsewhere)
        }
        if part.ending != nil || outcome == .merged || told.contains(where: { facts.devices.isLive($0.client) }) {
            return told
        }
        return told + present.filter { !clients.contains($0.client) }
    }

    private mutating func keep(_ record: CallRecord, _ facts: Facts, _ turn: inout Turn) {
        turn.persist(.callLogged(record, of: facts.id))
        guard !record.isSeen else { return }
        unseen.append(record)
    }

    /// Sleeping devices take their notification back, or say that a call was missed.
    private func wake(_ record: CallRecord, _ part: Part?, _ facts: Facts, _ turn: inout Turn) {
        guard let part, part.wasPushed, facts.devices.hasPush else { return }
        let isMissed = record.outcome == .missed
        let expires = isMissed ? turn.now + Self.missedNoticeLife : part.offer.ringsUntil
        turn.push(facts.id, PushNotice(call: part.id, kind: isMissed ? .missed : .over, expires: expires))
    }

    /// The two called each other: the device that called is in the other's call. One that did not come back since the server
    /// was started again is not: the other's call rings on those that are here.
    private mutating func goOn(in other: CallID, _ mine: Part, _ facts: Facts, _ turn: inout Turn) {
        guard case .placed(let client) = mine.state, var part = self[other], part.ending == nil else { return }
        guard let client else { return ring(other, facts, &turn) }
        switch part.state {
        case .asked: part.state = .entering(client, re: nil, rung: [])
        case .ringing(let rung): part.state = .entering(client, re: nil, rung: rung)
        case .placed, .entering, .accepted: return
        }
        self[other] = part
        turn.tell(.call(other, .accept(facts.id, video: mine.offer.video)))
    }

    mutating func seen(_ call: CallID, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        if unseen.remove(call) { turn.persist(.callSeen(call, by: facts.id)) }
        turn.ok(request)
    }

    // MARK: All of them

    /// This person is blocked from now on.
    func endAll(with other: IdentityID, _ facts: Facts, _ turn: inout Turn) {
        for part in parts where part.offer.other.identity == other { end(part, .willingly, facts, &turn) }
    }

    /// The person of this desk is deleted or banned.
    func endAll(_ leaving: CallLeaving, _ facts: Facts, _ turn: inout Turn) {
        for part in parts { end(part, leaving, facts, &turn) }
    }

    private func end(_ part: Part, _ leaving: CallLeaving, _ facts: Facts, _ turn: inout Turn) {
        guard part.ending == nil else { return }
        turn.tell(.call(part.id, .leave(facts.id, leaving)))
    }
}

extension CallOutcome {
    /// What devices hear that rang beside the one that decided.
    fileprivate var elsewhere: CallOutcome {
        switch self {
        case .declined: .declinedElsewhere
        case .merged: .answeredElsewhere
        default: self
        }
    }
}
