import Cluster
import Wire

/// Handles the end of calls: which devices are notified, what is logged, and which ended calls are sent again until a device
/// marks them as seen.
extension CallState {
    /// How long the push services may keep trying to deliver a missed-call notification.
    private static let missedNoticeLife: Duration = .seconds(86_400)

    /// Handles the end of a call: removes it, logs it, notifies devices, and updates the push notification.
    ///
    /// - Returns: the call if it had been accepted, otherwise nil.
    mutating func over(_ end: CallEnd, _ snapshot: PersonSnapshot, _ context: inout Context) -> Part? {
        let part = self[end.record.call]
        guard part != nil || !hasEnded(end.record.call) else { return nil }
        self[end.record.call] = nil
        if case .entering(let client, let re?, _)? = part?.state {
            wrongCallState(Request(client, re), "This call has already ended.", &context)
        }
        let recipients = recipients(to: end, part, snapshot)
        var record = end.record
        let isDelivered = part?.ending != nil || recipients.contains { snapshot.devices.isLive($0.client) }
        record.isSeen = isDelivered && record.outcome != .missed
        if record.outcome != .merged { keep(record, snapshot, &context) }
        if let client = part?.ending, let re = part?.endingRequest {
            // Answer only after the end of the call is stored.
            context.send(.ok(.init(re: re)), to: client)
        }
        let other = context.project.personID(of: record.other)
        for recipient in recipients {
            let ended = CallNotice.Ended(record, as: recipient.outcome, into: end.into, other)
            context.send(.call(.ended(ended)), to: recipient.client)
        }
        wake(record, part, snapshot, &context)
        if let part, part.direction == .outgoing {
            unanswered.count(record, context)
            if let other = end.into { merge(into: other, part, snapshot, &context) }
        }
        return part.flatMap { $0.acceptedAt == nil ? nil : $0 }
    }

    /// A device to notify of the end of a call.
    private struct Recipient {
        var client: ConnectionID
        var outcome: CallOutcome
    }

    /// Returns the devices to notify that a call has ended, each with the outcome to show.
    ///
    /// Normally these are the devices involved in the call. All online devices are notified instead if this person has
    /// no record of the call. They are notified too if none of the involved devices is connected, unless this person
    /// ended the call, or the call was merged and so continues as another call.
    private func recipients(to end: CallEnd, _ part: Part?, _ snapshot: PersonSnapshot) -> [Recipient] {
        let outcome = end.record.outcome
        let present = snapshot.devices.present.map { Recipient(client: $0, outcome: outcome) }
        guard let part else { return present }
        var clients: Set<ConnectionID> = []
        // The device that accepted or declined the call, or that is in the call with which this call is merged. The
        // other devices show that the call was handled elsewhere. If nil, all devices show the same outcome.
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
        let involved = clients.sorted().filter { snapshot.devices[$0] != nil }.map { client in
            Recipient(client: client, outcome: (chosen ?? client) == client ? outcome : outcome.elsewhere)
        }
        if part.ending != nil || outcome == .merged || involved.contains(where: { snapshot.devices.isLive($0.client) })
        {
            return involved
        }
        return involved + present.filter { !clients.contains($0.client) }
    }

    private mutating func keep(_ record: CallRecord, _ snapshot: PersonSnapshot, _ context: inout Context) {
        context.persist(.callLogged(record, of: snapshot.id))
        guard !record.isSeen else { return }
        unseen.append(record)
    }

    /// Updates the push notification that announced the call: withdraws it, or replaces it with a missed-call
    /// notification.
    private func wake(_ record: CallRecord, _ part: Part?, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let part, part.wasPushed, snapshot.devices.hasPush else { return }
        let isMissed = record.outcome == .missed
        let expires = isMissed ? context.now + Self.missedNoticeLife : part.offer.ringsUntil
        context.push(snapshot.id, PushNotice(call: part.id, kind: isMissed ? .missed : .over, expires: expires))
    }

    /// Withdraws the push notifications of ringing calls.
    func withdrawPushes(_ snapshot: PersonSnapshot, _ context: inout Context) {
        for part in parts where part.wasPushed && snapshot.devices.hasPush {
            context.push(snapshot.id, PushNotice(call: part.id, kind: .over, expires: part.offer.ringsUntil))
        }
    }

    /// Merges the calls that two people placed to each other: the device that placed this call accepts the other call. If that
    /// device has not reconnected since a server restart, the other call rings on the connected devices instead.
    private mutating func merge(into other: CallID, _ mine: Part, _ snapshot: PersonSnapshot, _ context: inout Context)
    {
        guard case .placed(let client) = mine.state, var part = self[other], part.ending == nil else { return }
        guard let client else { return ring(other, snapshot, &context) }
        switch part.state {
        case .asked: part.state = .entering(client, re: nil, rung: [])
        case .ringing(let rung): part.state = .entering(client, re: nil, rung: rung)
        case .placed, .entering, .accepted: return
        }
        self[other] = part
        context.tell(.call(other, .accept(snapshot.id, video: mine.offer.video)))
    }

    mutating func seen(_ call: CallID, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        if unseen.remove(call) { context.persist(.callSeen(call, by: snapshot.id)) }
        context.ok(request)
    }

    // MARK: Lost nodes

    /// Whether this person is in a call of that node.
    func hasCalls(on node: NodeTag) -> Bool { parts.contains { $0.id.isOn(node) } }

    /// Handles the loss of a node that has calls of this person. A device in such a call reconnects and rejoins the call on the node that
    /// restores it. If only letters were lost, that is still the call's node.
    ///
    /// - Returns: the outcomes of calls that were ringing, or that this person was ending.
    mutating func nodeLost(
        _ node: NodeTag, _ snapshot: PersonSnapshot, _ context: inout Context
    ) -> [CallEnd] {
        var ends: [CallEnd] = []
        for part in parts where part.id.isOn(node) {
            if part.isEngaged, part.ending == nil {
                self[part.id] = nil
                stopRinging(part, snapshot, &context)
                guard let client = part.holder else { continue }
                context.tell(.client(client, .expel(.placesUnavailable, .serviceRestart)))
            } else {
                ends.append(CallEnd(record: lostRecord(of: part, context), into: nil))
                endedByLoss.append(part.id)
                if endedByLoss.count > Self.maxCalls { endedByLoss.removeFirst() }
            }
        }
        return ends
    }

    /// Whether this call has ended for this person, although it may continue for the other one.
    func hasEnded(_ call: CallID) -> Bool { endedByLoss.contains(call) || unseen.contains(call) }

    private func lostRecord(of part: Part, _ context: Context) -> CallRecord {
        let duration = part.acceptedAt.map { max(.zero, context.wallNow - $0) }
        return CallRecord(
            call: part.id, other: part.offer.other.identity, otherName: part.offer.other.name,
            direction: part.direction, outcome: duration == nil ? .missed : .connectionLost, video: part.offer.video,
            at: part.offer.placedAt, duration: duration, isSeen: false)
    }

    // MARK: Ending all calls

    /// Ends all calls with `other`, whom this person has just blocked.
    func endAll(with other: IdentityID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        for part in parts where part.offer.other.identity == other { end(part, .hungUp, snapshot, &context) }
    }

    /// Ends all calls of this person. `leaving` says how the person leaves them.
    func endAll(_ leaving: CallLeaving, _ snapshot: PersonSnapshot, _ context: inout Context) {
        for part in parts { end(part, leaving, snapshot, &context) }
    }

    private func end(_ part: Part, _ leaving: CallLeaving, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard part.ending == nil else { return }
        context.tell(.call(part.id, .leave(snapshot.id, leaving)))
    }
}

extension CallOutcome {
    /// The outcome to show on devices that rang while another device accepted or declined the call.
    fileprivate var elsewhere: CallOutcome {
        switch self {
        case .declined: .declinedElsewhere
        case .merged: .answeredElsewhere
        default: self
        }
    }
}
