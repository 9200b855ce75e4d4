import Wire

// Media quality in a session: audio fallback, and reports of the audio level.
extension SessionMedia {
    // MARK: Audio fallback

    /// Starts audio fallback: stops the video of a stream whenever the network cannot carry it.
    func beginFallback(of publication: Publication) {
        let runner = Runner(AudioFallback(), clock: core.dependencies.clock)
        runner.onEffect { [weak self, weak publication] effect in
            guard let self, let publication else { return }
            carryOut(effect, of: publication)
        }
        publication.state.withLock { if !$0.isEnded { $0.fallback = runner } }
    }

    /// Handles the server's quality rating of a stream. Delay alone does not stop the video: on a long path, sending
    /// less would not reduce the delay. Without video, the rating is about the audio, and there is nothing to stop.
    func judge(_ publication: Publication, _ level: Session.Quality, _ reason: Session.QualityReason?) {
        let (hasVideo, fallback) = publication.state.withLock { ($0.hasVideo, $0.fallback) }
        let isTooSlow = hasVideo && level == .poor && (reason == .loss || reason == .bandwidth)
        fallback?.post(.judged(isTooSlow: isTooSlow))
    }

    private func carryOut(_ effect: AudioFallback.Effect, of publication: Publication) {
        switch effect {
        case .warned: publication.events.send(.videoWarning(true))
        case .warningLifted: publication.events.send(.videoWarning(false))
        case .stopped:
            withhold(true, publication)
            publication.events.send(.videoStopped)
        case .resumed:
            withhold(false, publication)
            publication.events.send(.videoResumed)
        case .forgotten: withhold(false, publication)
        }
    }

    private func withhold(_ isStopped: Bool, _ publication: Publication) {
        let now = publication.state.withLock { state in
            state.isVideoStopped = isStopped
            return state
        }
        guard !now.isEnded else { return }
        if let pair = now.pair { state.withLock { $0.link }?.send(now.sentVideo, .video, on: pair) }
        var update = SessionVerb.Update()
        (update.session, update.stream) = (session.id, publication.id)
        update.hasVideo = now.hasVideo && !isStopped
        core.send(.session(.update(update))) { result in
            if case .failure(let error) = result { publication.events.send(.failed(error)) }
        }
    }

    // MARK: Levels

    func reportAudioLevel(of subscription: Subscription, every interval: Duration?) {
        let meter = interval.map { interval in
            LevelMeter(max(interval, LevelMeter.shortestInterval), clock: core.dependencies.clock) {
                [weak self, weak subscription] in
                guard let self, let subscription else { return }
                let levels = await audioLevels(of: subscription)
                if let level = levels.max() { subscription.events.send(.audioLevel(level)) }
            }
        }
        let obsolete = subscription.state.withLock { state in
            guard !state.isEnded else { return meter }
            defer { state.meter = meter }
            return state.meter
        }
        withExtendedLifetime(obsolete) {}
    }

    private func audioLevels(of subscription: Subscription) async -> [Double] {
        await counters(of: subscription).filter { $0.kind == .audio }.compactMap(\.audioLevel)
    }
}

/// Repeats a measurement until this object is released. The next measurement is scheduled when the previous one has
/// ended.
final class LevelMeter: Sendable {
    static let shortestInterval = Duration.milliseconds(50)

    private let interval: Duration
    private let clock: any SignalClock
    private let measure: @Sendable () async -> Void
    private let cancel = LockedValue<(@Sendable () -> Void)?>(nil)

    init(_ interval: Duration, clock: any SignalClock, _ measure: @escaping @Sendable () async -> Void) {
        (self.interval, self.clock, self.measure) = (interval, clock, measure)
        wait()
    }

    deinit { cancel.withLock { $0 }?() }

    private func wait() {
        let scheduled = clock.schedule(at: clock.now + interval) { [weak self] in
            guard let measure = self?.measure else { return }
            Task {
                await measure()
                self?.wait()
            }
        }
        cancel.withLock { $0 = scheduled }
    }
}
