import Wire

/// What happens during a stay in a session.
enum StayNews: Sendable {
    case joined
    /// The session could not be joined.
    case failed(ConfabError)
    /// Another person is in the session.
    case there
    case signal(type: String, data: String, mine: Bool)
    /// Media of a stream arrives, or has other properties. New: it arrives for the first time, or from another source.
    case media(MediaStream, MediaSubscriber, isNew: Bool)
    /// What of a stream can be shown now, each time that it changes.
    case shows(Arrival)
    case gone(MediaStream)
    /// Something else failed; the stay goes on.
    case trouble(ConfabError)
    /// The session ended, although nobody here ended it.
    case lost
}

/// What of a stream can be shown.
enum Arrival: Equatable, Sendable {
    case video(any VideoSource)
    /// The publisher sends no video.
    case audioOnly

    /// Nil while the track of an announced video has not arrived.
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

/// Audio and video of one stay in a session, for a match, a call or a room: joins it, publishes the own media, and subscribes to
/// streams. Invariant: after `end`, nothing is told and nothing keeps running. The own media goes on.
final class Stay: Sendable {
    /// What a stay does in its session.
    struct Plan: Sendable {
        /// Which streams to subscribe to.
        enum Shown: Sendable { case none, one, all }
        var shown = Shown.one
        /// Whether to try again what fails, so that no two people stay without each other.
        var retries = false
    }

    /// What of the own media is sent.
    struct Sending: Sendable {
        var audio = true
        var video = true
    }

    private struct State: Sendable {
        var isOver = false
        /// Whether the session was joined, so that its end is news.
        var hasJoined = false
        var tasks: [Int: Task<Void, Never>] = [:]
        var taskCount = 0
        /// Counts changes of the published media.
        var turn = 0
        var publisher: MediaPublisher?
        var sending = Sending()
        /// Whether the server took no video when it was last offered.
        var isVideoRefused = false
        /// Applies `sending` to the published stream, after the changes before.
        var adjusting: Task<Void, Never>?
        var shown: Set<StreamID> = []
        var received: [StreamID: Received] = [:]
    }

    /// A stream whose media arrives, as it was told.
    private struct Received: Sendable {
        let subscriber: MediaSubscriber
        var stream: MediaStream
        var video: (any VideoSource)?
        var arrival: Arrival?
    }

    /// The longest pause between two attempts.
    private static let longestPause = Duration.seconds(30)
    /// How long a signal waits for another person.
    private static let longestWait = Duration.seconds(10)
    /// Reasons for which the same request fails every time.
    private static let final: Set<ConfabError.Code> = [
        .notPermitted, .mediaUnavailable, .init(.malformed), .noMediaEngine,
    ]

    let session: Session
    private let plan: Plan
    private let report: @Sendable (StayNews) -> Void
    private let state = Guarded(State())
    /// What happens in the session and to its streams, so that the application hears the newest last.
    private let order = WayMailbox()

    init(_ admission: Admission, _ core: ClientCore, _ plan: Plan, report: @escaping @Sendable (StayNews) -> Void) {
        session = Session(admission.session, token: admission.token, core: core)
        (self.plan, self.report) = (plan, report)
    }

    deinit { end() }

    /// Joins the session, and publishes.
    func begin(publishing media: (any LocalMedia)?) {
        let events = session.events.makeAsyncIterator()
        // At once: signals and media wait for a session that is connecting, and `end` leaves one.
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

    /// The session sent more than this device can read, so this stay no longer knows who is there.
    private func fellBehind(_ error: ConfabError) {
        tell(.trouble(error))
        tell(.lost)
    }

    /// Publishes this media from now on; nil for none.
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

    /// Sends a signal, as soon as the session is joined and another person is in it: the server keeps no signals for people who
    /// join later.
    func signal(_ type: String, _ data: String) async throws(ConfabError) {
        try await waitForSession()
        try await waitForPerson()
        try await session.signal(type, data)
    }

    /// Returns at once if another person is in the session, or if nobody can come.
    ///
    /// - Throws: `not_matched` if nobody comes for a while.
    private func waitForPerson() async throws(ConfabError) {
        // Begins with the people who are in the session.
        let events = session.events.makeAsyncIterator()
        guard [.connected, .reconnecting].contains(session.status) else { return }
        let isLate = Guarded(false)
        let waiting = Task {
            while let event = await events.next() {
                switch event {
                case .connectionCreated, .disconnected: return
                default: break
                }
            }
        }
        let clock = session.core.core.surroundings.clock
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

    /// Leaves the session.
    func end() {
        let tasks = state.withLock { state -> [Task<Void, Never>]? in
            defer { (state.isOver, state.tasks) = (true, [:]) }
            return state.isOver ? nil : state.tasks.values.map(\.self)
        }
        guard let tasks else { return }
        for task in tasks { task.cancel() }
        // At once, because the session may be joined again next. It is kept until it is left.
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

    private func inOrder(_ body: @escaping @Sendable (Stay) -> Void) {
        order.post { [weak self] in if let self { body(self) } }
    }

    private func tell(_ news: StayNews) { if !state.withLock({ $0.isOver }) { report(news) } }

    private func isCurrent(_ turn: Int) -> Bool { state.withLock { !$0.isOver && $0.turn == turn } }

    private func keep(_ publisher: MediaPublisher, _ turn: Int) {
        let isKept = state.withLock { state in
            guard !state.isOver, state.turn == turn else { return false }
            state.publisher = publisher
            return true
        }
        // What is sent may have been changed while the stream was published.
        if isKept { adjust(publisher) } else { Task { await publisher.unpublish() } }
    }

    /// Sends audio and video or stops to send them, and tells the others; nil changes nothing. It also holds for media that is
    /// published later.
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
                // Only a stream that has ended refuses this.
                if has.audio, publisher.hasAudio != sending.audio { try? await publisher.setAudio(sending.audio) }
                if has.video, publisher.hasVideo != sending.video { await self?.send(video: sending.video, publisher) }
            }
        }
    }

    /// Turns the video on or off. If the server takes no more video for now, offers it again later. Tells only the first refusal.
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
            state.withLock { state in
                state.shown.remove(stream.id)
                state.received[stream.id] = nil
            }
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
            // Another stream may take its place.
            if isShown == false { self?.state.withLock { _ = $0.shown.remove(stream.id) } }
        }
    }

    /// Tells when media arrives, and when it arrives over another connection, which has other sources.
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

    /// Media of a stream arrives, or its properties have changed. Tells only what is new.
    private func arrived(_ subscriber: MediaSubscriber) {
        let id = subscriber.stream.id
        // The end of the stream may be known already.
        guard let stream = session.core.machine.stream(id) else { return }
        let video = subscriber.video
        let arrival = Arrival(stream, subscriber)
        let news = state.withLock { state -> [StayNews] in
            let former = state.received[id]
            var now = former ?? Received(subscriber: subscriber, stream: stream)
            (now.stream, now.video, now.arrival) = (stream, video, arrival ?? now.arrival)
            state.received[id] = now
            let isNew = former.map { $0.video !== video } ?? true
            let isSame = !isNew && former?.stream == stream
            let media: [StayNews] = isSame ? [] : [.media(stream, subscriber, isNew: isNew)]
            return media + (arrival == former?.arrival ? [] : arrival.map { [.shows($0)] } ?? [])
        }
        for news in news { tell(news) }
    }

    /// Tries until it succeeds, if the plan says so. Tells only the first of several failures.
    ///
    /// - Returns: whether it succeeded.
    @discardableResult
    private func attempt(_ body: @Sendable () async throws(ConfabError) -> Void) async -> Bool {
        var backoff = WayBackoff(longest: Self.longestPause)
        var random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
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
        .notMatched, "Your partner has not entered the chat yet. Write again in a moment.", isRetryable: true)
}
