import Foundation

/// What a device allows, which the person decides.
public enum Permission: CaseIterable, Sendable { case camera, microphone, location }

public enum PermissionStatus: Equatable, Sendable {
    case notAsked, allowed, refused
    /// Parents or an employer forbid it.
    case restricted
    /// The device has none.
    case missing

    /// What a permission means on this device. The system hides a device that restrictions forbid, so a missing device may mean
    /// `restricted`.
    public func onDevice(_ exists: Bool) -> PermissionStatus { exists || self == .restricted ? self : .missing }
}

@MainActor public protocol Permissions: AnyObject {
    func status(of permission: Permission) -> PermissionStatus
    func request(_ permission: Permission, completion: @escaping @MainActor (PermissionStatus) -> Void)
}

extension Permissions {
    /// Whether the camera can be used, or asked for.
    var mayShow: Bool {
        switch status(of: .camera) {
        case .allowed, .notAsked: true
        case .refused, .restricted, .missing: false
        }
    }

    /// Asks for what was not asked yet, one after the other, and goes on whatever the answers are. At once if there is nothing
    /// to ask.
    func settle(_ needed: [Permission], then: @escaping @MainActor () -> Void) {
        guard let next = needed.first else { return then() }
        let rest = Array(needed.dropFirst())
        guard status(of: next) == .notAsked else { return settle(rest, then: then) }
        request(next) { [weak self] _ in self?.settle(rest, then: then) }
    }

    /// Whether the microphone can be used, or asked for. Without one, a person can still listen.
    var mayTalk: Bool {
        switch status(of: .microphone) {
        case .allowed, .notAsked, .missing: true
        case .refused, .restricted: false
        }
    }
}

/// A position, in degrees and meters.
public struct DevicePosition: Equatable, Sendable {
    public var latitude: Double
    public var longitude: Double
    public var accuracy: Double?

    public init(latitude: Double, longitude: Double, accuracy: Double? = nil) {
        (self.latitude, self.longitude, self.accuracy) = (latitude, longitude, accuracy)
    }

    /// A position of the system; nil if it is not valid, which the system says by a negative accuracy.
    public init?(latitude: Double, longitude: Double, measured accuracy: Double) {
        guard accuracy >= 0, latitude.isFinite, longitude.isFinite else { return nil }
        self.init(latitude: latitude, longitude: longitude, accuracy: accuracy)
    }

    /// How far the device moves before a new position is reported, in meters. The server keeps about 2 km.
    public static let reportedDistance = 50.0
}

@MainActor public protocol Locating: AnyObject {
    /// Calls `changed` with what becomes known, until the next call of `start` or `stop`. After ``LocationReport/forbidden(_:)``
    /// nothing follows.
    func start(_ changed: @escaping @MainActor (LocationReport) -> Void)
    func stop()
}

/// Whether the device has a network.
public enum NetworkState: CaseIterable, Sendable {
    case available, unavailable
    /// There is one as soon as something connects, for example a VPN.
    case onDemand
}

/// The system's call screen: CallKit, or nothing where it must not be used.
@MainActor public protocol CallSystem: AnyObject {
    /// Whether the system's screen may be used on this device.
    var isAllowed: Bool { get }
    /// Called with what the system and PushKit say. A push has to be passed on synchronously.
    var onEvent: (@MainActor (CallEvent) -> Void)? { get set }
    /// Performs the effects from `report` to `fail`. It ignores others.
    func perform(_ effect: CallEffect)
}

/// The audio session.
@MainActor public protocol AudioControl: AnyObject {
    /// Performs an effect after those before it. An activation can take seconds, so it must not block the main thread:
    /// ``AudioLane`` decides where each effect runs.
    ///
    /// - Parameter done: called once, at once or later, with false if the system refused the effect.
    func perform(_ effect: AudioEffect, _ done: @escaping @MainActor (Bool) -> Void)
}

extension AudioControl {
    /// Performs effects in order, and what follows from the system's answers.
    func perform(_ effects: [AudioEffect], _ answer: @escaping @MainActor (SystemAudioEvent) -> [AudioEffect]) {
        for effect in effects {
            perform(effect) { [weak self] isDone in
                guard effect == .setActive(true) else { return }
                self?.perform(answer(isDone ? .activated : .refused), answer)
            }
        }
    }
}

/// Speaks to people who use VoiceOver, and shows notifications.
@MainActor public protocol Announcer: AnyObject {
    func announce(_ text: String)
    /// Asks for the permission to show notifications, if the person was not asked yet. A locked phone cannot ask.
    func prepareToNotify()
    /// Shows a notification without a sound, for a person whose phone is locked. The system shows nothing without the permission.
    func notify(_ text: String)
}

@MainActor public protocol ScreenControl: AnyObject {
    /// Whether the screen stays on without touches.
    var isScreenKeptAwake: Bool { get set }
    /// Whether the screen goes dark at the ear.
    var isDarkAtEar: Bool { get set }
}

/// Settings of this device. Secrets are not kept here.
@MainActor public protocol SettingsStore: AnyObject {
    func data(for key: String) -> Data?
    func set(_ data: Data?, for key: String)
}

/// Time, so that tests do not wait.
@MainActor public protocol AppClock: AnyObject {
    var now: Date { get }
    /// Calls `action` once after an interval, unless the returned closure is called before.
    func schedule(after interval: Duration, _ action: @escaping @MainActor () -> Void) -> @MainActor () -> Void
}

/// Everything that the model needs of the device.
@MainActor public struct Platform {
    public var permissions: any Permissions
    public var location: any Locating
    public var calls: any CallSystem
    /// Rings where the system's call screen must not be used.
    public var ringing: any RingSpeaker
    public var audio: any AudioControl
    public var announcer: any Announcer
    public var screen: any ScreenControl
    public var settings: any SettingsStore
    public var clock: any AppClock
    public var background: any BackgroundControl
    /// Whether the camera reads QR codes on this device.
    public var canScan: Bool
    /// Whether the system lets the camera run while the app is only seen in the small window.
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

/// The clock of the device.
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
