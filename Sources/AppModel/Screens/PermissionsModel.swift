import Observation

/// Requests the permissions to use the camera and the microphone when they are first needed. The user can always
/// continue without the devices.
@MainActor @Observable public final class PermissionsModel: Screen {
    /// The kind of chat with which the user continues.
    public enum Outcome: Equatable, Sendable { case video, voice, text }

    public private(set) var camera: PermissionStatus
    public private(set) var microphone: PermissionStatus
    public private(set) var isAsking = false
    private let permissions: any Permissions
    private let done: @MainActor (Outcome) -> Void

    init(permissions: any Permissions, done: @escaping @MainActor (Outcome) -> Void) {
        (self.permissions, self.done) = (permissions, done)
        camera = permissions.status(of: .camera)
        microphone = permissions.status(of: .microphone)
    }

    /// The kind of chat that the current permissions allow.
    public var outcome: Outcome {
        guard microphone == .allowed else { return .text }
        return camera == .allowed ? .video : .voice
    }

    public var isUndecided: Bool { camera == .notAsked || microphone == .notAsked }
    public var offersSettings: Bool { camera == .refused || microphone == .refused }

    public var statusText: String {
        if isAsking { return "Allow the camera and the microphone." }
        if isUndecided {
            return "Others see and hear you only while you are talking with them. Next, iOS asks for your permission."
        }
        switch (camera, microphone) {
        case (.allowed, .allowed): return "The camera and the microphone are ready."
        case (_, .restricted): return "Microphone access is restricted on this device. You can still use text chat."
        case (_, .missing): return "No microphone was found. Connect one and try again, or use text chat."
        case (.missing, .allowed): return "No camera was found. Others can still hear you."
        case (.restricted, .allowed): return "Camera access is restricted on this device. Others can still hear you."
        case (.refused, .allowed):
            return "The camera is blocked. Others can hear you. Allow the camera in Settings to be seen."
        default: return "The microphone is blocked. Allow it in Settings to talk, or use text chat."
        }
    }

    public var continueText: String {
        switch outcome {
        case .video: "Continue"
        case .voice: "Use microphone only"
        case .text: "Use text chat"
        }
    }

    /// Requests the permissions that the user has neither granted nor refused, starting with the camera.
    public func ask() {
        guard !isAsking else { return }
        askNext()
    }

    private func askNext() {
        let next: Permission? = camera == .notAsked ? .camera : microphone == .notAsked ? .microphone : nil
        isAsking = next != nil
        guard let next else { return }
        permissions.request(next) { [weak self] status in
            guard let self else { return }
            if next == .camera { camera = status } else { microphone = status }
            // The system may return without a decision, for example when the app goes to the background.
            if status == .notAsked { isAsking = false } else { askNext() }
        }
    }

    /// Updates the permissions when the app becomes active again, perhaps after a visit to Settings.
    func refresh() {
        guard !isAsking else { return }
        camera = permissions.status(of: .camera)
        microphone = permissions.status(of: .microphone)
    }

    public func proceed() { done(outcome) }

    public var lines: [ScreenLine] {
        var lines: [ScreenLine] = [.title("Camera and microphone"), .text(statusText)]
        if isUndecided { lines.append(.button("Allow", isEnabled: !isAsking)) }
        if offersSettings { lines.append(.button("Open Settings")) }
        return lines + [.button(continueText, isEnabled: !isAsking)]
    }
}
