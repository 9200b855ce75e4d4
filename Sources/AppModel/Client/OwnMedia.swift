import Confab

/// The camera, the microphone and the screen of this device, shared by the roulette, calls and rooms. The devices are
/// open while at least one of these uses them.
@MainActor final class OwnMedia {
    /// The parts of the app that use the devices.
    struct Uses: OptionSet, Sendable {
        let rawValue: Int
        static let roulette = Uses(rawValue: 1)
        static let call = Uses(rawValue: 2)
        static let room = Uses(rawValue: 4)
        static let all: Uses = [.roulette, .call, .room]
    }

    /// Whether the microphone and the camera are on in a use. Both can be turned off before they are open.
    struct Target {
        var audio = true
        var video = true
    }

    private let engine: (any MediaEngine)?
    private var uses: Uses = []
    private var wishes: [Uses.RawValue: Target] = [:]
    private(set) var local: (any LocalMedia)?
    /// Whether devices are being opened. Concurrent requests wait, because opening a device twice may fail.
    private var isOpening = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    /// The last change of the devices. Each one starts after the previous one has finished.
    private var switching: Task<Void, Never>?
    /// The video size chosen by the user.
    var size = PictureSize.usual { didSet { if size != oldValue { adjustCamera() } } }
    /// The limits set by the device and the room.
    var conditions = CameraConditions() { didSet { if conditions != oldValue { adjustCamera() } } }
    /// The media of a running screen share.
    private(set) var screen: (any LocalMedia)?
    /// Counts shares, so that one that starts too late is stopped.
    private var shareTurn = 0
    /// The last operation on the screen. The system has one recorder: a stop that overtakes the next start would end
    /// that share.
    private var sharing: Task<Void, Never>?
    /// The tasks that read the changes of each media in use.
    private var watching: [ObjectIdentifier: Task<Void, Never>] = [:]
    var watchedCount: Int { watching.count }
    private let clock: any AppClock
    /// How long the screen's recorder may take to begin. The person may think about the system's question.
    static let longestStart = Duration.seconds(60)
    /// How long it may take to stop. It asks nobody.
    static let longestStop = Duration.seconds(10)
    /// Called when a share starts or ends, to publish it.
    var onShare: (@MainActor ((any LocalMedia)?) -> Void)?
    /// Called with events of the devices.
    var onEvent: (@MainActor (CaptureEvent) -> Void)?

    init(_ engine: (any MediaEngine)?, clock: any AppClock = SystemClock()) {
        (self.engine, self.clock) = (engine, clock)
    }

    private var request: CameraRequest { CameraRequest(size: size, conditions: conditions) }

    /// Opens the devices for a use, or returns the open ones, with the user's mute states applied.
    func open(for use: Uses, video: Bool) async throws(ConfabError) -> any LocalMedia {
        uses.insert(use)
        await beginOpening()
        defer { endOpening() }
        if let local, local.video != nil || !video {
            await turn(wish(use), local).value
            return local
        }
        guard let engine else { throw .noEngine }
        let media = try await engine.capture(video ? .camera(CapturePreset(request)) : .microphone)
        let former = local
        local = media
        reset()
        watch(media)
        await turn(wish(use), media).value
        // The camera's media includes the microphone, so it replaces a microphone alone.
        if let former { await stop(former) }
        if uses.isEmpty { release(.all) }
        return media
    }

    private func beginOpening() async {
        guard isOpening else { return isOpening = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// Resumes the next waiting request.
    private func endOpening() {
        guard !waiting.isEmpty else { return isOpening = false }
        waiting.removeFirst().resume()
    }

    func wish(_ use: Uses) -> Target { wishes[use.rawValue] ?? Target() }

    @discardableResult private func turn(_ wish: Target, _ media: any LocalMedia) -> Task<Void, Never> {
        let task = Task { [before = switching] in
            await before?.value
            await media.setEnabled(audio: wish.audio, video: wish.video)
        }
        switching = task
        return task
    }

    func release(_ use: Uses) {
        // Each call starts unmuted. The roulette and rooms keep the user's choice.
        if use.contains(.call) { wishes[Uses.call.rawValue] = nil }
        uses.subtract(use)
        guard uses.isEmpty else { return }
        let (camera, shared) = (local, screen)
        (local, screen) = (nil, nil)
        shareTurn += 1
        conditions.remotes = 1
        guard camera != nil || shared != nil else { return }
        reset()
        if let camera {
            unwatch(camera)
            Task { await camera.stop() }
        }
        if let shared { endRecording(shared) }
    }

    private func stop(_ media: any LocalMedia) async {
        unwatch(media)
        await media.stop()
    }

    /// Turns the microphone and the camera on or off in a use, even if they are not open yet.
    func setEnabled(_ use: Uses, audio: Bool? = nil, video: Bool? = nil) {
        var wish = wish(use)
        (wish.audio, wish.video) = (audio ?? wish.audio, video ?? wish.video)
        wishes[use.rawValue] = wish
        if let local, uses.contains(use) { turn(wish, local) }
    }

    // MARK: The camera

    /// Reports the initial state of a newly opened camera: not interrupted, and the default one.
    private func reset() {
        onEvent?(.cameraInterrupted(false))
        onEvent?(.cameraFaces(.usual))
    }

    func switchCamera() {
        guard let camera = local as? any SwitchableCamera else { return }
        Task { [weak self] in
            // A device with one camera keeps it.
            guard let facing = try? await camera.switchCamera(), self?.local === camera else { return }
            self?.onEvent?(.cameraFaces(facing))
        }
    }

    private func adjustCamera() {
        guard let camera = local as? any SwitchableCamera else { return }
        // If the change fails, the camera keeps its old size.
        Task { [request] in try? await camera.change(to: request) }
    }

    /// Reads the system's changes of media until ``unwatch(_:)``.
    private func watch(_ media: any LocalMedia) {
        guard let watched = media as? any WatchedMedia else { return }
        let changes = watched.changes
        watching[ObjectIdentifier(media)] = Task { [weak self] in
            for await change in changes { self?.heard(change, media) }
        }
    }

    private func unwatch(_ media: any LocalMedia) { watching.removeValue(forKey: ObjectIdentifier(media))?.cancel() }

    private func heard(_ change: CaptureChange, _ media: any LocalMedia) {
        switch change {
        case .interrupted(let isInterrupted): if media === local { onEvent?(.cameraInterrupted(isInterrupted)) }
        case .ended: if media === screen { endShare(.screenEnded) }
        }
    }

    // MARK: The screen

    func perform(_ request: CallMediaRequest) {
        switch request {
        case .switchCamera: switchCamera()
        case .shareScreen(let isOn): share(isOn)
        }
    }

    func share(_ isOn: Bool) {
        stopSharing()
        guard isOn else { return }
        guard let engine else { return onEvent?(.shareEnded(.noEngine)) ?? () }
        let turn = shareTurn
        record(within: Self.longestStart) { [weak self] in
            guard let self, turn == shareTurn else { return }
            shareTurn += 1
            onEvent?(.shareEnded(.screenSilent))
        } operation: { [weak self] isLate in
            guard let self, turn == shareTurn else { return }
            do throws(ConfabError) {
                let media = try await engine.capture(.screen)
                // Meanwhile the person or the end of the call stopped it, or it took too long.
                guard turn == shareTurn else {
                    // Another operation may have begun, which the end of this one must not overtake.
                    if isLate() { endRecording(media) } else { await media.stop() }
                    return
                }
                screen = media
                watch(media)
                onShare?(media)
                onEvent?(.shareStarted)
            } catch {
                if turn == shareTurn { onEvent?(.shareEnded(error)) }
            }
        }
    }

    /// Ends a share, and reports the reason to the user.
    func endShare(_ trouble: ConfabError) {
        guard screen != nil else { return }
        onEvent?(.shareEnded(trouble))
        stopSharing()
    }

    private func stopSharing() {
        shareTurn += 1
        guard let screen else { return }
        self.screen = nil
        onShare?(nil)
        endRecording(screen)
    }

    private func endRecording(_ screen: any LocalMedia) {
        unwatch(screen)
        record(within: Self.longestStop) {
        } operation: { _ in
            await screen.stop()
        }
    }

    /// Begins an operation on the screen after those before. The system does not always answer: one that takes too long is not
    /// waited for.
    ///
    /// - Parameters:
    ///   - expired: called when it takes too long.
    ///   - operation: is given whether it takes too long.
    private func record(
        within limit: Duration, expired: @escaping @MainActor () -> Void,
        operation: @escaping @MainActor (_ isLate: @MainActor () -> Bool) async -> Void
    ) {
        sharing = Task { [clock, before = sharing] in
            await before?.value
            let wait = LimitedWait()
            let cancel = clock.schedule(after: limit) { if wait.end() { expired() } }
            Task {
                await operation { wait.isOver }
                cancel()
                _ = wait.end()
            }
            await wait.ended()
        }
    }
}

/// Waits for the first of two events.
@MainActor private final class LimitedWait {
    private(set) var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    /// - Returns: whether this is the first end.
    func end() -> Bool {
        guard !isOver else { return false }
        isOver = true
        waiting?.resume()
        waiting = nil
        return true
    }

    func ended() async {
        guard !isOver else { return }
        await withCheckedContinuation { waiting = $0 }
    }
}

extension CapturePreset {
    fileprivate init(_ request: CameraRequest) {
        self.init(
            size: VideoSize(width: request.width, height: request.height), frameRate: request.frameRate)
    }
}

extension ConfabError {
    static let screenEnded = ConfabError(
        "screen_ended", "Your screen is no longer shared. Press Share screen to share it again.")
    static let screenSilent = ConfabError(
        "screen_silent", "Your screen could not be recorded. Press Share screen to try again.")
    static let shareStopped = ConfabError("share_stopped", "A host stopped your screen share.")
}

extension ConfabError {
    static let noEngine = ConfabError(
        .noMediaEngine, "This app cannot use the camera or the microphone here. Use text chat.")
}
