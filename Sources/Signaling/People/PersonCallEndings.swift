import Wire

/// How calls end for a person: which devices hear of it, what goes into the log, and what is told again until it is seen.
extension Person {
    /// Of these it is told again when a device appears; whoever missed more finds them in the log.
    private static let mostUnseenCalls = 100
    /// How long a note of a missed call is of use to a sleeping device.
    private static let missedNoticeLife: Duration = .seconds(86_400)

    mutating func over(_ end: CallEnd, _ turn: inout Turn) {
        let part = calls[end.record.call]
        calls[end.record.call] = nil
        if case .entering(let client, let re?, _)? = part?.state {
            wrongCallState(Request(client, re), "This call is over.", &turn)
        }
        let listeners = listeners(to: end, part)
        var record = end.record
        let isHeard = part?.ending != nil || listeners.contains { isLive($0.client) }
        record.isSeen = isHeard && record.outcome != .missed
        if record.outcome != .merged { keep(record, &turn) }
        if let client = part?.ending, let re = part?.endingRequest {
            // Not before it is stored that the call is over.
            turn.send(.ok(Answer(re: re)), to: client)
        }
        let other = turn.project.personID(of: record.other)
        for listener in listeners {
            let ended = CallEnded(record, as: listener.outcome, into: end.into, other)
            turn.send(.call(.ended(ended)), to: listener.client)
        }
        wake(record, part, &turn)
        if let part, part.direction == .outgoing {
            countVain(record, now: turn.now, turn.rules)
            if let other = end.into { goOn(in: other, part, &turn) }
        }
        if let part, part.acceptedAt != nil {
            meetings.talked(in: part.id, with: part.offer.other.identity, now: turn.now)
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

    private mutating func keep(_ record: CallRecord, _ turn: inout Turn) {
        turn.persist(.callLogged(record, of: id))
        guard !record.isSeen else { return }
        unseenCalls.append(record)
        if unseenCalls.count > Self.mostUnseenCalls { unseenCalls.removeFirst() }
    }

    /// Sleeping devices take their notification back, or say that a call was missed.
    private func wake(_ record: CallRecord, _ part: PersonCalls.Part?, _ turn: inout Turn) {
        guard let part, part.wasPushed, hasPush else { return }
        let isMissed = record.outcome == .missed
        let expires = isMissed ? turn.now + Self.missedNoticeLife : part.offer.ringsUntil
        turn.push(id, PushNotice(call: part.id, kind: isMissed ? .missed : .over, expires: expires))
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
    private mutating func goOn(in other: CallID, _ mine: PersonCalls.Part, _ turn: inout Turn) {
        guard case .placed(let client) = mine.state, var part = calls[other], part.ending == nil else { return }
        guard let client else { return ring(other, &turn) }
        switch part.state {
        case .asked: part.state = .entering(client, re: nil, rung: [])
        case .ringing(let rung): part.state = .entering(client, re: nil, rung: rung)
        case .placed, .entering, .accepted: return
        }
        calls[other] = part
        turn.tell(.call(other, .accept(id, video: mine.offer.video)))
    }

    // MARK: Told again

    /// To a device that appears: how calls ended that nobody was there to hear of.
    func tellUnseenCalls(to client: ConnectionID, _ turn: inout Turn) {
        for record in unseenCalls {
            turn.send(.call(.ended(CallEnded(record, turn.project.personID(of: record.other)))), to: client)
        }
    }

    mutating func seen(_ call: CallID, _ request: Request, _ turn: inout Turn) {
        if let index = unseenCalls.firstIndex(where: { $0.call == call }) {
            unseenCalls.remove(at: index)
            turn.persist(.callSeen(call, by: id))
        }
        turn.ok(request)
    }

    // MARK: For other parts of the person

    /// This person is blocked from now on: whatever there is between the two is over.
    mutating func dropBlocked(_ other: IdentityID, _ turn: inout Turn) {
        for part in calls.parts where part.offer.other.identity == other { endCall(part, .willingly, &turn) }
        removeContact(other, &turn)
        meetings.forget(other)
    }

    /// This person is deleted or banned.
    func endAllCalls(_ leaving: CallLeaving, _ turn: inout Turn) {
        for part in calls.parts { endCall(part, leaving, &turn) }
    }

    private func endCall(_ part: PersonCalls.Part, _ leaving: CallLeaving, _ turn: inout Turn) {
        guard part.ending == nil else { return }
        turn.tell(.call(part.id, .leave(id, leaving)))
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
