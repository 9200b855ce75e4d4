import Confab
import Foundation

/// Handles the actions from the system's call screen.
extension CallCoordinator {
    mutating func handle(_ event: CallSystemEvent) {
        switch event {
        case .start(let id, let action): start(id, action)
        case .answer(let id, let action): answer(id, action)
        case .end(let id, let action): end(id, action)
        case .mute(let id, let isMuted, let action): mute(id, isMuted, action)
        case .hold(let id, let isHeld, let action): hold(id, isHeld, action)
        case .timedOut(let action): timedOut(action)
        case .requestFailed(let request): requestFailed(request)
        case .reset: reset()
        }
    }

    private mutating func fulfil(_ action: ActionID?) {
        if let action { out.append(.fulfil(action)) }
    }

    private mutating func fail(_ action: ActionID?) {
        if let action { out.append(.fail(action)) }
    }

    private mutating func start(_ id: SystemCallID, _ action: ActionID?) {
        guard let slot = slot(of: id), let call = self[slot], call.phase == .placing, call.pending == nil,
            call.callID == nil, !call.isSent, let person = call.person
        else { return fail(action) }
        // Send the start request only once, even if the system repeats the action.
        change(slot) { ($0.pending, $0.isSent) = (action, true) }
        out.append(.send(.start(id, person, video: call.video)))
    }

    private mutating func answer(_ id: SystemCallID, _ action: ActionID?) {
        guard let slot = slot(of: id), let call = self[slot], call.direction == .incoming else { return fail(action) }
        switch call.phase {
        case .reported, .ringing: break
        case .connecting, .active, .held: return fulfil(action)
        case .answering, .placing, .ending: return fail(action)
        }
        guard environment.canRecord else {
            fulfil(action)
            sendEnd(slot)
            change(slot) { $0.phase = .ending }
            stopTimer(slot)
            out.append(.tell(.allowMicrophone(call.person)))
            return ask(.end(id))
        }
        if slot == .waiting { endFirst() }
        // Without a usable camera, answer by voice.
        let canShow = environment.canShow
        change(.current) { ($0.phase, $0.pending, $0.sendsVideo) = (.answering, action, $0.sendsVideo && canShow) }
        if !usesSystem { out.append(.stopRinging(id)) }
        if let call = current { out += audio.use(speaker: call.usesSpeaker).map(CallEffect.audio) }
        out += audio.configure().map(CallEffect.audio)
        if !isOnline { out.append(.send(.openSocket)) }
        sendAccept(.current)
    }

    /// Ends the current call before the waiting one is answered. The server also does this when it accepts the answer,
    /// but if the server refused the answer, the first call would continue.
    private mutating func endFirst() {
        sendEnd(.current)
        remove(.current, .remoteEnded)
    }

    private mutating func end(_ id: SystemCallID, _ action: ActionID?) {
        if let slot = slot(of: id) {
            sendEnd(slot)
            remove(slot, usesSystem ? nil : .remoteEnded)
        }
        // If the system has not answered a report of this call yet, it may still start ringing. Store the end, so
        // that `reported` ends the call again.
        reports[id]?.ended = .remoteEnded
        // An unknown call has already ended, so its action succeeds too.
        fulfil(action)
    }

    private mutating func mute(_ id: SystemCallID, _ isMuted: Bool, _ action: ActionID?) {
        guard let slot = slot(of: id), let call = self[slot] else { return fail(action) }
        change(slot) { $0.isMuted = isMuted }
        out.append(.send(.setMuted(call.callID, isMuted || call.phase == .held)))
        fulfil(action)
    }

    private mutating func hold(_ id: SystemCallID, _ isHeld: Bool, _ action: ActionID?) {
        guard slot(of: id) == .current, let call = current, let callID = call.callID else { return fail(action) }
        switch (call.phase, isHeld) {
        case (.connecting, true), (.active, true):
            change(.current) { $0.phase = .held }
            out.append(.send(.setMuted(callID, true)))
            tellVideo()
            updateAudio()
            fulfil(action)
        case (.held, false):
            change(.current) { $0.phase = call.call?.state == .active ? .active : .connecting }
            out.append(.send(.setMuted(callID, call.isMuted)))
            tellVideo()
            fulfil(action)
            out += audio.resume().map(CallEffect.audio)
        case (.held, true), (.connecting, false), (.active, false): fulfil(action)
        default: fail(action)
        }
    }

    private mutating func timedOut(_ action: ActionID) {
        for slot in [Slot.current, .waiting] where self[slot]?.pending == action {
            change(slot) { $0.pending = nil }
            sendEnd(slot)
            remove(slot, .failed)
        }
    }

    private mutating func requestFailed(_ request: CallSystemRequest) {
        switch request {
        case .start(let id, _, _):
            // Ignore the failure if the system has started the call already: the call continues.
            guard let slot = slot(of: id), let call = self[slot], call.phase == .placing, call.pending == nil,
                call.callID == nil, !call.isSent
            else { return }
            remove(slot)
            abandoned.remove(id)
        case .end(let id):
            // The user wants to leave, so end the call although the system refused.
            guard let slot = slot(of: id), self[slot]?.phase == .ending else { return }
            sendEnd(slot)
            remove(slot, .remoteEnded)
            return
        case .answer, .mute, .hold: break
        }
        out.append(.tell(.systemRefused))
    }

    /// Handles a reset, in which the system drops all calls: no end is reported, and no action is fulfilled or failed.
    /// Completes the pushes of open reports, which get no answer. Ends the audio, because the system does not report
    /// the end of the audio session.
    private mutating func reset() {
        for slot in [Slot.waiting, .current] where self[slot] != nil {
            change(slot) { $0.pending = nil }
            sendEnd(slot)
            remove(slot)
        }
        dropQueued()
        for push in reports.values.flatMap(\.pushes).sorted() { out.append(.completePush(push)) }
        reports = [:]
        if usesSystem { out += audio.handle(.deactivated).map(CallEffect.audio) }
    }
}
