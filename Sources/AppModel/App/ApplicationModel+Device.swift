import Foundation

extension ApplicationModel {
    /// What is kept on the device.
    struct Kept: Codable, Equatable {
        var server: URL?
        var recent: [URL] = []
        var about = AboutYouModel.Answers()
        var settings = DeviceSettings()
    }

    /// How long the connection goes on in the background without a call.
    static let backgroundTime = Duration.seconds(10)
    /// How long the system lets the app run on after it went offline: the server is told.
    static let farewellTime = Duration.seconds(3)
    /// How soon a refused audio session is tried again. Nothing tells the app when a phone call ends.
    static let soundTime = Duration.seconds(5)

    /// The app is on the screen, or not any more.
    public func phaseChanged(to phase: AppPhase) {
        switch phase {
        case .active: becameActive()
        case .background: enteredBackground()
        case .inactive: break
        }
    }

    /// Everything but a call or a room ends soon after the app is left.
    func enteredBackground() {
        isActive = false
        kept.recent = welcome.recent
        save()
        showCameras()
        leaveSoonIfUnseen()
    }

    /// Tells others whether this person's camera runs. The system stops the camera while the app is not on the screen. Some devices
    /// let it run while the small window is shown.
    private func showCameras() {
        func runs(inSmallWindow isShown: Bool) -> Bool { isActive || platform.cameraRunsInSmallWindow && isShown }
        roulette.showsCamera(runs(inSmallWindow: roulette.isInSmallWindow))
        room.showsCamera(runs(inSmallWindow: room.isInSmallWindow))
    }

    /// The small window of a chat or a room was opened or closed.
    func smallWindowChanged() {
        showCameras()
        leaveSoonIfUnseen()
    }

    func becameActive() {
        isActive = true
        leaveSoonIfUnseen()
        showCameras()
        permissions.refresh()
        trySoundAgain()
        if stage == .home, line == .idle { enter() }
    }

    /// Goes offline 10 seconds after the app is left, unless a chat is in the small window, there is a call, or a room is open. The
    /// system has to grant that time.
    func leaveSoonIfUnseen() {
        guard !isLeaving else { return }
        let isSeen = isActive || roulette.isInSmallWindow && roulette.smallWindow != nil
        guard !isSeen, !calls.hasCall, !room.showsRoom, line != .idle else {
            guard let cancel = cancelBackground else {
                // In the background, the server may not have been told yet.
                if isActive { background.end() }
                return
            }
            cancel()
            cancelBackground = nil
            return background.end()
        }
        guard cancelBackground == nil else { return }
        background.begin()
        cancelBackground = platform.clock.schedule(after: Self.backgroundTime) { [weak self] in
            guard let self else { return }
            // What ends now makes the app look at this again.
            isLeaving = true
            roulette.stopUnseen()
            leaveServer()
            (isLeaving, cancelBackground) = (false, nil)
            _ = platform.clock.schedule(after: Self.farewellTime) { [weak self] in
                // Unless the app went online meanwhile.
                if self?.cancelBackground == nil { self?.background.end() }
            }
        }
    }

    // MARK: Sound

    /// Performs effects on the session of chats and rooms. The system answers activations.
    func follow(_ effects: [AudioEffect]) {
        platform.audio.perform(effects) { [weak self] answer in
            guard let self else { return [] }
            defer { trySoundLater() }
            return sound.handle(answer)
        }
    }

    /// Tries an audio session again that the system refused, until it is active or not wanted.
    func trySoundLater() {
        guard sound.isRefused || calls.coordinator.audio.isRefused else {
            cancelSound?()
            cancelSound = nil
            return
        }
        guard cancelSound == nil else { return }
        cancelSound = platform.clock.schedule(after: Self.soundTime) { [weak self] in
            self?.cancelSound = nil
            self?.trySoundAgain()
        }
    }

    private func trySoundAgain() {
        follow(sound.handle(.tryAgain))
        if calls.coordinator.audio.isRefused { calls.handle(.audio(.tryAgain)) }
        trySoundLater()
    }

    /// Whether pushes may ring this device. Each has to be reported to the system's call screen, so not without that.
    public var receivesPushes: Bool { platform.calls.isAllowed }
}
