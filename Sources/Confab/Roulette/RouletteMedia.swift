import Wire

/// Manages the sessions of the current match and the local media that they publish. Turns events of the state machine
/// into events for the application.
final class RouletteMedia: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var own: (any LocalMedia)?
        /// Whether the SDK captured `own`, and therefore stops it after the search.
        var isCaptured = false
        var match: MatchID?
        /// The session membership for publishing; nil without a match.
        var ours: SessionMembership?
        /// The session membership for receiving from the partner, usually the same as `ours`; nil without a match.
        var theirs: SessionMembership?
        /// Whether `entered` was reported for this match.
        var hasEntered = false
        /// Whether local audio and video are sent in each match.
        var sending = SessionMembership.Sending()
    }

    private let core: ClientCore
    private let source: EventSource<Roulette.Event>
    private let state = LockedValue(State())
    let weakFeature = WeakReference<FeatureCore<RouletteMachine>>()

    init(_ core: ClientCore, _ source: EventSource<Roulette.Event>) { (self.core, self.source) = (core, source) }

    deinit {
        for membership in state.withLock({ [$0.ours, $0.theirs] }) { membership?.end() }
        release()
    }

    private var feature: FeatureCore<RouletteMachine>? { weakFeature.object }

    /// Captures a camera and a microphone, unless there already is media or there is no media engine.
    func capture() async throws(ConfabError) {
        guard let engine = core.media, state.withLock({ $0.own == nil }) else { return }
        let media = try await engine.capture(.camera())
        let isUsed = state.withLock { state in
            guard state.own == nil else { return false }
            (state.own, state.isCaptured) = (media, true)
            return true
        }
        if !isUsed { await media.stop() }
    }

    func use(_ own: (any LocalMedia)?) {
        let (membership, former, wasCaptured) = state.withLock { state in
            defer { (state.own, state.isCaptured) = (own, false) }
            return (state.ours, state.own, state.isCaptured)
        }
        membership?.publish(own)
        if let former, wasCaptured { Task { await former.stop() } }
        // Release the previous media outside the lock.
        withExtendedLifetime(former) {}
    }

    /// Stops captured media if this device is neither searching nor in a chat.
    func releaseIfIdle() { if feature?.read(\.isBusy) == false { release() } }

    private func release() {
        let media = state.withLock { state -> (any LocalMedia)? in
            guard state.isCaptured else { return nil }
            defer { (state.own, state.isCaptured) = (nil, false) }
            return state.own
        }
        if let media { Task { await media.stop() } }
    }

    func setSending(audio: Bool?, video: Bool?) {
        let membership = state.withLock { state in
            if let audio { state.sending.audio = audio }
            if let video { state.sending.video = video }
            return state.ours
        }
        membership?.setSending(audio: audio, video: video)
    }

    func say(_ text: String, in match: MatchID) async throws(ConfabError) {
        // Wait for the sessions of the match: the application is notified of a match before they exist, and may send
        // a line immediately.
        await feature?.settle()
        guard let membership = state.withLock({ $0.match == match ? $0.theirs : nil }) else {
            throw ConfabError(.notMatched, "This chat is over.")
        }
        feature?.post { machine, _ in
            machine.said()
            return []
        }
        try await membership.signal(SignalType.chat, text)
    }

    func perform(_ action: RouletteMachine.Action) {
        switch action {
        case .begin(let matched): begin(matched)
        case .end(let match, _): end(match)
        case .signal(let type, let data):
            guard let session = state.withLock({ $0.theirs?.session }), session.status == .connected else { return }
            // Send this signal here and not in a separate task, which could overtake the previous signal.
            core.send(.session(.signal(.init(session: session.id, type: type, data: data))))
        }
    }

    private func begin(_ matched: RouletteNotice.Matched) {
        let match = matched.match
        // In a text chat, subscribe to nothing: only a modified client publishes, and a subscription would reveal
        // this device's IP address to it.
        let shown: SessionMembership.Plan.Shown = matched.mode == .video ? .one : .none
        let theirs = SessionMembership(matched.subscribe, core, .init(shown: shown)) { [weak self] news in
            self?.heard(news, in: match)
        }
        var ours = theirs
        if matched.publish.session != matched.subscribe.session {
            ours = SessionMembership(matched.publish, core, .init(shown: .none)) { [weak self] news in
                switch news {
                // Ignore these events, because the partner is in the other session.
                case .signal, .there: break
                default: self?.heard(news, in: match)
                }
            }
        }
        let (publishing, other) = (ours, theirs)
        let own = state.withLock { state in
            (state.match, state.ours, state.theirs, state.hasEntered) = (match, publishing, other, false)
            publishing.setSending(audio: state.sending.audio, video: state.sending.video)
            return matched.mode == .video ? state.own : nil
        }
        publishing.begin(publishing: own)
        if publishing !== other { other.begin(publishing: nil) }
    }

    private func end(_ match: MatchID) {
        let memberships = state.withLock { state -> [SessionMembership?] in
            guard state.match == match else { return [] }
            defer { (state.match, state.ours, state.theirs) = (nil, nil, nil) }
            return [state.ours, state.theirs]
        }
        for membership in memberships { membership?.end() }
    }

    private func heard(_ news: SessionMembershipEvent, in match: MatchID) {
        switch news {
        case .signal(let type, let data, let mine):
            feature?.post { machine, now in machine.heard(type, data, mine: mine, now: now) }
        case .media(_, let subscriber, isNew: true):
            feature?.post { machine, _ in
                machine.streamArrived()
                return []
            }
            source.send(.receiving(subscriber))
        case .shows(.video(let video)): source.send(.video(video))
        case .shows(.audioOnly): source.send(.audioOnly)
        case .failed(let error), .trouble(let error):
            feature?.post { machine, _ in machine.mediaFailed(error, in: match) }
        case .there:
            let isFirst = state.withLock { state in
                guard state.match == match, !state.hasEntered else { return false }
                state.hasEntered = true
                return true
            }
            if isFirst { source.send(.entered) }
        case .joined, .media, .gone, .lost: break
        }
    }

    func tell(_ news: RouletteMachine.Event) {
        switch news {
        case .waiting(let pause): source.send(.waiting(retryAfter: pause))
        case .matched(let matched): source.send(.matched(Match(matched, self)))
        case .partner(let state): source.send(.partner(isConnected: state == .connected))
        case .message(let text, let mine): source.send(.message(ChatLine(text: text, isMine: mine)))
        case .typing(let isTyping): source.send(.typing(isTyping))
        case .noStream: source.send(.noStream)
        case .ended(_, let ending):
            source.send(.ended(ending))
            releaseIfIdle()
        case .contactAsked: source.send(.contactAsked)
        case .warned(let warning): source.send(.warned(RouletteWarning(warning)))
        case .blur(.own, let isBlurred): source.send(.ownVideoBlurred(isBlurred))
        case .blur(.partner, let isBlurred): source.send(.partnerBlurred(isBlurred))
        case .recovered: source.send(.recovered)
        case .failed(let error):
            source.send(.failed(error))
            releaseIfIdle()
        }
    }
}
