/// Whether the app is visible to the user.
public enum AppPhase: Equatable, Sendable {
    case active
    /// Visible, with system UI in front of it.
    case inactive
    case background
}

/// Requests background time from the system, which the app uses to end a chat before the system suspends the app.
@MainActor public protocol BackgroundControl: AnyObject {
    /// Called shortly before the background time runs out. The app must then call ``end()``.
    var onExpired: (@MainActor () -> Void)? { get set }
    func begin()
    func end()
}

/// The background time granted by the system. Each request is ended exactly once, because the system terminates apps
/// that do not end their background time.
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
