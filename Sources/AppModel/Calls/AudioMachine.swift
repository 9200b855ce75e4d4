/// What to do with the audio session and the audio unit of WebRTC.
public enum AudioEffect: Equatable, Sendable {
    /// Sets category and mode, without activating the session. Without `speaker`, the sound comes from the receiver at the ear,
    /// unless the person chooses another device.
    case configure(speaker: Bool)
    /// Tells WebRTC that the system activated the session.
    case sessionDidActivate
    case sessionDidDeactivate
    /// Activates or deactivates the session, where the system does not do it. An activation is answered with
    /// ``SystemAudioEvent/activated`` or ``SystemAudioEvent/refused``.
    case setActive(Bool)
    /// Lets WebRTC play and record.
    case setEnabled(Bool)
}

/// What the audio session is prepared for.
public enum AudioMode: Equatable, Sendable {
    /// The loudspeaker, which people at a distance from their camera need.
    case videoChat
    /// The receiver, for a phone at the ear.
    case voiceChat

    public init(speaker: Bool) { self = speaker ? .videoChat : .voiceChat }
}

/// When sound may flow. During calls the system activates the audio session, and the app never does: WebRTC counts
/// activations, and an own one makes the next call silent. Where the system's call screen is not used, the app does it.
///
/// Invariant: audio is enabled only while the session is active.
public struct AudioMachine: Equatable, Sendable {
    /// Set before any connection: sound is off, and the loudspeaker is chosen.
    public static let isEnabledAtLaunch = false
    public static let usesSpeakerAtLaunch = true

    private enum Activation: Equatable {
        case inactive
        /// The app has asked for it. Next: `active` or `refused`.
        case asked
        /// The system refused. WebRTC has not counted the activation, so none is taken back. Next: `asked` or `inactive`.
        case refused
        case active
    }

    public let usesSystem: Bool
    public private(set) var isEnabled = Self.isEnabledAtLaunch
    /// Whether the sound comes from the loudspeaker. Without pictures the phone is at the ear.
    public private(set) var usesSpeaker = Self.usesSpeakerAtLaunch
    private var activation = Activation.inactive
    private var isWanted = false

    public init(usesSystem: Bool) { self.usesSystem = usesSystem }

    public var isActive: Bool { activation == .active }
    /// Whether sound is wanted, but the system did not activate the session.
    public var isRefused: Bool { activation == .refused }

    /// Chooses between the loudspeaker and the receiver.
    public mutating func use(speaker: Bool) -> [AudioEffect] {
        guard speaker != usesSpeaker else { return [] }
        usesSpeaker = speaker
        return isActive ? configure() : []
    }

    /// A call begins or ends to carry sound.
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

    /// Configures again. After a hold the system does not always say that the session is active.
    public func resume() -> [AudioEffect] { configure() }

    func configure() -> [AudioEffect] { [.configure(speaker: usesSpeaker)] }

    // MARK: A session that the app activates

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
