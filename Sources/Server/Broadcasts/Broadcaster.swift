import Broadcasting
import Datagrams
import LiveComposing
import Logging
import MediaFiles
import RTC
import Signaling
import Synchronization
import Wire

/// Composes broadcasts: runs a compositor for each, lets the recorder's thread feed it, keeps what viewers load, and reports statuses.
///
/// It decides nothing about a broadcast except for how long viewers can load it after its end. All functions are safe from any thread.
final class Broadcaster: SessionBroadcaster {
    /// The settings from the configuration, and what does not change.
    struct Settings: Sendable {
        /// The path of confab-compositor.
        var compositor: String
        /// The path of ffmpeg, which sends to RTMP targets. Without it, their status is `error`.
        var ffmpeg = "ffmpeg"
        /// The folder of the broadcasts whose viewers can go back. Each has a folder of its own in it.
        var folder: String
        /// What viewers and targets get.
        var output = ConfabConfiguration.Broadcasts()
        /// Without these free bytes on the disk of `folder`, no broadcast whose viewers can go back begins. With less than half of
        /// them, all of these end.
        var minSpace: Int64 = 0
        /// How often the free space is checked.
        var spaceInterval = RecordingSpace.interval
        /// Returns the free bytes on the disk of a folder; nil if they cannot be measured.
        var freeSpace: @Sendable (String) -> Int64? = { RecordingFolder.freeSpace($0) }
        /// The maximum number of requests that wait for one broadcast.
        var maxHeld = 10_000
        /// Waits before the server stops, so that viewers can load the end.
        var pause: @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
        /// The time between two looks at timers and statuses.
        var interval = Duration.seconds(1)

        var space: RecordingSpace { RecordingSpace(minimum: minSpace) }
    }

    /// What a broadcast does. Legal next states: running → ending → ended.
    private enum Phase {
        case running
        /// The compositor composes what it has.
        case ending
        case ended(at: Timestamp, until: Timestamp)
    }

    /// A broadcast that runs, or that viewers can still load.
    private struct Broadcast {
        let key: BroadcastKey
        let live: LiveBroadcast
        let origin: HLSOrigin?
        /// How long viewers can load it after its end.
        let keep: Duration
        /// Whether it writes files, because its viewers can go back.
        let hasFiles: Bool
        var phase = Phase.running
        /// The status that was reported last. The record begins with this one.
        var status = HLSStatus.connecting
        var behind = Duration.zero

        var isRunning: Bool { if case .running = phase { true } else { false } }
    }

    /// What all threads share.
    private struct State {
        var broadcasts: [BroadcastID: Broadcast] = [:]
        var isStopping = false
        /// The frames that compositors of earlier broadcasts did not get.
        var dropped = 0
        /// Tasks that must finish before the server stops.
        var endings: [BroadcastID: Task<Void, Never>] = [:]
        /// When the free space was checked last.
        var spaceCheckedAt: Timestamp?
        /// Whether a task calls `tick`. It ends when there are no broadcasts.
        var hasTimer = false
    }

    private let settings: Settings
    private let feed: @Sendable (BroadcastFeedCommand) -> Void
    private let resolver: any PushResolver
    private let wallClock: @Sendable () -> Timestamp
    private let logger: Logger
    private let report: @Sendable (BroadcastReport) -> Void
    private let space: SpaceGauge
    private let state = Mutex(State())

    /// - Parameters:
    ///   - feed: passes a command to the recorder's thread, in order with the others.
    ///   - wallClock: the time of day.
    ///   - report: called on any thread, in order for one broadcast.
    init(
        _ settings: Settings, resolver: any PushResolver = SystemResolver(),
        wallClock: @escaping @Sendable () -> Timestamp, logger: Logger,
        feed: @escaping @Sendable (BroadcastFeedCommand) -> Void,
        report: @escaping @Sendable (BroadcastReport) -> Void
    ) {
        (self.settings, self.resolver, self.wallClock) = (settings, resolver, wallClock)
        (self.logger, self.feed, self.report) = (logger, feed, report)
        space = SpaceGauge(settings.space) { settings.freeSpace(settings.folder) }
    }

    func refusal(of request: BroadcastRequest) -> WireError? {
        request.hls?.hasDVR == true && space.isShort ? .broadcastSpace : nil
    }

    /// The clock of timers, which is also that of media.
    private static func clock() -> Timestamp { Timestamp(milliseconds: MediaTime.monotonic.nanoseconds / 1_000_000) }

    // MARK: Commands

    func send(_ command: BroadcastCommand) {
        switch command {
        case .begin(let record): begin(record)
        case .add(let id, let stream, let details): feed(.add(id, stream, details))
        case .remove(let id, let stream): feed(.remove(id, stream))
        case .setClasses(let id, let stream, let classes): feed(.setClasses(id, stream, classes))
        case .setLayout(let id, let layout): feed(.setLayout(id, MediaFiles.ArchiveLayout(layout)))
        case .end(let id): _ = end(id, reporting: true)
        }
    }

    private func begin(_ record: BroadcastRecord) {
        let id = record.id
        let publishers: [RTMPPublisher]
        do throws(RTMPDestination.Fault) {
            publishers = try record.request.rtmp.map { output throws(RTMPDestination.Fault) in try publisher(output) }
        } catch {
            // The request was refused if a URL was wrong, so this is a record of another version.
            logger.error("Cannot start a broadcast", metadata: ["broadcast": "\(id)", "error": "\(error)"])
            return report(.failed(id, .compositor))
        }
        let configuration = configuration(record.request)
        let hls = record.request.hls.map { hlsSettings($0, record.request, configuration.bitrate) }
        let hasDVR = record.request.hls?.hasDVR == true
        // The disk may have become full since the request.
        guard !hasDVR || !space.isShort else { return report(.failed(id, .diskFull)) }
        let place = hasDVR ? HLSOrigin.Place.folder("\(settings.folder)/\(id)") : .memory
        let origin = hls.map { HLSOrigin($0, in: place, maxHeld: settings.maxHeld, clock: Self.clock) }
        let live = LiveBroadcast(
            configuration, compositor: settings.compositor, segmenting: (hls ?? .standard).segmenting, origin: origin,
            publishers: publishers, wall: wallClock(), clock: Self.clock)
        let broadcast = Broadcast(
            key: record.key, live: live, origin: origin, keep: hasDVR ? settings.output.keep : settings.output.linger,
            hasFiles: hasDVR)
        let isNew = state.withLock { state in
            guard !state.isStopping, state.broadcasts[id] == nil else { return false }
            state.broadcasts[id] = broadcast
            // Before the end, which another thread may request as soon as the broadcast is known.
            feed(.begin(id, BroadcastFeed.Settings(record.request), live))
            return true
        }
        guard isNew else { return report(.failed(id, .compositor)) }
        watch(id, live, publishers)
        live.start()
        startTimer()
    }

    private func publisher(_ output: RTMPOutput) throws(RTMPDestination.Fault) -> RTMPPublisher {
        let destination = try RTMPDestination(serverURL: output.serverURL, streamName: output.streamName)
        let (resolver, allowsPrivate) = (resolver, settings.output.allowPrivateAddresses)
        return RTMPPublisher(
            destination, ffmpeg: settings.ffmpeg, problem: { await $0.problem(resolver, allowsPrivate: allowsPrivate) },
            clock: Self.clock)
    }

    private func configuration(_ request: BroadcastRequest) -> CompositorConfiguration {
        let (width, height) = (request.resolution.width, request.resolution.height)
        return CompositorConfiguration(
            width: width, height: height, bitrate: request.maxBitrate ?? settings.output.bitrate.bitsPerSecond,
            delay: request.hls?.isLowLatency == true ? .milliseconds(600) : .seconds(2),
            threads: width * height > 1_280 * 720 ? 2 : 1)
    }

    private func hlsSettings(_ output: HLSOutput, _ request: BroadcastRequest, _ bitrate: Int) -> HLSSettings {
        var settings =
            output.hasDVR
            ? HLSSettings.recordable(maxDuration: request.maxDuration, window: self.settings.output.dvrWindow)
            : output.isLowLatency ? .lowLatency : .standard
        // Audio, and a tenth for the container and short peaks.
        settings.bitrate = (bitrate + 128_000) / 10 * 11
        return settings
    }

    /// Reads the events of a broadcast until it has stopped.
    private func watch(_ id: BroadcastID, _ live: LiveBroadcast, _ publishers: [RTMPPublisher]) {
        let about: Logger.Metadata = ["broadcast": "\(id)"]
        Task {
            for await event in live.events {
                switch event {
                case .needKeyframe(let stream): feed(.requestKeyframe(id, stream))
                case .stats(let stats): state.withLock { $0.broadcasts[id]?.behind = stats.behind }
                case .failure(let text): logger.warning("Compositor: \(text)", metadata: about)
                case .failed(let failure):
                    if end(id, reporting: false) { report(.failed(id, BroadcastFailure(failure))) }
                }
            }
        }
        for (index, publisher) in publishers.enumerated() {
            let about = about.merging(["target": "\(publisher.destination)"]) { $1 }
            Task {
                for await event in publisher.events {
                    switch event {
                    case .status(let status): report(.rtmp(id, target: index, status))
                    case .failure(let text): logger.warning("RTMP target: \(text)", metadata: about)
                    }
                }
            }
        }
    }

    /// Ends a broadcast.
    ///
    /// - Parameter reporting: whether its end is reported. Otherwise the caller reports its failure.
    /// - Returns: false if it does not run.
    private func end(_ id: BroadcastID, reporting: Bool) -> Bool {
        state.withLock { state in
            guard var broadcast = state.broadcasts[id], broadcast.isRunning else { return false }
            broadcast.phase = .ending
            state.broadcasts[id] = broadcast
            feed(.end(id))
            let live = broadcast.live
            state.endings[id] = Task { [self] in
                await live.stop()
                finish(id)
                if reporting { report(.ended(id)) }
            }
            return true
        }
    }

    /// Keeps what viewers can load for some time.
    private func finish(_ id: BroadcastID) {
        state.withLock { state in
            state.endings[id] = nil
            guard var broadcast = state.broadcasts.removeValue(forKey: id) else { return }
            state.dropped += broadcast.live.dropped
            guard broadcast.origin != nil else { return }
            let now = Self.clock()
            (broadcast.phase, broadcast.behind) = (.ended(at: now, until: now + broadcast.keep), .zero)
            state.broadcasts[id] = broadcast
        }
    }

    // MARK: Time

    private func startTimer() {
        let isNew = state.withLock { state in
            defer { state.hasTimer = true }
            return !state.hasTimer
        }
        guard isNew else { return }
        Task { [self] in
            while needsTimer() {
                tick()
                try? await Task.sleep(for: settings.interval)
            }
        }
    }

    private func needsTimer() -> Bool {
        state.withLock { state in
            state.hasTimer = !state.broadcasts.isEmpty
            return state.hasTimer
        }
    }

    /// Handles timers, reports changed statuses, and removes what was kept for long enough.
    func tick() {
        let now = Self.clock()
        var (reports, removed): ([BroadcastReport], [(BroadcastID, HLSOrigin)]) = ([], [])
        let running = state.withLock { state in
            for (id, broadcast) in state.broadcasts {
                switch broadcast.phase {
                case .running:
                    guard let status = broadcast.live.hlsStatus, status != broadcast.status else { continue }
                    state.broadcasts[id]?.status = status
                    // Failures are reported otherwise.
                    if status != .error { reports.append(.hls(id, status)) }
                case .ended(_, let until) where until <= now:
                    if let origin = broadcast.origin { removed.append((id, origin)) }
                    state.broadcasts[id] = nil
                case .ending, .ended: break
                }
            }
            return state.broadcasts.values.filter { if case .ended = $0.phase { false } else { true } }.map(\.live)
        }
        for live in running { live.tick() }
        for event in reports { report(event) }
        checkSpace(at: now)
        // Deleting files may take long.
        for (id, origin) in removed { Task { remove(origin, of: id) } }
    }

    /// Ends the broadcasts that write files if their disk is nearly full, because nothing else may fail for lack of space.
    private func checkSpace(at now: Timestamp) {
        let writing = state.withLock { state -> [LiveBroadcast] in
            let writing = state.broadcasts.values.filter { $0.isRunning && $0.hasFiles }.map(\.live)
            let isDue = state.spaceCheckedAt.map { now - $0 >= settings.spaceInterval } ?? true
            guard !writing.isEmpty, isDue else { return [] }
            state.spaceCheckedAt = now
            return writing
        }
        guard !writing.isEmpty, settings.space.isUsedUp(free: settings.freeSpace(settings.folder)) else { return }
        logger.error(
            "The disk of broadcasts is nearly full: those with DVR end", metadata: ["folder": "\(settings.folder)"])
        for live in writing { live.failWithFullDisk() }
    }

    private func remove(_ origin: HLSOrigin, of id: BroadcastID) {
        do {
            try origin.remove()
        } catch {
            logger.error(
                "Cannot delete the files of a broadcast. The next start of the server deletes them.",
                metadata: ["broadcast": "\(id)", "error": "\(error)"])
        }
    }

    /// Ends all broadcasts and reports them, then lets viewers load the end. Starts no others.
    func stop(waitsForViewers: Bool = true) async {
        let running = state.withLock { state in
            state.isStopping = true
            return state.broadcasts.filter(\.value.isRunning).map(\.key)
        }
        for id in running { _ = end(id, reporting: true) }
        for task in state.withLock({ Array($0.endings.values) }) { await task.value }
        if waitsForViewers { await waitForViewers() }
        // Requests that wait would hold up the end of the server.
        let origins = state.withLock { state in
            defer { state.broadcasts = [:] }
            return state.broadcasts.compactMap { id, broadcast in broadcast.origin.map { (id, $0) } }
        }
        for (id, origin) in origins { remove(origin, of: id) }
    }

    /// Waits until those who watch have loaded the end, for at most `broadcast.stopTimeout`.
    private func waitForViewers() async {
        let now = Self.clock()
        let loaded = state.withLock { state in
            state.broadcasts.values.compactMap { broadcast -> Timestamp? in
                guard case .ended(let end, _) = broadcast.phase else { return nil }
                return broadcast.origin?.loaded(endedAt: end)
            }.max()
        }
        guard let loaded, loaded > now else { return }
        let wait = min(loaded - now, settings.output.stopTimeout)
        logger.info("Viewers load the end of broadcasts", metadata: ["seconds": "\(wait.components.seconds)"])
        await settings.pause(wait)
    }

    // MARK: Viewers and metrics

    func origin(of id: BroadcastID, key: BroadcastKey) -> HLSOrigin? {
        guard let broadcast = state.withLock({ $0.broadcasts[id] }) else { return nil }
        // In constant time, so that the time of the answer does not reveal the beginning of the key.
        let isRight = (broadcast.key.high ^ key.high) | (broadcast.key.low ^ key.low) == 0
        return isRight ? broadcast.origin : nil
    }

    var figures: BroadcastFigures {
        state.withLock { state in
            var figures = BroadcastFigures(dropped: state.dropped)
            for broadcast in state.broadcasts.values {
                figures.held += broadcast.origin?.held ?? 0
                guard case .running = broadcast.phase else { continue }
                figures.running += 1
                figures.behind = max(figures.behind, broadcast.behind)
                figures.dropped += broadcast.live.dropped
            }
            return figures
        }
    }
}

extension BroadcastFailure {
    fileprivate init(_ failure: CompositorRuns.Failure) {
        switch failure {
        case .crashes: self = .compositor
        case .diskFull: self = .diskFull
        }
    }
}

extension BroadcastFeed.Settings {
    fileprivate init(_ request: BroadcastRequest) {
        self.init(
            layout: MediaFiles.ArchiveLayout(request.layout ?? .usual),
            canvas: ArchiveCanvas(width: request.resolution.width, height: request.resolution.height),
            hasAudio: request.hasAudio, hasVideo: request.hasVideo)
    }
}

extension MediaFiles.ArchiveLayout {
    fileprivate init(_ layout: CompositionLayout) {
        self.init(layout.type, stylesheet: layout.stylesheet, screenshareType: layout.screenshareType)
    }
}

extension RTMPDestination {
    /// Returns why the server may not connect to the target; nil if it may. ffmpeg resolves the name again, so all its addresses
    /// must be public.
    func problem(_ resolver: any PushResolver, allowsPrivate: Bool) async -> String? {
        let addresses: [IPAddress]
        if let address = IPAddress(host) {
            addresses = [address]
        } else {
            addresses = (try? await resolver.addresses(of: host)) ?? []
        }
        guard !addresses.isEmpty else { return "The host name of the target is unknown." }
        guard allowsPrivate || addresses.allSatisfy(PublicAddresses.contain) else {
            return "The target is on a private network, which only broadcast.allowPrivateAddresses allows."
        }
        return nil
    }
}
