import AppModel
import Foundation
import Observation

/// A device that permits everything and stays in one place.
@MainActor final class SimulatedDevice {
    let calls = SimulatedCallKit()
    let audio = SimulatedAudio()
    private let permissions = AllPermitted()
    private let location: FixedLocation
    private let announcer = SilentAnnouncer()
    private let screen = SimulatedScreen()
    private let settings = MemorySettings()
    private let background = NoBackground()

    init(at position: DevicePosition) { location = FixedLocation(position) }

    var platform: Platform {
        Platform(
            permissions: permissions, location: location, calls: calls, ringing: SilentRing(), audio: audio,
            announcer: announcer, screen: screen, settings: settings, clock: SystemClock(), background: background)
    }
}

@MainActor private final class SilentRing: RingSpeaker {
    func play(_ tone: RingTone) {}
    func stop() {}
}

/// The audio session and the audio unit, which carry sound only if both are on.
@MainActor @Observable final class SimulatedAudio: AudioControl {
    private(set) var isActive = false
    private(set) var isEnabled = false
    var isSounding: Bool { isActive && isEnabled }

    func perform(_ effect: AudioEffect, _ done: @escaping @MainActor (Bool) -> Void) {
        switch effect {
        case .configure: break
        case .sessionDidActivate: isActive = true
        case .sessionDidDeactivate: isActive = false
        case .setActive(let isActive): self.isActive = isActive
        case .setEnabled(let isEnabled): self.isEnabled = isEnabled
        }
        done(true)
    }
}

@MainActor private final class AllPermitted: Permissions {
    func status(of permission: Permission) -> PermissionStatus { .allowed }
    func request(_ permission: Permission, completion: @escaping @MainActor (PermissionStatus) -> Void) {
        completion(.allowed)
    }
}

@MainActor private final class FixedLocation: Locating {
    private let position: DevicePosition

    init(_ position: DevicePosition) { self.position = position }

    func start(_ changed: @escaping @MainActor (LocationReport) -> Void) { changed(.position(position)) }
    func stop() {}
}

@MainActor private final class SilentAnnouncer: Announcer {
    func announce(_ text: String) {}
    func prepareToNotify() {}
    func notify(_ text: String) {}
}

@MainActor private final class SimulatedScreen: ScreenControl {
    var isScreenKeptAwake = false
    var isDarkAtEar = false
}

/// The app is never left.
@MainActor private final class NoBackground: BackgroundControl {
    var onExpired: (@MainActor () -> Void)?
    func begin() {}
    func end() {}
}

@MainActor private final class MemorySettings: SettingsStore {
    private var values: [String: Data] = [:]
    func data(for key: String) -> Data? { values[key] }
    func set(_ data: Data?, for key: String) { values[key] = data }
}
