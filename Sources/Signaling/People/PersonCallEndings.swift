import Wire

/// How calls end for a person: which devices hear of it, what goes into the log, and what is told again until it is seen.
extension Person {
    /// Of these it is told again when a device appears; whoever missed more finds them in the log.
    private static let mostUnseenCalls = 100
    /// How long a note of a missed call is of use to a sleeping device.
    private static let missedNoticeLife: Duration = .seconds(86_400)

    mutating func over(_ end: CallEnd, now: Timestamp, _ surroundings: Surroundings, into effects: inout [Effect]) {
        let part = calls[end.record.call]
        calls[end.record.call] = nil
        if case .entering(let client, let re?, _)? = part?.state {
            wrongCallState(re, client, "This call is over.", into: &effects)
        }
        let listeners = listeners(to: end, part)
        var record = end.record
        let isHeard = part?.ending != nil || listeners.contains { isLive($0.client) }
        record.isSeen = isHeard && record.outcome != .missed
        if record.outcome != .merged { keep(record, into: &effects) }
        if let client = part?.ending, let re = part?.endingRequest {
            // Not before it is stored that the call is over.
            effects.send(.ok(Answer(re: re)), to: client)
        }
        let other = surroundings.project.personID(of: record.other)
        for listener in listeners {
            let ended = CallEnded(record, as: listener.outcome, into: end.into, other)
            effects.send(.call(.ended(ended)), to: listener.client)
        }
        wake(record, part, now: now, into: &effects)
        if let part, part.direction == .outgoing {
            countVain(record, now: now, surroundings.rules)
            if let other = end.into { goOn(in: other, part, now: now, into: &effects) }
        }
        if let part, part.acceptedAt != nil {
            meetings.talked(in: part.id, with: part.offer.other.identity, now: now)
        }
    }

    private struct Listener {
        var client: ConnectionID
        var outcome: CallOutcome
    }

    private func isLive(_ client: ConnectionID) -> Bool { !(devices[client]?.isDropped ?? true) }

    /// Who hears of it, and what as: the devices that had to do with it, or where none of these is there, whichever are.
    /// What goes on in another call is no end that a person could have missed, so that others are told of that call alone.
    private func listeners(to end: CallEnd, _ part: PersonCalls.Part?) -> [Listener] {
        let outcome = end.record.outcome
        let present = presentDevices.map { Listener(client: $0, outcome: outcome) }
        guard let part else { return present }
        var clients: Set<ConnectionID> = []
        // The one that decided; to the others it happened elsewhere.
        var chosen: ConnectionID?
        switch part.state {
        case .asked: break
        case .ringing(let rung):
            clients = rung
            chosen = part.ending ?? (end.into == nil ? nil : calls.engaged?.holder)
        case .entering(let client, _, let rung): (clients, chosen) = (rung.union([client]), client)
        case .placed(let client), .accepted(let client, _): if let client { clients = [client] }
        }
        if let ending = part.ending { clients.insert(ending) }
        let told = clients.sorted().filter { devices[$0] != nil }.map { client in
            Listener(client: client, outcome: (chosen ?? client) == client ? outcome : outcome.elsewhere)
        }
        if part.ending != nil || outcome == .merged || told.contains(where: { isLive($0.client) }) { return told }
        return told + present.filter { !clients.contains($0.client) }
    }

    private mutating func keep(_ record: CallRecord, into effects: inout [Effect]) {
        effects.append(.persist(.callLogged(record, of: id)))
        guard !record.isSeen else { return }
        unseenCalls.append(record)
        if unseenCalls.count > Self.mostUnseenCalls { unseenCalls.removeFirst() }
    }

    /// Sleeping devices take their notification back, or say that a call was missed.
    private func wake(
        _ record: CallRecord, _ part: PersonCalls.Part?, now: Timestamp, into effects: inout [Effect]
    ) {
        guard let part, part.wasPushed, hasPush else { return }
        let isMissed = record.outcome == .missed
        let expires = isMissed ? now + Self.missedNoticeLife : part.offer.ringsUntil
        effects.append(.push(id, PushNotice(call: part.id, kind: isMissed ? .missed : .over, expires: expires)))
    }

    private mutating func countVain(_ record: CallRecord, now: Timestamp, _ rules: Rules) {
        switch record.outcome {
        case .unanswered, .declined, .cancelled: break
        default: return
        }
        let period = rules.callsInVainPeriod
        calls.inVain = calls.inVain.filter { _, vain in
            vain.until.map { now < $0 } ?? false || vain.times.contains { now - $0 < period }
        }
        guard calls.inVain.count < PersonCalls.mostCalledInVain || calls.inVain[record.other] != nil else { return }
        var vain = calls.inVain[record.other, default: PersonCalls.Vain()]
        vain.times = vain.times.filter { now - $0 < period } + [now]
        if vain.times.count >= rules.callsInVain { vain = PersonCalls.Vain(until: now + period) }
        calls.inVain[record.other] = vain
    }

    /// The two called each other: the device that called is in the other's call. One that did not come back since the server
    /// was started again is not: the other's call rings on those that are here.
    private mutating func goOn(
        in other: CallID, _ mine: PersonCalls.Part, now: Timestamp, into effects: inout [Effect]
    ) {
        guard case .placed(let client) = mine.state, var part = calls[other], part.ending == nil else { return }
        guard let client else { return ring(other, now: now, into: &effects) }
        switch part.state {
        case .asked: part.state = .entering(client, re: nil, rung: [])
        case .ringing(let rung): part.state = .entering(client, re: nil, rung: rung)
        case .placed, .entering, .accepted: return
        }
        calls[other] = part
        effects.tell(.call(other, .accept(id, video: mine.offer.video)))
    }

    // MARK: Told again

    /// To a device that appears: how calls ended that nobody was there to hear of.
    func tellUnseenCalls(to client: ConnectionID, _ project: Project, into effects: inout [Effect]) {
        for record in unseenCalls {
            effects.send(.call(.ended(CallEnded(record, project.personID(of: record.other)))), to: client)
        }
    }

    mutating func seen(_ call: CallID, by client: ConnectionID, re: UInt64, into effects: inout [Effect]) {
        if let index = unseenCalls.firstIndex(where: { $0.call == call }) {
            unseenCalls.remove(at: index)
            effects.append(.persist(.callSeen(call, by: id)))
        }
        effects.send(.ok(Answer(re: re)), to: client)
    }

    // MARK: For other parts of the person

    /// This person is blocked from now on: whatever there is between the two is over.
    mutating func dropBlocked(_ other: IdentityID, now: Timestamp, into effects: inout [Effect]) {
        for part in calls.parts where part.offer.other.identity == other { endCall(part, into: &effects) }
        removeContact(other, into: &effects)
        meetings.forget(other)
    }

    /// This person is deleted or banned.
    func endAllCalls(_ leaving: CallLeaving = .willingly, into effects: inout [Effect]) {
        for part in calls.parts { endCall(part, leaving, into: &effects) }
    }

    private func endCall(
        _ part: PersonCalls.Part, _ leaving: CallLeaving = .willingly, into effects: inout [Effect]
    ) {
        guard part.ending == nil else { return }
        effects.tell(.call(part.id, .leave(id, leaving)))
    }
}

extension PersonCalls.Part {
    /// What one of the person's devices is told while the call goes on.
    func record(_ outcome: CallOutcome) -> CallRecord {
        CallRecord(
            call: id, other: offer.other.identity, otherName: offer.other.name, direction: direction, outcome: outcome,
            video: offer.video, at: offer.placedAt, duration: nil, isSeen: true
        )
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
