import Foundation

/// Handles the user's actions on the app's own screens.
extension CallCoordinator {
    mutating func handle(_ event: CallAppEvent) {
        switch event {
        case .call(let id, let person, let video): call(QueuedCall(id: id, person: person, video: video))
        case .answer(let id):
            guard let slot = slot(of: id), let phase = self[slot]?.phase else { return }
            if phase == .reported || phase == .ringing { ask(.answer(id)) }
        case .end(let id): end(id)
        case .mute(let isMuted): if let id = current?.id { ask(.mute(id, isMuted)) }
        case .hold(let isHeld): if let id = current?.id { ask(.hold(id, isHeld)) }
        case .video(let isOn):
            // Until the call exists on the server, its video cannot be changed.
            guard current?.callID != nil else { return }
            change(.current) { $0.sendsVideo = isOn }
            tellVideo()
        case .camera(let works):
            cameraWorks = works
            tellVideo()
        case .sharing(let isOn):
            change(.current) { $0.isSharing = isOn }
            tellVideo()
        case .shown(let callID): out.append(.send(.seen(callID)))
        }
    }

    /// Requests a call action from the system, which answers with an action event. Without CallKit, performs it
    /// immediately.
    mutating func ask(_ request: CallSystemRequest) {
        guard !usesSystem else { return out.append(.request(request)) }
        switch request {
        case .start(let id, _, _): handle(CallSystemEvent.start(id, nil))
        case .answer(let id): handle(CallSystemEvent.answer(id, nil))
        case .end(let id): handle(CallSystemEvent.end(id, nil))
        case .mute(let id, let isMuted): handle(CallSystemEvent.mute(id, isMuted, nil))
        case .hold(let id, let isHeld): handle(CallSystemEvent.hold(id, isHeld, nil))
        }
    }

    private mutating func call(_ wanted: QueuedCall) {
        guard current == nil, slot(of: wanted.id) == nil, !abandoned.contains(wanted.id) else {
            return out.append(.tell(.alreadyInCall))
        }
        // A call that starts before the previous call's audio has stopped has no sound, so queue it until then.
        guard usesSystem, audio.isActive else { return place(wanted) }
        if queued == nil { out.append(.startTimer(.queued)) }
        queued = wanted
    }

    mutating func startQueued(timerIsRunning: Bool = true) {
        guard let queued else { return }
        if timerIsRunning { out.append(.stopTimer(.queued)) }
        self.queued = nil
        if current == nil { place(queued) } else { out.append(.tell(.alreadyInCall)) }
    }

    mutating func dropQueued() {
        guard queued != nil else { return }
        queued = nil
        out.append(.stopTimer(.queued))
    }

    private mutating func place(_ wanted: QueuedCall) {
        current = CoordinatedCall(id: wanted.id, direction: .outgoing, person: wanted.person, video: wanted.video)
        ask(.start(wanted.id, wanted.person, video: wanted.video))
    }

    private mutating func end(_ id: SystemCallID) {
        if queued?.id == id { return dropQueued() }
        guard let slot = slot(of: id), let call = self[slot] else { return }
        guard usesSystem else { return ask(.end(id)) }
        guard call.phase != .ending else { return }
        // Remember the phase: until the system ends the call, the audio and the screen depend on it.
        change(slot) { ($0.phase, $0.endedIn) = (.ending, call.phase) }
        ask(.end(id))
    }
}
