import Wire

/// Manages the sessions of accepted calls and the local media that they publish. Turns events of the state machine
/// into events for the application.
final class CallsMedia: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var own: (any LocalMedia)?
        /// Whether the SDK captured `own`, and therefore stops it after the last call.
        var isCaptured = false
        /// The ids of the calls in which no audio is sent.
        var muted: Set<CallID> = []
        var memberships: [CallID: (number: Int, membership: SessionMembership)] = [:]
        /// The number of session memberships so far. Each one is numbered, so that late events of an ended one are
        /// recognized.
        var membershipCount = 0
        /// The latest task that turns the local video on or off. It waits for the previous one. Nil before the first.
        var switching: Task<Void, Never>?
    }

    private let core: ClientCore
    private let source: EventSource<Calls.Event>
    private let state = LockedValue(State())
    let weakFeature = WeakReference<FeatureCore<CallsMachine>>()

    init(_ core: ClientCore, _ source: EventSource<Calls.Event>) { (self.core, self.source) = (core, source) }

    deinit {
        for membership in state.withLock({ $0.memberships.values.map(\.membership) }) { membership.end() }
        release()
    }

    private var feature: FeatureCore<CallsMachine>? { weakFeature.object }

    func use(_ own: (any LocalMedia)?) {
        let (memberships, former, wasCaptured) = state.withLock { state in
            defer { (state.own, state.isCaptured) = (own, false) }
            return (state.memberships.values.map(\.membership), state.own, state.isCaptured)
        }
        for membership in memberships { membership.publish(own) }
        if let former, wasCaptured { Task { await former.stop() } }
        // Release the previous media outside the lock.
        withExtendedLifetime(former) {}
    }

    /// Captures media for a call, unless the application has supplied media, suitable media was captured already, or
    /// there is no media engine.
    func capture(video: Bool) async throws(ConfabError) {
        let isEnough = state.withLock { state in
            guard let own = state.own else { return false }
            return own.video != nil || !video || !state.isCaptured
        }
        guard let engine = core.media, !isEnough else { return }
        let media = try await engine.capture(video ? .camera() : .microphone)
        let (obsolete, memberships) = state.withLock { state -> ((any LocalMedia)?, [SessionMembership]) in
            // Discard the captured media if the application supplied its own media in the meantime.
            if state.own != nil, !state.isCaptured { return (media, []) }
            defer { (state.own, state.isCaptured) = (media, true) }
            return (state.own, state.memberships.values.map(\.membership))
        }
        for membership in memberships { membership.publish(media) }
        await obsolete?.stop()
    }

    func perform(_ action: CallsMachine.Action) {
        switch action {
        case .join(let id, let admission): join(id, admission)
        case .leave(let id, _):
            state.withLock { $0.memberships.removeValue(forKey: id) }?.membership.end()
        case .sendVideo(_, let isOn):
            state.withLock { state in
                guard let own = state.own else { return }
                state.switching = Task { [before = state.switching] in
                    await before?.value
                    await own.setEnabled(audio: nil, video: isOn)
                }
            }
        }
    }

    private func join(_ id: CallID, _ admission: Admission) {
        let number = state.withLock { state in
            state.membershipCount += 1
            return state.membershipCount
        }
        let membership = SessionMembership(admission, core, .init(shown: .one)) { [weak self] news in
            self?.heard(news, in: id, membership: number)
        }
        let (own, isMuted) = state.withLock { state in
            state.memberships[id] = (number, membership)
            return (state.own, state.muted.contains(id))
        }
        membership.setSending(audio: !isMuted, video: feature?.read { $0.call(id) }?.sendsVideo)
        membership.begin(publishing: own)
    }

    func setAudio(_ isOn: Bool, in id: CallID) {
        let known = Set(feature?.read { $0.calls.map(\.id) } ?? [])
        let membership = state.withLock { state in
            state.muted.formIntersection(known)
            if isOn { state.muted.remove(id) } else if known.contains(id) { state.muted.insert(id) }
            return state.memberships[id]?.membership
        }
        membership?.setSending(audio: isOn)
    }

    /// Starts or stops sending video in the session of a call.
    func setVideo(_ isOn: Bool, in id: CallID) {
        state.withLock { $0.memberships[id] }?.membership.setSending(video: isOn)
    }

    private func heard(_ news: SessionMembershipEvent, in id: CallID, membership number: Int) {
        // Evaluate `isCurrent` in the mailbox, because session memberships begin and end there.
        let isCurrent = { @Sendable [weak self] in self?.state.withLock { $0.memberships[id]?.number } == number }
        switch news {
        case .there: feature?.post { machine, _ in isCurrent() ? machine.partnerJoined(id) : [] }
        case .failed(let error):
            feature?.post { machine, now in isCurrent() ? machine.mediaFailed(id, error, now: now) : [] }
        case .shows(.video(let video)): source.send(.video(id, video))
        case .shows(.audioOnly): source.send(.audioOnly(id))
        case .trouble(let error): source.send(.failed(id, error))
        case .media(_, let subscriber, isNew: true): source.send(.receiving(id, subscriber))
        case .joined, .signal, .media, .gone, .lost: break
        }
    }

    func tell(_ news: CallsMachine.Event) {
        switch news {
        case .incoming(let call): source.send(.incoming(call))
        case .changed(let call): source.send(.changed(call))
        case .ended(let ending):
            source.send(.ended(ending))
            releaseIfUnused()
        }
    }

    /// Stops captured media if there is no call and none is being placed.
    func releaseIfUnused() { if feature?.read({ $0.calls.isEmpty && $0.placing == nil }) == true { release() } }

    private func release() {
        let media = state.withLock { state -> (any LocalMedia)? in
            guard state.isCaptured else { return nil }
            defer { (state.own, state.isCaptured) = (nil, false) }
            return state.own
        }
        if let media { Task { await media.stop() } }
    }
}
