import Confab
import Foundation

@testable import AppModel

/// Time that passes when a test says so.
@MainActor final class FakeClock: AppClock {
    private struct Timer {
        var at: Date
        var number: Int
        var action: @MainActor () -> Void
    }

    private(set) var now = Date(timeIntervalSince1970: 1_800_000_000)
    private var timers: [Timer] = []
    private var count = 0

    func schedule(after interval: Duration, _ action: @escaping @MainActor () -> Void) -> @MainActor () -> Void {
        count += 1
        let number = count
        timers.append(Timer(at: now + Double(interval.components.seconds), number: number, action: action))
        return { [weak self] in self?.timers.removeAll { $0.number == number } }
    }

    func pass(_ seconds: Int) {
        let end = now + Double(seconds)
        while let next = timers.filter({ $0.at <= end }).min(by: { ($0.at, $0.number) < ($1.at, $1.number) }) {
            timers.removeAll { $0.number == next.number }
            now = next.at
            next.action()
        }
        now = end
    }
}

@MainActor final class FakePermissions: Permissions {
    var statuses: [Permission: PermissionStatus] = [:]
    private(set) var asked: [Permission] = []
    private var waiting: [@MainActor (PermissionStatus) -> Void] = []

    func status(of permission: Permission) -> PermissionStatus { statuses[permission] ?? .notAsked }

    func request(_ permission: Permission, completion: @escaping @MainActor (PermissionStatus) -> Void) {
        asked.append(permission)
        waiting.append { [weak self] status in
            self?.statuses[permission] = status
            completion(status)
        }
    }

    /// The person answers the oldest question.
    func answer(_ status: PermissionStatus) { if !waiting.isEmpty { waiting.removeFirst()(status) } }
}

@MainActor final class FakeLocation: Locating {
    private(set) var isRunning = false
    private var changed: (@MainActor (LocationReport) -> Void)?

    func start(_ changed: @escaping @MainActor (LocationReport) -> Void) {
        (isRunning, self.changed) = (true, changed)
    }
    func stop() { (isRunning, changed) = (false, nil) }
    func report(_ report: LocationReport) { changed?(report) }
}

/// A call screen of the system that records what it receives.
@MainActor final class FakeCallSystem: CallSystem {
    var isAllowed = true
    var onEvent: (@MainActor (CallEvent) -> Void)?
    private var effects: [CallEffect] = []
    private var action: ActionID = 100

    func perform(_ effect: CallEffect) { effects.append(effect) }
    func take() -> [CallEffect] {
        defer { effects = [] }
        return effects
    }

    /// Accepts the reports and carries out the requests so far.
    func carryOut() {
        for effect in take() {
            action += 1
            switch effect {
            case .report(let id, _, _, let push): onEvent?(.reportResult(id, push: push, .ok))
            case .request(.start(let id, _, _)): onEvent?(.system(.start(id, action)))
            case .request(.answer(let id)):
                onEvent?(.system(.answer(id, action)))
                onEvent?(.audio(.activated))
            case .request(.end(let id)): onEvent?(.system(.end(id, action)))
            case .request(.mute(let id, let isMuted)): onEvent?(.system(.mute(id, isMuted, action)))
            case .request(.hold(let id, let isHeld)): onEvent?(.system(.hold(id, isHeld, action)))
            default: break
            }
        }
    }
}

@MainActor final class FakeAudio: AudioControl {
    private(set) var effects: [AudioEffect] = []
    /// Whether the system refuses to activate the session.
    var refuses = false
    /// Whether the system takes its time with activations, until ``answer()``.
    var isSlow = false
    private var waiting: [@MainActor (Bool) -> Void] = []

    func perform(_ effect: AudioEffect, _ done: @escaping @MainActor (Bool) -> Void) {
        effects.append(effect)
        if isSlow, effect == .setActive(true) { return waiting.append(done) }
        done(!refuses || effect != .setActive(true))
    }

    /// Answers the activations that wait.
    func answer() {
        defer { waiting = [] }
        for done in waiting { done(!refuses) }
    }
}

@MainActor final class FakeRingSpeaker: RingSpeaker {
    private(set) var played: [RingTone] = []
    private(set) var stops = 0
    func play(_ tone: RingTone) { played.append(tone) }
    func stop() { stops += 1 }
}

@MainActor final class FakeAnnouncer: Announcer {
    private(set) var texts: [String] = []
    func announce(_ text: String) { texts.append(text) }
    private(set) var isPrepared = false
    func prepareToNotify() { isPrepared = true }
    private(set) var notified: [String] = []
    func notify(_ text: String) { notified.append(text) }
}

@MainActor final class FakeScreen: ScreenControl {
    var isScreenKeptAwake = false
    var isDarkAtEar = false
}

@MainActor final class FakeSettings: SettingsStore {
    var values: [String: Data] = [:]
    func data(for key: String) -> Data? { values[key] }
    func set(_ data: Data?, for key: String) { values[key] = data }
}

@MainActor final class FakeServer: AppServer {
    var onEvent: (@MainActor (AppEvent) -> Void)?
    private var requests: [AppRequest] = []

    func perform(_ request: AppRequest) { requests.append(request) }
    func take() -> [AppRequest] {
        defer { requests = [] }
        return requests
    }
}

final class FakeVideo: VideoSource {}

/// Time in the background, as the system counts it.
@MainActor final class FakeBackground: BackgroundControl {
    var onExpired: (@MainActor () -> Void)?
    private(set) var running = 0
    private(set) var begun = 0
    func begin() { (running, begun) = (running + 1, begun + 1) }
    func end() { running -= 1 }
}

/// A device for one test.
@MainActor struct FakeDevice {
    let clock = FakeClock()
    let permissions = FakePermissions()
    let location = FakeLocation()
    let calls = FakeCallSystem()
    let ringing = FakeRingSpeaker()
    let audio = FakeAudio()
    let announcer = FakeAnnouncer()
    let screen = FakeScreen()
    let settings = FakeSettings()
    let server = FakeServer()
    let background = FakeBackground()
    var cameraRunsInSmallWindow = false

    init() { permissions.statuses = [.camera: .allowed, .microphone: .allowed] }

    var platform: Platform {
        Platform(
            permissions: permissions, location: location, calls: calls, ringing: ringing, audio: audio,
            announcer: announcer, screen: screen, settings: settings, clock: clock, background: background,
            cameraRunsInSmallWindow: cameraRunsInSmallWindow)
    }
}
