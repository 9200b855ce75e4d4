import Foundation

extension ApplicationModel {
    /// What is kept on the device.
    struct Kept: Codable, Equatable {
        var server: URL?
        var recent: [URL] = []
        var about = AboutYouModel.Answers()
        var settings = DeviceSettings()
    }

    /// The app is seen, or not any more. What ends after it is left needs time of the system.
    public func phaseChanged(to phase: AppPhase) {
        switch phase {
        case .active:
            background.end()
            becameActive()
        case .background:
            background.begin()
            enteredBackground()
        case .inactive: break
        }
    }

    /// Whether pushes may ring this device. Each has to be reported to the system's call screen, so not without that.
    public var receivesPushes: Bool { platform.calls.isAllowed }
}
