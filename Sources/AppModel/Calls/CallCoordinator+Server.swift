import Confab
import Foundation

/// Handles what the SDK reports about calls.
extension CallCoordinator {
    mutating func handle(_ event: CallServerEvent) {
        switch event {
        case .incoming(let call): incoming(call)
        case .placed(let id, let call): placed(id, call)
        case .startRefused(let id, let error): startRefused(id, error)
        case .acceptRefused(let callID, let error):
            guard let slot = slot(callID: callID), self[slot]?.phase == .answering else { return }
            remove(slot, .failed)
            out.append(.tell(.trouble(error)))
        case .changed(let call):
            let known = slot(callID: call.id) ?? call.formerID.flatMap { slot(callID: $0) }
            if let known { changed(known, call) }
        case .ended(let ending):
            if let slot = slot(callID: ending.id) { remove(slot, SystemEndReason(ending.outcome)) }
            // Show the end of every call except a merged one, which continues. A call without a slot ended before this
            // device showed it, or after the user ended it.
            if ending.outcome != .merged { out.append(.show(ending)) }
        }
    }

    // MARK: Outgoing calls

    private mutating func placed(_ id: SystemCallID, _ call: Call) {
        guard let slot = slot(of: id), let known = self[slot] else {
            // The user ended the call before the server knew about it.
            if abandoned.remove(id) != nil { out.append(.send(.end(call.id))) }
            return
        }
        guard known.callID == nil else { return }
        change(slot) { ($0.callID, $0.person, $0.pending) = (call.id, call.person, nil) }
        if let action = known.pending { out.append(.fulfil(action)) }
        guard known.phase == .placing else { return sendEnd(slot) }
        if usesSystem {
            // The start action gave the system only the person's id, which it would display. Send the name.
            out += [.update(id, call.person, video: known.video), .reportConnecting(id)]
        }
        changed(slot, call)
    }

    private mutating func startRefused(_ id: SystemCallID, _ error: ConfabError) {
        guard let slot = slot(of: id), let call = self[slot], call.direction == .outgoing, call.callID == nil else {
            abandoned.remove(id)
            return
        }
        remove(slot, .failed)
        abandoned.remove(id)
        out.append(.tell(.trouble(error)))
    }

    // MARK: Changes

    mutating func changed(_ slot: Slot, _ call: Call) {
        let before = self[slot]
        change(slot) { ($0.callID, $0.call, $0.person) = (call.id, call, call.person) }
        switch call.state {
        case .incoming: rings(slot, isNews: before?.person?.name != call.person.name || before?.video != call.isVideo)
        case .ringing: break
        case .joining, .active: accepted(slot, call)
        }
    }

    /// Handles the server's details about a ringing call. If they are new, passes them to the system, which may know
    /// the call only from a push. Then sends the user's answer, if one is pending.
    private mutating func rings(_ slot: Slot, isNews: Bool) {
        guard let call = self[slot], let news = call.call else { return }
        let isRinging = call.phase == .reported || call.phase == .ringing
        let isShown = call.isKnownToSystem || !usesSystem
        change(slot) {
            $0.video = news.isVideo
            if isRinging { $0.sendsVideo = news.isVideo }
            if $0.phase == .reported, isShown { $0.phase = .ringing }
        }
        if isNews, usesSystem { out.append(.update(call.id, news.person, video: news.isVideo)) }
        stopTimer(slot)
        sendAccept(slot)
    }

    private mutating func accepted(_ slot: Slot, _ news: Call) {
        guard let call = self[slot] else { return }
        if call.phase == .answering || call.phase == .placing {
            stopTimer(slot)
            if let action = call.pending { out.append(.fulfil(action)) }
            change(slot) { ($0.phase, $0.pending) = (.connecting, nil) }
            if call.isMuted { out.append(.send(.setMuted(news.id, true))) }
            tellVideo()
        }
        // A former id means that two people called each other. Neither waits for an answer, so report the call as
        // connected.
        if news.state == .active || news.formerID != nil { reportConnected(slot) }
        if news.state == .active { change(slot) { if $0.phase == .connecting { $0.phase = .active } } }
    }

    private mutating func reportConnected(_ slot: Slot) {
        guard usesSystem, let call = self[slot], call.direction == .outgoing, !call.isReportedConnected else { return }
        change(slot) { $0.isReportedConnected = true }
        out.append(.reportConnected(call.id))
    }
}
