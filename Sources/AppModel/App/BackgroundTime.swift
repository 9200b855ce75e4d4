/// Whether the app is visible to the user.
public enum AppPhase: Equatable, Sendable {
    case active
    /// Visible, with system UI in front of it.
    case inactive
    case background
}

/// Requests background time from the system, which the app uses to end a chat.
@MainActor public protocol BackgroundControl: AnyObject {
    /// Called when the time has expired; the app must then end the background task.
    var onExpired: (@MainActor () -> Void)? { get set }
    func begin()
    func end()
}

/// The background time granted by the system. It is requested once and ended exactly once: the system terminates apps
/// that do not end it.
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
