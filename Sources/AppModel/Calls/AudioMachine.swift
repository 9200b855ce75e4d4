/// An action on the audio session or on WebRTC's audio unit.
public enum AudioEffect: Equatable, Sendable {
    /// Sets the category and the mode of the session without activating it. If `speaker` is false, the earpiece plays
    /// the sound, unless the user chooses another device.
    case configure(speaker: Bool)
    /// Notifies WebRTC that the system activated the session.
    case sessionDidActivate
    case sessionDidDeactivate
    /// Activates or deactivates the session in cases where the system does not do so itself. The answer to an
    /// activation is ``SystemAudioEvent/activated`` or ``SystemAudioEvent/refused``.
    case setActive(Bool)
    /// Allows or stops WebRTC's playback and recording.
    case setEnabled(Bool)
}

/// The kind of conversation for which the audio session is configured.
public enum AudioMode: Equatable, Sendable {
    /// Uses the loudspeaker, for users who sit at some distance from the camera.
    case videoChat
    /// Uses the earpiece, for a phone held at the ear.
    case voiceChat

    public init(speaker: Bool) { self = speaker ? .videoChat : .voiceChat }
}

/// Decides when audio runs. During calls the system activates the audio session and the app never does: WebRTC counts
/// activations, and an additional one by the app would make the next call silent. Where CallKit is not used, the app
/// activates the session.
///
/// Invariant: audio is enabled only while the session is active.
public struct AudioMachine: Equatable, Sendable {
    /// Whether audio is on at launch, before any connection.
    public static let isEnabledAtLaunch = false
    /// Whether the loudspeaker is selected at launch, before any connection.
    public static let usesSpeakerAtLaunch = true

    /// Whether the audio session is active, as far as the app knows.
    private enum Activation: Equatable {
        case inactive
        /// The app requested activation. Next: `active` or `refused`.
        case asked
        /// The system refused. WebRTC has not counted this activation, so the app must not deactivate the session.
        /// Next: `asked` or `inactive`.
        case refused
        case active
    }

    public let usesSystem: Bool
    public private(set) var isEnabled = Self.isEnabledAtLaunch
    /// Whether the loudspeaker plays the sound. If not, the earpiece does: without video, the phone is at the ear.
    public private(set) var usesSpeaker = Self.usesSpeakerAtLaunch
    private var activation = Activation.inactive
    private var isWanted = false

    public init(usesSystem: Bool) { self.usesSystem = usesSystem }

    public var isActive: Bool { activation == .active }
    /// Whether audio is needed, but the system refused to activate the session.
    public var isRefused: Bool { activation == .refused }

    /// Selects the loudspeaker or the earpiece.
    public mutating func use(speaker: Bool) -> [AudioEffect] {
        guard speaker != usesSpeaker else { return [] }
        usesSpeaker = speaker
        return isActive ? configure() : []
    }

    /// Sets whether a conversation needs audio.
    public mutating func want(_ isWanted: Bool) -> [AudioEffect] {
        guard isWanted != self.isWanted else { return [] }
        self.isWanted = isWanted
        if usesSystem { return enable() }
        return isWanted ? activate() : enable() + deactivate()
    }

    public mutating func handle(_ event: SystemAudioEvent) -> [AudioEffect] {
        guard usesSystem else { return answer(event) }
        switch event {
        case .activated:
            guard !isActive else { return [] }
            activation = .active
            return [.sessionDidActivate] + configure() + enable()
        case .deactivated:
            guard isActive else { return [] }
            activation = .inactive
            return enable() + [.sessionDidDeactivate]
        case .refused, .tryAgain: return []
        }
    }

    /// Configures the session again at the end of a hold. The system does not always report that the session has
    /// become active, so this does not wait for that report.
    public func resume() -> [AudioEffect] { configure() }

    func configure() -> [AudioEffect] { [.configure(speaker: usesSpeaker)] }

    // MARK: App-activated session

    private mutating func answer(_ event: SystemAudioEvent) -> [AudioEffect] {
        switch event {
        case .activated:
            guard activation == .asked else { return [] }
            activation = .active
            return isWanted ? enable() : deactivate()
        case .refused:
            if activation == .asked { activation = isWanted ? .refused : .inactive }
            return []
        case .tryAgain: return isRefused ? activate() : []
        case .deactivated: return []
        }
    }

    private mutating func activate() -> [AudioEffect] {
        switch activation {
        case .inactive, .refused:
            activation = .asked
            return configure() + [.setActive(true)]
        case .asked, .active: return enable()
        }
    }

    private mutating func deactivate() -> [AudioEffect] {
        switch activation {
        case .active:
            activation = .inactive
            return [.setActive(false)]
        case .refused:
            activation = .inactive
            return []
        case .inactive, .asked: return []
        }
    }

    private mutating func enable() -> [AudioEffect] {
        let isEnabled = isActive && isWanted
        guard isEnabled != self.isEnabled else { return [] }
        self.isEnabled = isEnabled
        return [.setEnabled(isEnabled)]
    }
}
