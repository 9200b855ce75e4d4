import Foundation

/// Handles the server's messages about calls.
extension CallCoordinator {
    mutating func handle(_ event: CallServerEvent) {
        switch event {
        case .incoming(let info): incoming(info)
        case .placed(let id, let callID): placed(id, callID)
        case .startRefused(let id, let trouble): startRefused(id, trouble)
        case .ringing(let callID, let devices):
            if let slot = slot(callID: callID) { change(slot) { $0.ringingDevices = devices } }
        case .accepted(let callID, let personID): accepted(callID, personID)
        case .acceptRefused(let callID, let trouble):
            guard let slot = slot(callID: callID), self[slot]?.phase == .answering else { return }
            remove(slot, .failed)
            out.append(.tell(.trouble(trouble)))
        case .rejoinRefused(let callID):
            guard let slot = slot(callID: callID), let phase = self[slot]?.phase else { return }
            guard phase == .rejoining || phase == .placing else { return }
            remove(slot, .failed)
        case .mediaConnected(let callID): mediaConnected(callID)
        case .partner(let callID, let isAway):
            if let slot = slot(callID: callID) { change(slot) { $0.isPartnerAway = isAway } }
        case .ended(let ending): ended(ending)
        }
    }

    // MARK: Outgoing calls

    private mutating func placed(_ id: SystemCallID, _ callID: String) {
        guard let slot = slot(of: id), let call = self[slot] else {
            // The user ended the call before the server knew about it.
            if abandoned.remove(id) != nil { out.append(.send(.cancel(callID: callID))) }
            return
        }
        guard call.callID == nil else {
            // The answer to a rejoin: the call still rings.
            if call.phase == .rejoining { change(slot) { $0.phase = .placing } }
            return
        }
        change(slot) { ($0.callID, $0.pending) = (callID, nil) }
        if let action = call.pending { out.append(.fulfil(action)) }
        if call.phase == .placing {
            guard usesSystem else { return }
            // The start action gave the system only the person's id, which it would display.
            if let person = call.person { out.append(.update(id, person, video: call.video)) }
            out.append(.reportConnecting(id))
        } else {
            sendEnd(slot)
        }
    }

    private mutating func startRefused(_ id: SystemCallID, _ trouble: CallTrouble) {
        guard let slot = slot(of: id), let call = self[slot], call.direction == .outgoing, call.callID == nil else {
            abandoned.remove(id)
            return
        }
        remove(slot, .failed)
        abandoned.remove(id)
        out.append(.tell(.trouble(trouble)))
    }

    // MARK: Accepted calls

    private mutating func accepted(_ callID: String, _ personID: String) {
        if slot(callID: callID) != .current { mergeIfMutual(callID, personID) }
        guard slot(callID: callID) == .current, let call = current else {
            // This device is not in the call, so the other person must not wait.
            if slot(callID: callID) == nil { out.append(.send(.end(callID: callID))) }
            return
        }
        switch call.phase {
        case .answering, .placing, .rejoining: break
        case .reported, .ringing, .connecting, .active, .held, .ending: return
        }
        stopTimer(.current)
        if let action = call.pending { out.append(.fulfil(action)) }
        if call.isMutual { reportConnected(.current) }
        leave(.current)
        change(.current) { ($0.phase, $0.pending, $0.hasJoined) = (.connecting, nil, true) }
        out += [.join(call.id), .publish(call.id, video: call.sendsVideo)]
        tellVideo()
    }

    /// Handles two people calling each other: the server accepted one of the two calls for both. This device's own
    /// system call continues as that one.
    private mutating func mergeIfMutual(_ callID: String, _ personID: String) {
        guard let call = current, call.direction == .outgoing, call.phase == .placing || call.phase == .rejoining else {
            return
        }
        // A call to a third person is not mutual.
        guard call.callID != nil, call.person?.id == personID else { return }
        if slot(callID: callID) == .waiting { remove(.waiting, .answeredElsewhere) }
        change(.current) { ($0.callID, $0.isMutual) = (callID, true) }
    }

    private mutating func reportConnected(_ slot: Slot) {
        guard usesSystem, let call = self[slot], call.direction == .outgoing, !call.isReportedConnected else { return }
        change(slot) { $0.isReportedConnected = true }
        out.append(.reportConnected(call.id))
    }

    private mutating func mediaConnected(_ callID: String) {
        guard let slot = slot(callID: callID), let call = self[slot], call.hasJoined else { return }
        change(slot) {
            $0.isConnected = true
            if $0.phase == .connecting { $0.phase = .active }
        }
        reportConnected(slot)
    }

    // MARK: Ended calls

    private mutating func ended(_ ending: EndedCall) {
        guard let slot = slot(callID: ending.callID), let call = self[slot] else {
            // The call ended before this device showed it, or after this device left it. Merged calls continue.
            if ending.reason != .merged { out.append(.show(ending)) }
            return
        }
        if ending.reason == .merged, let into = ending.into, call.direction == .outgoing || call.hasJoined {
            return continueAs(into, slot)
        }
        let isShown = ending.reason != .merged
        // The system's reason for a call that rang here and was merged: it continues as the outgoing call.
        let isRinging = call.phase == .reported || call.phase == .ringing
        remove(slot, ending.reason == .merged && isRinging ? .answeredElsewhere : ending.reason.forSystem)
        if isShown { out.append(.show(ending)) }
    }

    /// Continues the call under the id of the other one, which the server accepts for both people.
    private mutating func continueAs(_ callID: String, _ slot: Slot) {
        guard let call = self[slot] else { return }
        if let other = self.slot(callID: callID), other != slot { remove(other, .answeredElsewhere) }
        guard let now = self.slot(of: call.id) else { return }
        leave(now)
        change(now) {
            ($0.callID, $0.isMutual) = (callID, true)
            if $0.phase != .ending { $0.phase = .placing }
        }
    }
}
