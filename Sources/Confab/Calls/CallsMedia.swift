import Wire

/// The sessions of accepted calls, and the local media. Turns events of the state machine into events for the
/// application.
final class CallsMedia: Sendable {
    private struct State: Sendable {
        var own: (any LocalMedia)?
        /// Whether the SDK captured `own`, and therefore stops it after the last call.
        var isCaptured = false
        /// The calls in which no audio is sent.
        var muted: Set<CallID> = []
        var stays: [CallID: (number: Int, stay: Stay)] = [:]
        /// Counts session memberships, because their events may arrive late.
        var stayCount = 0
        /// Turns the local video on or off, after earlier changes.
        var switching: Task<Void, Never>?
    }

    private struct WeakWay: Sendable { weak var way: WayCore<CallsMachine>? }

    private let core: ClientCore
    private let source: EventSource<Calls.Event>
    private let state = Guarded(State())
    private let weakWay = Guarded(WeakWay())

    init(_ core: ClientCore, _ source: EventSource<Calls.Event>) { (self.core, self.source) = (core, source) }

    deinit {
        for stay in state.withLock({ $0.stays.values.map(\.stay) }) { stay.end() }
        release()
    }

    func attach(_ way: WayCore<CallsMachine>) { weakWay.withLock { $0.way = way } }

    private var way: WayCore<CallsMachine>? { weakWay.withLock { $0.way } }

    func use(_ own: (any LocalMedia)?) {
        let (stays, captured) = state.withLock { state in
            defer { (state.own, state.isCaptured) = (own, false) }
            return (state.stays.values.map(\.stay), state.isCaptured ? state.own : nil)
        }
        for stay in stays { stay.publish(own) }
        if let captured { Task { await captured.stop() } }
    }

    /// Captures media, unless suitable media exists.
    func capture(video: Bool) async throws(ConfabError) {
        let isEnough = state.withLock { state in
            guard let own = state.own else { return false }
            return own.video != nil || !video || !state.isCaptured
        }
        guard let engine = core.media, !isEnough else { return }
        let media = try await engine.capture(video ? .camera() : .microphone)
        let (obsolete, stays) = state.withLock { state -> ((any LocalMedia)?, [Stay]) in
            // The application has supplied its own media meanwhile.
            if state.own != nil, !state.isCaptured { return (media, []) }
            defer { (state.own, state.isCaptured) = (media, true) }
            return (state.own, state.stays.values.map(\.stay))
        }
        for stay in stays { stay.publish(media) }
        await obsolete?.stop()
    }

    func perform(_ deed: CallsMachine.Deed) {
        switch deed {
        case .join(let id, let admission): join(id, admission)
        case .leave(let id, _):
            state.withLock { $0.stays.removeValue(forKey: id) }?.stay.end()
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
            state.stayCount += 1
            return state.stayCount
        }
        let stay = Stay(admission, core, .init(shown: .one)) { [weak self] news in
            self?.heard(news, in: id, stay: number)
        }
        let (own, isMuted) = state.withLock { state in
            state.stays[id] = (number, stay)
            return (state.own, state.muted.contains(id))
        }
        stay.setSending(audio: !isMuted, video: way?.read { $0.call(id) }?.sendsVideo)
        stay.begin(publishing: own)
    }

    func setAudio(_ isOn: Bool, in id: CallID) {
        let known = Set(way?.read { $0.calls.map(\.id) } ?? [])
        let stay = state.withLock { state in
            state.muted.formIntersection(known)
            if isOn { state.muted.remove(id) } else if known.contains(id) { state.muted.insert(id) }
            return state.stays[id]?.stay
        }
        stay?.setSending(audio: isOn)
    }

    /// Starts or stops sending video in the session of a call.
    func setVideo(_ isOn: Bool, in id: CallID) { state.withLock { $0.stays[id] }?.stay.setSending(video: isOn) }

    private func heard(_ news: StayNews, in id: CallID, stay number: Int) {
        // Evaluated in the mailbox, in which session memberships begin and end.
        let isCurrent = { @Sendable [weak self] in self?.state.withLock { $0.stays[id]?.number } == number }
        switch news {
        case .there: way?.post { machine, _ in isCurrent() ? machine.partnerJoined(id) : [] }
        case .failed(let error):
            way?.post { machine, now in isCurrent() ? machine.mediaFailed(id, error, now: now) : [] }
        case .shows(.video(let video)): source.send(.video(id, video))
        case .shows(.audioOnly): source.send(.audioOnly(id))
        case .trouble(let error): source.send(.failed(id, error))
        case .media(_, let subscriber, isNew: true): source.send(.receiving(id, subscriber))
        case .joined, .signal, .media, .gone, .lost: break
        }
    }

    func tell(_ news: CallsMachine.News) {
        switch news {
        case .incoming(let call): source.send(.incoming(call))
        case .changed(let call): source.send(.changed(call))
        case .ended(let ending):
            source.send(.ended(ending))
            releaseIfUnused()
        }
    }

    /// Stops captured media after the last call, and if a call could not be placed or accepted.
    func releaseIfUnused() { if way?.read({ $0.calls.isEmpty && $0.placing == nil }) == true { release() } }

    private func release() {
        let media = state.withLock { state -> (any LocalMedia)? in
            guard state.isCaptured else { return nil }
            defer { (state.own, state.isCaptured) = (nil, false) }
            return state.own
        }
        if let media { Task { await media.stop() } }
    }
}
