import Confab
import Foundation

extension ApplicationModel {
    /// The data that the app stores on this device.
    struct Kept: Codable, Equatable {
        var server: URL?
        var recent: [URL] = []
        var about = AboutYouModel.Answers()
        var settings = DeviceSettings()
    }

    /// How long the connection stays open after the app leaves the foreground, if there is no call, no room, and no
    /// chat in the small window.
    static let backgroundTime = Duration.seconds(10)
    /// How long the app keeps running after it goes offline, so that the request to leave reaches the server.
    static let leaveTime = Duration.seconds(3)
    /// How long to wait before activating a refused audio session again. The system refuses during a phone call, and
    /// does not report when that call ends.
    static let soundTime = Duration.seconds(5)

    /// Handles a change between foreground and background.
    public func phaseChanged(to phase: AppPhase) {
        switch phase {
        case .active: becameActive()
        case .background: enteredBackground()
        case .inactive: break
        }
    }

    /// Handles the app leaving the foreground: saves the data, and prepares to go offline unless something needs the
    /// connection.
    func enteredBackground() {
        isActive = false
        kept.recent = welcome.recent
        save()
        showCameras()
        leaveSoonIfUnseen()
    }

    /// Updates the camera state that other people see. The system stops the camera while the app is off screen, but some
    /// devices keep it running while the small window is shown.
    private func showCameras() {
        func runs(inSmallWindow isShown: Bool) -> Bool { isActive || platform.cameraRunsInSmallWindow && isShown }
        roulette.showsCamera(runs(inSmallWindow: roulette.isInSmallWindow))
        room.showsCamera(runs(inSmallWindow: room.isInSmallWindow))
    }

    /// Handles the opening or closing of the small window of a chat or a room.
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

    /// Schedules going offline 10 seconds after the app leaves the foreground, and requests background time from the
    /// system for it. Cancels both if the app is active, a chat is in the small window, a call exists, a room is
    /// open, or the app is not connected anyway.
    func leaveSoonIfUnseen() {
        guard !isLeaving else { return }
        let isSeen = isActive || roulette.isInSmallWindow && roulette.smallWindow != nil
        guard !isSeen, !calls.hasCall, !room.showsRoom, line != .idle else {
            guard let cancel = cancelBackground else {
                // Keep the background time while the app is in the background: the request to leave may not have
                // reached the server yet.
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
            // `stopUnseen` and `leaveServer` call this method again. `isLeaving` makes it return immediately.
            isLeaving = true
            roulette.stopUnseen()
            leaveServer()
            (isLeaving, cancelBackground) = (false, nil)
            _ = platform.clock.schedule(after: Self.leaveTime) { [weak self] in
                // End the background time, unless a new countdown has started since.
                if self?.cancelBackground == nil { self?.background.end() }
            }
        }
    }

    // MARK: Sound

    /// Performs effects on the audio session of chats and rooms. Then handles the result of each activation.
    func follow(_ effects: [AudioEffect]) {
        platform.audio.perform(effects) { [weak self] answer in
            guard let self else { return [] }
            defer { trySoundLater() }
            return sound.handle(answer)
        }
    }

    /// Schedules a retry if the system has refused to activate an audio session. Cancels it if no session is refused.
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

    /// Whether this device accepts call pushes. Each push must be reported to CallKit, so this is false where CallKit
    /// may not be used.
    public var receivesPushes: Bool { platform.calls.isAllowed }
}
