import Foundation

/// A device feature that needs the user's permission.
public enum Permission: CaseIterable, Sendable { case camera, microphone, location }

/// Whether the app may use a device feature, or why not.
public enum PermissionStatus: Equatable, Sendable {
    case notAsked, allowed, refused
    /// Parental controls or device management forbid it.
    case restricted
    /// The device does not have the hardware.
    case missing

    /// Returns this status, or `missing` if the device lacks the hardware. Returns `restricted` unchanged, because the
    /// system hides hardware that restrictions forbid, so its absence proves nothing.
    public func onDevice(_ exists: Bool) -> PermissionStatus { exists || self == .restricted ? self : .missing }
}

/// Reads and requests the user's permissions.
@MainActor public protocol Permissions: AnyObject {
    func status(of permission: Permission) -> PermissionStatus
    func request(_ permission: Permission, completion: @escaping @MainActor (PermissionStatus) -> Void)
}

extension Permissions {
    /// Whether the camera may be used, or its permission can still be requested.
    var mayShow: Bool {
        switch status(of: .camera) {
        case .allowed, .notAsked: true
        case .refused, .restricted, .missing: false
        }
    }

    /// Requests each of the permissions that is still undecided, one at a time. Then calls `then`, whatever the user
    /// decided. Calls it synchronously if there is nothing to request.
    func settle(_ needed: [Permission], then: @escaping @MainActor () -> Void) {
        guard let next = needed.first else { return then() }
        let rest = Array(needed.dropFirst())
        guard status(of: next) == .notAsked else { return settle(rest, then: then) }
        request(next) { [weak self] _ in self?.settle(rest, then: then) }
    }

    /// Whether the user may join a conversation: the microphone is allowed, permission can still be requested, or
    /// there is no microphone. Without a microphone, the user can still listen.
    var mayTalk: Bool {
        switch status(of: .microphone) {
        case .allowed, .notAsked, .missing: true
        case .refused, .restricted: false
        }
    }
}

/// A geographic position. The coordinates are in degrees. The accuracy is in meters, or nil if it is unknown.
public struct DevicePosition: Equatable, Sendable {
    public var latitude: Double
    public var longitude: Double
    public var accuracy: Double?

    public init(latitude: Double, longitude: Double, accuracy: Double? = nil) {
        (self.latitude, self.longitude, self.accuracy) = (latitude, longitude, accuracy)
    }

    /// Creates a position from the system's values; nil if they are invalid, which the system marks with a negative
    /// accuracy.
    public init?(latitude: Double, longitude: Double, measured accuracy: Double) {
        guard accuracy >= 0, latitude.isFinite, longitude.isFinite else { return nil }
        self.init(latitude: latitude, longitude: longitude, accuracy: accuracy)
    }

    /// How far the device must move before a new position is reported, in meters. Smaller moves do not matter, because
    /// the server rounds positions to about 2 km.
    public static let reportedDistance = 50.0
}

/// Measures the position of the device.
@MainActor public protocol Locating: AnyObject {
    /// Calls `changed` with each report until the next `start` or `stop` call. ``LocationReport/forbidden(_:)`` is
    /// the last report.
    func start(_ changed: @escaping @MainActor (LocationReport) -> Void)
    func stop()
}

/// Whether the device has a network.
public enum NetworkState: CaseIterable, Sendable {
    case available, unavailable
    /// A network that comes up when something connects, for example a VPN.
    case onDemand
}

/// The system's call screen: CallKit, or a stub where CallKit may not be used.
@MainActor public protocol CallSystem: AnyObject {
    /// Whether CallKit may be used on this device.
    var isAllowed: Bool { get }
    /// Called with events of CallKit and PushKit. A push must be passed on synchronously.
    var onEvent: (@MainActor (CallEvent) -> Void)? { get set }
    /// Performs the effects for CallKit, which are the cases from `report` to `fail` of ``CallEffect``. Ignores all
    /// others.
    func perform(_ effect: CallEffect)
}

/// Controls the audio session.
@MainActor public protocol AudioControl: AnyObject {
    /// Performs an effect once all earlier ones are done. An activation can take seconds, so it must not block the
    /// main thread: ``AudioLane`` decides where each effect runs.
    ///
    /// - Parameter done: called once, immediately or later, with false if the system refused the effect.
    func perform(_ effect: AudioEffect, _ done: @escaping @MainActor (Bool) -> Void)
}

extension AudioControl {
    /// Performs effects in order, followed by the effects that `answer` returns for the result of an activation.
    func perform(_ effects: [AudioEffect], _ answer: @escaping @MainActor (SystemAudioEvent) -> [AudioEffect]) {
        for effect in effects {
            perform(effect) { [weak self] isDone in
                guard effect == .setActive(true) else { return }
                self?.perform(answer(isDone ? .activated : .refused), answer)
            }
        }
    }
}

/// Sends VoiceOver announcements and shows notifications.
@MainActor public protocol Announcer: AnyObject {
    func announce(_ text: String)
    /// Requests permission to show notifications, if it is still undecided. A locked phone cannot show the prompt.
    func prepareToNotify()
    /// Shows a silent notification to a user whose phone is locked. Without permission, the system shows nothing.
    func notify(_ text: String)
}

/// Controls whether the device's screen turns off.
@MainActor public protocol ScreenControl: AnyObject {
    /// Whether the screen stays on without touches.
    var isScreenKeptAwake: Bool { get set }
    /// Whether the screen turns off while the phone is at the ear.
    var isDarkAtEar: Bool { get set }
}

/// Stores settings on this device. Secrets are not stored here.
@MainActor public protocol SettingsStore: AnyObject {
    func data(for key: String) -> Data?
    func set(_ data: Data?, for key: String)
}

/// The current time and timers. Tests replace it, so that they do not wait in real time.
@MainActor public protocol AppClock: AnyObject {
    var now: Date { get }
    /// Calls `action` once after `interval`, unless the returned closure is called first.
    func schedule(after interval: Duration, _ action: @escaping @MainActor () -> Void) -> @MainActor () -> Void
}

/// All device services that the model uses.
@MainActor public struct Platform {
    public var permissions: any Permissions
    public var location: any Locating
    public var calls: any CallSystem
    /// Plays ringtones where CallKit may not be used.
    public var ringing: any RingSpeaker
    public var audio: any AudioControl
    public var announcer: any Announcer
    public var screen: any ScreenControl
    public var settings: any SettingsStore
    public var clock: any AppClock
    public var background: any BackgroundControl
    /// Whether this device can scan QR codes with its camera.
    public var canScan: Bool
    /// Whether the system lets the camera run while only the app's small window is visible.
    public var cameraRunsInSmallWindow: Bool

    public init(
        permissions: any Permissions, location: any Locating, calls: any CallSystem, ringing: any RingSpeaker,
        audio: any AudioControl, announcer: any Announcer, screen: any ScreenControl, settings: any SettingsStore,
        clock: any AppClock, background: any BackgroundControl, canScan: Bool = false,
        cameraRunsInSmallWindow: Bool = false
    ) {
        (self.permissions, self.location, self.calls, self.audio) = (permissions, location, calls, audio)
        (self.announcer, self.screen, self.settings, self.clock) = (announcer, screen, settings, clock)
        (self.background, self.canScan, self.ringing) = (background, canScan, ringing)
        self.cameraRunsInSmallWindow = cameraRunsInSmallWindow
    }
}

/// An ``AppClock`` that runs in real time.
@MainActor public final class SystemClock: AppClock {
    public init() {}

    public var now: Date { Date() }

    public func schedule(
        after interval: Duration, _ action: @escaping @MainActor () -> Void
    ) -> @MainActor () -> Void {
        let task = Task {
            try? await Task.sleep(for: interval)
            if !Task.isCancelled { action() }
        }
        return { task.cancel() }
    }
}
