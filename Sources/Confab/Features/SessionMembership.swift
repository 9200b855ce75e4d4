import Wire

/// An event of a session membership.
enum SessionMembershipEvent: Sendable {
    case joined
    /// The session could not be joined.
    case failed(ConfabError)
    /// Another person is in the session.
    case there
    case signal(type: String, data: String, mine: Bool)
    /// The media of a stream has arrived, or properties of the stream have changed. `isNew` is true if the media
    /// arrives for the first time or from another source.
    case media(MediaStream, MediaSubscriber, isNew: Bool)
    /// What can now be shown of a stream. Sent whenever that changes.
    case shows(Arrival)
    case gone(MediaStream)
    /// Something else failed. The session membership continues.
    case trouble(ConfabError)
    /// The session ended, but not because this client left it.
    case lost
}

/// What can be shown of a stream.
enum Arrival: Equatable, Sendable {
    case video(any VideoSource)
    /// The publisher sends no video.
    case audioOnly

    /// Returns nil while the track of an announced video has not arrived.
    init?(_ stream: MediaStream, _ subscriber: MediaSubscriber) {
        guard stream.hasVideo else {
            self = .audioOnly
            return
        }
        guard let video = subscriber.video else { return nil }
        self = .video(video)
    }

    static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.video(let one), .video(let other)): one === other
        case (.audioOnly, .audioOnly): true
        default: false
        }
    }
}

/// A session membership, for a match, a call or a room. Joins the session, publishes the local media, and subscribes
/// to streams. Invariant: after `end`, no event is reported and no task keeps running. The local media is not stopped.
final class SessionMembership: Sendable {
    /// What a session membership does in its session.
    struct Plan: Sendable {
        /// Which streams to subscribe to: none, one at a time, or all.
        enum Shown: Sendable { case none, one, all }
        var shown = Shown.one
        /// Whether to retry publishing and subscribing after a failure, so that no two people remain in the session
        /// without each other's media.
        var retries = false
    }

    /// Whether local audio and video are sent.
    struct Sending: Sendable {
        var audio = true
        var video = true
    }

    /// The state that the lock protects.
    private struct State: Sendable {
        var isOver = false
        /// Whether the session was joined, so that its end has to be reported.
        var hasJoined = false
        var tasks: [Int: Task<Void, Never>] = [:]
        var taskCount = 0
        /// How often the published media has changed. If it changes while a publication is in progress, that
        /// publication is ended as soon as it completes.
        var turn = 0
        var publisher: MediaPublisher?
        var sending = Sending()
        /// Whether the server refused the video when it was last turned on.
        var isVideoRefused = false
        /// The latest task that applies `sending` to the published stream. It waits for the previous one. Nil before
        /// the first.
        var adjusting: Task<Void, Never>?
        var shown: Set<StreamID> = []
        var received: [StreamID: Received] = [:]
    }

    /// A stream that is being received, in the state in which it was last reported.
    private struct Received: Sendable {
        let subscriber: MediaSubscriber
        var stream: MediaStream
        var video: (any VideoSource)?
        var arrival: Arrival?
    }

    /// The longest pause between two attempts to publish or to subscribe.
    static let longestPause = Duration.seconds(30)
    /// How long a signal waits for another person. Also how long to wait before refused video is turned on again, if
    /// the server sets no time.
    private static let longestWait = Duration.seconds(10)
    /// The codes of errors after which publishing and subscribing are not retried, because they would fail again.
    private static let final: Set<ConfabError.Code> = [
        .notPermitted, .mediaUnavailable, .init(.malformed), .noMediaEngine,
    ]

    let session: Session
    private let plan: Plan
    private let report: @Sendable (SessionMembershipEvent) -> Void
    private let state = LockedValue(State())
    /// Serializes session and stream events, so that the application never receives an older event after a newer one.
    private let order = Mailbox()

    init(
        _ admission: Admission, _ core: ClientCore, _ plan: Plan,
        report: @escaping @Sendable (SessionMembershipEvent) -> Void
    ) {
        session = Session(admission.session, token: admission.token, core: core)
        (self.plan, self.report) = (plan, report)
    }

    deinit { end() }

    /// Joins the session, and publishes this media; nil publishes nothing.
    func begin(publishing media: (any LocalMedia)?) {
        let events = session.events.makeAsyncIterator()
        // Connect here and not in the task: signals and media that follow then wait until the session is joined, and
        // `end` leaves it even while it is connecting.
        session.core.connect { [weak self] result in self?.inOrder { $0.joined(result, media) } }
        run { [weak self] in
            while let event = await events.next() { self?.inOrder { $0.handle(event) } }
            if let error = events.failure { self?.inOrder { $0.fellBehind(error) } }
        }
    }

    private func joined(_ result: Result<Void, ConfabError>, _ media: (any LocalMedia)?) {
        switch result {
        case .success:
            state.withLock { $0.hasJoined = true }
            tell(.joined)
            if let media, isCurrent(0) { publish(media) }
        case .failure(let error): tell(.failed(error))
        }
    }

    /// Reports the session as lost, because unread events overflowed and its members are no longer known.
    private func fellBehind(_ error: ConfabError) {
        tell(.trouble(error))
        tell(.lost)
    }

    /// Publishes this media instead of the previous media; nil for none.
    func publish(_ media: (any LocalMedia)?) {
        let (turn, former) = state.withLock { state in
            state.turn += 1
            defer { state.publisher = nil }
            return (state.turn, state.publisher)
        }
        run { [weak self, session] in
            await former?.unpublish()
            guard let media else { return }
            await self?.attempt { [weak self] () async throws(ConfabError) in
                try await self?.waitForSession()
                guard let sending = self?.state.withLock(\.sending), self?.isCurrent(turn) == true else { return }
                let options = Session.PublishOptions(
                    videoKind: media.videoKind, audio: sending.audio, video: sending.video)
                self?.keep(try await session.publish(asIs: media, options), turn)
            }
        }
    }

    /// Sends a signal as soon as the session is joined and another person is in it. The server keeps no signals for
    /// people who join later.
    func signal(_ type: String, _ data: String) async throws(ConfabError) {
        try await waitForSession()
        try await waitForPerson()
        try await session.signal(type, data)
    }

    /// Waits for another person in the session. Returns immediately if there is one, or if the session has ended.
    ///
    /// - Throws: `not_matched` if no other person joins within ``longestWait``, or `cancelled`.
    private func waitForPerson() async throws(ConfabError) {
        // The iteration begins with an event for each person who is already in the session.
        let events = session.events.makeAsyncIterator()
        guard [.connected, .reconnecting].contains(session.status) else { return }
        let isLate = LockedValue(false)
        let waiting = Task {
            while let event = await events.next() {
                switch event {
                case .connectionCreated, .disconnected: return
                default: break
                }
            }
        }
        let clock = session.core.core.dependencies.clock
        let stopTimer = clock.schedule(at: clock.now + Self.longestWait) {
            isLate.withLock { $0 = true }
            waiting.cancel()
        }
        await withTaskCancellationHandler {
            await waiting.value
        } onCancel: {
            waiting.cancel()
        }
        stopTimer()
        if Task.isCancelled { throw .cancelled }
        if isLate.withLock(\.self) { throw .nobodyThere }
    }

    private func waitForSession() async throws(ConfabError) {
        try await awaitResult { self.session.core.waitForJoin($0) }
    }

    /// Leaves the session and cancels all tasks. Has no effect after the first call.
    func end() {
        let tasks = state.withLock { state -> [Task<Void, Never>]? in
            defer { (state.isOver, state.tasks) = (true, [:]) }
            return state.isOver ? nil : state.tasks.values.map(\.self)
        }
        guard let tasks else { return }
        for task in tasks { task.cancel() }
        // Disconnect immediately, because the same session may be joined again next. Keep the session object until the
        // session has been left.
        session.core.disconnect { [session] _ in withExtendedLifetime(session) {} }
    }

    private func run(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.taskCount += 1
            let id = state.taskCount
            state.tasks[id] = Task { [weak self] in
                await body()
                self?.state.withLock { _ = $0.tasks.removeValue(forKey: id) }
            }
        }
    }

    private func inOrder(_ body: @escaping @Sendable (SessionMembership) -> Void) {
        order.post { [weak self] in if let self { body(self) } }
    }

    private func tell(_ news: SessionMembershipEvent) { if !state.withLock({ $0.isOver }) { report(news) } }

    private func isCurrent(_ turn: Int) -> Bool { state.withLock { !$0.isOver && $0.turn == turn } }

    private func keep(_ publisher: MediaPublisher, _ turn: Int) {
        let isKept = state.withLock { state in
            guard !state.isOver, state.turn == turn else { return false }
            state.publisher = publisher
            return true
        }
        // Apply `sending`, which may have changed while the stream was being published.
        if isKept { adjust(publisher) } else { Task { await publisher.unpublish() } }
    }

    /// Starts or stops sending audio and video, and notifies the other members; nil changes nothing. This also applies
    /// to media that is published later.
    func setSending(audio: Bool? = nil, video: Bool? = nil) {
        let publisher = state.withLock { state in
            if let audio { state.sending.audio = audio }
            if let video { state.sending.video = video }
            return state.publisher
        }
        if let publisher { adjust(publisher) }
    }

    private func adjust(_ publisher: MediaPublisher) {
        state.withLock { state in
            state.adjusting = Task { [weak self, before = state.adjusting] in
                await before?.value
                guard let sending = self?.state.withLock(\.sending) else { return }
                let has = publisher.publication.state.withLock { (audio: $0.audio != nil, video: $0.video != nil) }
                // Ignore errors: they mean that the stream or the connection has ended, which is reported separately.
                if has.audio, publisher.hasAudio != sending.audio { try? await publisher.setAudio(sending.audio) }
                if has.video, publisher.hasVideo != sending.video { await self?.send(video: sending.video, publisher) }
            }
        }
    }

    /// Turns the video on or off. If the server refuses more video for now, tries again later. Reports only the first
    /// of several refusals.
    private func send(video: Bool, _ publisher: MediaPublisher) async {
        do throws(ConfabError) {
            try await publisher.setVideo(video)
            state.withLock { $0.isVideoRefused = false }
        } catch {
            guard error.code == .bandwidthExceeded else { return }
            let isFirst = state.withLock { state in
                defer { state.isVideoRefused = true }
                return !state.isVideoRefused
            }
            if isFirst { tell(.trouble(error)) }
            run { [weak self] in
                try? await Task.sleep(for: error.retryAfter ?? Self.longestWait)
                guard let self, !Task.isCancelled else { return }
                let isWanted = state.withLock {
                    $0.publisher?.publication === publisher.publication && $0.sending.video
                }
                if isWanted { adjust(publisher) }
            }
        }
    }

    private func handle(_ event: Session.Event) {
        switch event {
        case .connectionCreated: tell(.there)
        case .streamCreated(let stream): show(stream)
        case .streamDestroyed(let stream, _):
            let ended = state.withLock { state in
                state.shown.remove(stream.id)
                return state.received.removeValue(forKey: stream.id)
            }
            // Release the media outside the lock.
            withExtendedLifetime(ended) {}
            tell(.gone(stream))
            if let other = session.streams.first { show(other) }
        case .streamChanged(let stream):
            if let subscriber = state.withLock({ $0.received[stream.id]?.subscriber }) { arrived(subscriber) }
        case .signal(let signal):
            let mine = signal.from == session.connection?.id
            tell(.signal(type: signal.type ?? "", data: signal.data ?? "", mine: mine))
        case .disconnected: if state.withLock({ $0.hasJoined }) { tell(.lost) }
        default: break
        }
    }

    private func show(_ stream: MediaStream) {
        let isWanted = state.withLock { state in
            switch plan.shown {
            case .none: return false
            case .one: guard state.shown.isEmpty else { return false }
            case .all: break
            }
            return state.shown.insert(stream.id).inserted
        }
        guard isWanted else { return }
        run { [weak self, session] in
            let isShown = await self?.attempt { [weak self] () async throws(ConfabError) in
                guard self?.state.withLock({ $0.shown.contains(stream.id) }) == true else { return }
                let subscriber = try await session.subscribe(to: stream)
                self?.watch(subscriber)
            }
            // Subscribing failed, so let another stream take the place of this one.
            if isShown == false { self?.state.withLock { _ = $0.shown.remove(stream.id) } }
        }
    }

    /// Handles the subscriber's events: reports media when it arrives for the first time or from other sources, and
    /// errors.
    private func watch(_ subscriber: MediaSubscriber) {
        let events = subscriber.events.makeAsyncIterator()
        run { [weak self] in
            while let event = await events.next() {
                switch event {
                case .connected, .resumed, .tracksChanged: self?.inOrder { $0.arrived(subscriber) }
                case .failed(let error): self?.tell(.trouble(error))
                default: break
                }
            }
        }
    }

    /// Handles media that has arrived, or properties of a stream that have changed. Reports only changes.
    private func arrived(_ subscriber: MediaSubscriber) {
        let id = subscriber.stream.id
        // Ignore a stream that has ended already.
        guard let stream = session.core.machine.stream(id) else { return }
        let video = subscriber.video
        let arrival = Arrival(stream, subscriber)
        let (news, former) = state.withLock { state -> ([SessionMembershipEvent], Received?) in
            let former = state.received[id]
            var now = former ?? Received(subscriber: subscriber, stream: stream)
            (now.stream, now.video, now.arrival) = (stream, video, arrival ?? now.arrival)
            state.received[id] = now
            let isNew = former.map { $0.video !== video } ?? true
            let isSame = !isNew && former?.stream == stream
            let media: [SessionMembershipEvent] = isSame ? [] : [.media(stream, subscriber, isNew: isNew)]
            return (media + (arrival == former?.arrival ? [] : arrival.map { [.shows($0)] } ?? []), former)
        }
        for news in news { tell(news) }
        // Release the previous video outside the lock.
        withExtendedLifetime(former) {}
    }

    /// Runs `body`. If the plan says so, retries until it succeeds, throws an error in `final`, or the task is
    /// canceled. Reports only the first of several failures.
    ///
    /// - Returns: whether it succeeded.
    @discardableResult
    private func attempt(_ body: @Sendable () async throws(ConfabError) -> Void) async -> Bool {
        var backoff = Backoff(longest: Self.longestPause)
        var random = SystemRandomNumberGenerator()
        var isFirst = true
        while !Task.isCancelled {
            do throws(ConfabError) {
                try await body()
                return true
            } catch {
                if isFirst { tell(.trouble(error)) }
                isFirst = false
                guard plan.retries, !Self.final.contains(error.code) else { return false }
                let pause = max(backoff.next(using: &random), error.retryAfter ?? .zero)
                try? await Task.sleep(for: pause)
            }
        }
        return false
    }
}

extension ConfabError {
    fileprivate static let nobodyThere = ConfabError(
        .notMatched, "Your partner has not joined the chat yet. Try again in a moment.", isRetryable: true)
}
