import Foundation

extension ApplicationModel {
    /// What is kept on the device.
    struct Kept: Codable, Equatable {
        var server: URL?
        var recent: [URL] = []
        var about = AboutYouModel.Answers()
        var settings = DeviceSettings()
    }

    /// Whether pushes may ring this device. Each has to be reported to the system's call screen, so not without that.
    public var receivesPushes: Bool { platform.calls.isAllowed }
}
