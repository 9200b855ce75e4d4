import Cluster
import Wire

// Calls that span nodes. The call and its session are on the caller's node. Letters make it ring on the callee's node, and the callee's
// client joins the session from there (`Hub+DistantSessions`).

// MARK: - On the node of the call

extension Hub {
    /// Handles what the callee's node posts to a call of this one.
    mutating func received(_ event: CallEvent, to call: CallID, from tag: NodeTag) {
        guard let own = context.tag, call.isOn(own) else { return context.figures.unexpectedLetters += 1 }
        // The call may have ended meanwhile, or the callee may have come to this node.
        guard let callee = calls.read(call, { $0.distantCallee }) ?? nil, callee.node == tag else { return }
        let isCallees: Bool
        switch event {
        case .answered, .rings, .outOfReach: isCallees = true
        case .accept(let person, _), .leave(let person, _), .away(let person, _), .video(let person, _),
            .rejoin(let person):
            isCallees = person == callee.identity
        case .merge(let other): isCallees = other.isOn(tag)
        case .begin, .restore, .returned, .missed, .calleeElsewhere, .joined, .nodeLost: isCallees = false
        }
        guard isCallees else { return context.figures.unexpectedLetters += 1 }
        context.tell(.call(call, event))
    }
}

// MARK: - On the node of the callee

extension Hub {
    /// Handles what a call on another node posts to a person of this one.
    mutating func receivedForCallee(_ event: PersonCallEvent, _ id: IdentityID, from tag: NodeTag) {
        guard event.call?.isOn(tag) == true else { return context.figures.unexpectedLetters += 1 }
        guard case .asked(var offer) = event else { return context.tell(.person(id, .call(event))) }
        // A call asks once. A second reservation for it would never be released.
        guard people.read(id, { $0.calls[offer.call] == nil }) != false else {
            return context.figures.unexpectedLetters += 1
        }
        // The letter contains a wall-clock time. Limit it, so that no call rings longer than a call of this node.
        offer.ringsUntil = min(
            context.moment.time(atWall: offer.ringsUntil), context.now + context.rules.ringTimeout)
        context.tell(.person(id, .call(.asked(offer))))
    }

    /// Handles a missed call that was not posted by the call's own node: either the callee has moved, or the call's node is lost and
    /// another one has continued the call.
    mutating func receivedMissed(_ end: CallEnd, _ id: IdentityID) {
        guard let own = context.tag, end.isMissed, !end.record.call.isOn(own) else {
            return context.figures.unexpectedLetters += 1
        }
        // While the person is in the call, only the call's node, or the loss of that node, ends it.
        guard people.read(id, { $0.calls[end.record.call] == nil }) != false else { return }
        context.tell(.person(id, .call(.over(end))))
    }
}

// MARK: - When a node or letters are lost

extension Hub {
    /// A node is lost, or letters between it and this node were. In calls that span both nodes, neither node waits for the other any
    /// longer.
    mutating func callsLost(on tag: NodeTag) {
        for call in calls.ids(where: { $0.distantCallee?.node == tag }).sorted() {
            context.tell(.call(call, .nodeLost(tag)))
        }
        for person in people.ids(where: { $0.calls.hasCalls(on: tag) }).sorted() {
            context.tell(.person(person, .call(.nodeLost(tag))))
        }
    }
}

extension PersonCallEvent {
    /// The call, if its node may post this event; otherwise nil.
    fileprivate var call: CallID? {
        switch self {
        case .asked(let offer): offer.call
        case .ring(let call), .ringing(let call, _), .changed(let call, _), .partnerAway(let call, _): call
        case .accepted(let agreement): agreement.call
        case .over(let end): end.record.call
        case .restored, .readmitted, .located, .placed, .notPlaced, .nodeLost: nil
        }
    }
}
