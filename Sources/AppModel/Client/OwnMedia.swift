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

    /// The user's choice for one part of the app: whether the microphone and the camera are on. It can be made before
    /// the devices are open.
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
    /// The last change that turned the devices on or off. Each change starts after the previous one has finished.
    private var switching: Task<Void, Never>?
    /// The video size chosen by the user.
    var size = PictureSize.usual { didSet { if size != oldValue { adjustCamera() } } }
    /// The conditions that limit the camera: the state of the device, and the other people.
    var conditions = CameraConditions() { didSet { if conditions != oldValue { adjustCamera() } } }
    /// The media of a running screen share.
    private(set) var screen: (any LocalMedia)?
    /// Identifies the current share. It changes when a share starts, ends, or fails to start in time, so that media
    /// captured for an earlier share is stopped.
    private var shareTurn = 0
    /// The last operation on the screen recorder. The operations run one at a time, because the system has only one
    /// recorder: a stop that overtakes the next start would end the new share.
    private var sharing: Task<Void, Never>?
    /// The tasks that read the changes to the media in use, keyed by the media's identity.
    private var watching: [ObjectIdentifier: Task<Void, Never>] = [:]
    var watchedCount: Int { watching.count }
    private let clock: any AppClock
    /// How long the screen recorder may take to start. Before it starts, the system asks the user for confirmation.
    static let longestStart = Duration.seconds(60)
    /// How long the screen recorder may take to stop. This needs no answer from the user.
    static let longestStop = Duration.seconds(10)
    /// Called with the media when a share starts, to publish it, and with nil when the share ends.
    var onShare: (@MainActor ((any LocalMedia)?) -> Void)?
    /// Called with events of the devices.
    var onEvent: (@MainActor (CaptureEvent) -> Void)?

    init(_ engine: (any MediaEngine)?, clock: any AppClock = SystemClock()) {
        (self.engine, self.clock) = (engine, clock)
    }

    private var request: CameraRequest { CameraRequest(size: size, conditions: conditions) }

    /// Opens the microphone, and the camera if `video` is true, or returns the open devices. Applies the user's mute
    /// states.
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

    /// Lets the next waiting request open the devices. If none waits, the next request need not wait.
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

    /// Sets whether the microphone and the camera are on for one part of the app. Applies at once if it uses open
    /// devices, otherwise when it opens them.
    func setEnabled(_ use: Uses, audio: Bool? = nil, video: Bool? = nil) {
        var wish = wish(use)
        (wish.audio, wish.video) = (audio ?? wish.audio, video ?? wish.video)
        wishes[use.rawValue] = wish
        if let local, uses.contains(use) { turn(wish, local) }
    }

    // MARK: The camera

    /// Reports the initial state of the camera after it was opened or released: not interrupted, and facing the
    /// default direction.
    private func reset() {
        onEvent?(.cameraInterrupted(false))
        onEvent?(.cameraFaces(.usual))
    }

    func switchCamera() {
        guard let camera = local as? any SwitchableCamera else { return }
        Task { [weak self] in
            // If the other camera cannot be used, the current one stays in use.
            guard let facing = try? await camera.switchCamera(), self?.local === camera else { return }
            self?.onEvent?(.cameraFaces(facing))
        }
    }

    private func adjustCamera() {
        guard let camera = local as? any SwitchableCamera else { return }
        // If the change fails, the camera keeps its old size.
        Task { [request] in try? await camera.change(to: request) }
    }

    /// Reads the system's changes to media until ``unwatch(_:)``.
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
                // The share may have been stopped while capture was starting: by the user, by the end of the call, or
                // because starting took too long.
                guard turn == shareTurn else {
                    // If starting took too long, the next operation may already be running. Queue the stop behind it.
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

    /// Ends the running share, and reports the reason to the user. Does nothing if there is none.
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

    /// Queues an operation on the screen behind the earlier ones. The system does not always answer, so the next
    /// operation starts after the limit even if this one has not finished.
    ///
    /// - Parameters:
    ///   - limit: how long the next operation waits for this one.
    ///   - expired: called if the operation exceeds the limit.
    ///   - operation: the work. Its parameter returns whether the limit has been exceeded.
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

/// Waits for an operation to end or for its time limit to pass, whichever comes first.
@MainActor private final class LimitedWait {
    private(set) var isOver = false
    private var waiting: CheckedContinuation<Void, Never>?

    /// Ends the wait, unless it has already ended.
    ///
    /// - Returns: whether this call ended the wait.
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
