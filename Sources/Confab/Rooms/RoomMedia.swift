import Wire

/// Manages the session of the current room and the local media that it publishes. Turns events of the state machine
/// into events of the room.
final class RoomMedia: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        /// The events of the current room; nil if there is none.
        var source: EventSource<Room.Event>?
        var membership: SessionMembership?
        /// The number of the current session membership.
        var number = 0
        /// Whether local audio and video are sent in this room, also after rejoining.
        var sending = SessionMembership.Sending()
        var own: (any LocalMedia)?
        /// The `onWaiting` closures of pending `join` calls, keyed by a running number.
        var onWaiting: [Int: @Sendable () -> Void] = [:]
        var waitingCount = 0
    }

    private let core: ClientCore
    private let state = LockedValue(State())
    let weakFeature = WeakReference<FeatureCore<RoomsMachine>>()

    init(_ core: ClientCore) { self.core = core }

    deinit { state.withLock { $0.membership }?.end() }

    private var feature: FeatureCore<RoomsMachine>? { weakFeature.object }
    var source: EventSource<Room.Event>? { state.withLock { $0.source } }
    /// A new `Room` object for the current room; nil if there is none. A `Room` keeps no state itself but refers to
    /// this object, so this person stays in the room even if the application releases the `Room`.
    var room: Room? {
        guard let feature, let source else { return nil }
        return Room(feature, self, source)
    }
    var session: Session? { state.withLock { $0.membership?.session } }

    /// Calls `body` whenever a host must admit this person, until the returned token is released. `body` may hold
    /// objects of the application, so it is not kept longer than the token. Returns nil if `body` is nil.
    func onWaiting(_ body: (@Sendable () -> Void)?) -> Listening? {
        guard let body else { return nil }
        let number = state.withLock { state in
            state.waitingCount += 1
            state.onWaiting[state.waitingCount] = body
            return state.waitingCount
        }
        return Listening { [weak self] in
            // Released outside the lock, because the application's objects go with it.
            let ended = self?.state.withLock { $0.onWaiting.removeValue(forKey: number) }
            withExtendedLifetime(ended) {}
        }
    }

    func use(_ own: (any LocalMedia)?) {
        let (membership, former) = state.withLock { state in
            defer { state.own = own }
            return (state.membership, state.own)
        }
        membership?.publish(own)
        // Release the previous media outside the lock.
        withExtendedLifetime(former) {}
    }

    func setSending(audio: Bool?, video: Bool?) {
        let membership = state.withLock { state in
            if let audio { state.sending.audio = audio }
            if let video { state.sending.video = video }
            return state.membership
        }
        membership?.setSending(audio: audio, video: video)
    }

    func perform(_ action: RoomsMachine.Action) {
        switch action {
        case .enter(let admission, let number): enter(admission, number)
        case .exit:
            let membership = state.withLock { state in
                defer { state.membership = nil }
                return state.membership
            }
            membership?.end()
        }
    }

    private func enter(_ admission: Admission, _ number: Int) {
        let membership = SessionMembership(admission, core, .init(shown: .all, retries: true)) { [weak self] news in
            self?.heard(news, of: number)
        }
        let own = state.withLock { state in
            if state.source == nil { (state.source, state.sending) = (EventSource(), SessionMembership.Sending()) }
            (state.membership, state.number) = (membership, number)
            membership.setSending(audio: state.sending.audio, video: state.sending.video)
            return state.own
        }
        membership.begin(publishing: own)
    }

    private func heard(_ news: SessionMembershipEvent, of number: Int) {
        switch news {
        case .joined: feature?.post { machine, _ in machine.sessionJoined(membership: number) }
        case .failed(let error):
            feature?.post { machine, now in machine.sessionFailed(error, membership: number, now: now) }
        case .lost: feature?.post { machine, now in machine.sessionLost(membership: number, now: now) }
        case .media(let stream, let subscriber, _): source(of: number)?.send(.video(stream, subscriber))
        case .gone(let stream): source(of: number)?.send(.videoGone(stream))
        case .trouble(let error): source(of: number)?.send(.failed(error))
        case .there, .shows, .signal: break
        }
    }

    /// Returns the events of the current room; nil if this session membership is not the current one.
    private func source(of number: Int) -> EventSource<Room.Event>? {
        state.withLock { $0.membership == nil || $0.number != number ? nil : $0.source }
    }

    func tell(_ news: RoomsMachine.Event) {
        if case .waiting = news { for body in state.withLock({ $0.onWaiting.values.map(\.self) }) { body() } }
        guard let source, let event = Room.Event(news) else { return }
        source.send(event)
        guard case .ended = news else { return }
        source.finish()
        let ended = state.withLock { state in
            defer { (state.source, state.own) = (nil, nil) }
            return (state.source, state.own)
        }
        // Release the media outside the lock.
        withExtendedLifetime(ended) {}
    }
}

extension Room.Event {
    fileprivate init?(_ news: RoomsMachine.Event) {
        switch news {
        case .joined: return nil
        case .waiting: self = .waiting
        case .reconnecting: self = .reconnecting
        case .reconnected: self = .reconnected
        case .settings(let options): self = .settings(RoomSettings(options))
        case .person(let person): self = .person(person)
        case .role(let role): self = .role(RoomMember.Role(role))
        case .said(let line): self = .said(RoomMessage(line))
        case .fileRemoved(let id): self = .fileRemoved(id)
        case .reacted(let connection, let reaction): self = .reacted(connection, reaction)
        case .knock(let knock, let waiting): self = .knock(knock, isWaiting: waiting)
        case .ended(let ending, let error): self = .ended(ending, error)
        }
    }
}
