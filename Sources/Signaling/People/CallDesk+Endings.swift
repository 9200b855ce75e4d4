import Wire

/// Ending calls: which devices are notified, what goes into the call log, and which endings are repeated until they are seen.
extension CallDesk {
    /// How long a missed-call notification stays valid.
    private static let missedNoticeLife: Duration = .seconds(86_400)

    /// - Returns: the call, if the two people were connected in it.
    mutating func over(_ end: CallEnd, _ facts: Facts, _ turn: inout Turn) -> Part? {
        let part = self[end.record.call]
        self[end.record.call] = nil
        if case .entering(let client, let re?, _)? = part?.state {
            wrongCallState(Request(client, re), "This call has ended.", &turn)
        }
        let recipients = recipients(to: end, part, facts)
        var record = end.record
        let isDelivered = part?.ending != nil || recipients.contains { facts.devices.isLive($0.client) }
        record.isSeen = isDelivered && record.outcome != .missed
        if record.outcome != .merged { keep(record, facts, &turn) }
        if let client = part?.ending, let re = part?.endingRequest {
            // Answer only after the end of the call is stored.
            turn.send(.ok(.init(re: re)), to: client)
        }
        let other = turn.project.personID(of: record.other)
        for recipient in recipients {
            let ended = CallNotice.Ended(record, as: recipient.outcome, into: end.into, other)
            turn.send(.call(.ended(ended)), to: recipient.client)
        }
        wake(record, part, facts, &turn)
        if let part, part.direction == .outgoing {
            unanswered.count(record, turn)
            if let other = end.into { merge(into: other, part, facts, &turn) }
        }
        return part.flatMap { $0.acceptedAt == nil ? nil : $0 }
    }

    private struct Recipient {
        var client: ConnectionID
        var outcome: CallOutcome
    }

    /// Returns the devices to notify of the end, each with the outcome to show. These are the devices involved in the call. If
    /// none of them is connected and the person did not end the call, all present devices are notified too. A merged call
    /// continues as another call, so it is reported to involved devices only.
    private func recipients(to end: CallEnd, _ part: Part?, _ facts: Facts) -> [Recipient] {
        let outcome = end.record.outcome
        let present = facts.devices.present.map { Recipient(client: $0, outcome: outcome) }
        guard let part else { return present }
        var clients: Set<ConnectionID> = []
        // The device that decided the outcome. For the other devices it happened elsewhere.
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
        let involved = clients.sorted().filter { facts.devices[$0] != nil }.map { client in
            Recipient(client: client, outcome: (chosen ?? client) == client ? outcome : outcome.elsewhere)
        }
        if part.ending != nil || outcome == .merged || involved.contains(where: { facts.devices.isLive($0.client) }) {
            return involved
        }
        return involved + present.filter { !clients.contains($0.client) }
    }

    private mutating func keep(_ record: CallRecord, _ facts: Facts, _ turn: inout Turn) {
        turn.persist(.callLogged(record, of: facts.id))
        guard !record.isSeen else { return }
        unseen.append(record)
    }

    /// Updates the push notification of the call: withdraws it, or turns it into a missed-call notification.
    private func wake(_ record: CallRecord, _ part: Part?, _ facts: Facts, _ turn: inout Turn) {
        guard let part, part.wasPushed, facts.devices.hasPush else { return }
        let isMissed = record.outcome == .missed
        let expires = isMissed ? turn.now + Self.missedNoticeLife : part.offer.ringsUntil
        turn.push(facts.id, PushNotice(call: part.id, kind: isMissed ? .missed : .over, expires: expires))
    }

    /// Merges two calls that two people placed to each other: the device that placed this call accepts the other one. If that
    /// device has not returned since a server restart, the other call rings on the connected devices instead.
    private mutating func merge(into other: CallID, _ mine: Part, _ facts: Facts, _ turn: inout Turn) {
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

    // MARK: Ending all calls

    /// Ends the calls with a person who was just blocked.
    func endAll(with other: IdentityID, _ facts: Facts, _ turn: inout Turn) {
        for part in parts where part.offer.other.identity == other { end(part, .hungUp, facts, &turn) }
    }

    /// Ends all calls of this person, who is deleted or banned.
    func endAll(_ leaving: CallLeaving, _ facts: Facts, _ turn: inout Turn) {
        for part in parts { end(part, leaving, facts, &turn) }
    }

    private func end(_ part: Part, _ leaving: CallLeaving, _ facts: Facts, _ turn: inout Turn) {
        guard part.ending == nil else { return }
        turn.tell(.call(part.id, .leave(facts.id, leaving)))
    }
}

extension CallOutcome {
    /// The outcome for devices that rang but did not decide the call.
    fileprivate var elsewhere: CallOutcome {
        switch self {
        case .declined: .declinedElsewhere
        case .merged: .answeredElsewhere
        default: self
        }
    }
}
