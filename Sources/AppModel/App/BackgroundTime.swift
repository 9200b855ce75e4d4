/// Whether a person sees the app.
public enum AppPhase: Equatable, Sendable {
    case active
    /// Seen, but something of the system is in front of it.
    case inactive
    case background
}

/// Asks the system for the seconds in which the app ends a chat after it was left.
@MainActor public protocol BackgroundControl: AnyObject {
    /// Called when the time is over, and the app has to end it.
    var onExpired: (@MainActor () -> Void)? { get set }
    func begin()
    func end()
}

/// The time that the system gives an app that was left. It is asked for once, and given back exactly once: the system ends apps
/// that keep it.
@MainActor final class BackgroundTime {
    private let control: any BackgroundControl
    private var isRunning = false

    init(_ control: any BackgroundControl) {
        self.control = control
        control.onExpired = { [weak self] in self?.end() }
    }

    func begin() {
        guard !isRunning else { return }
        isRunning = true
        control.begin()
    }

    func end() {
        guard isRunning else { return }
        isRunning = false
        control.end()
    }
}
