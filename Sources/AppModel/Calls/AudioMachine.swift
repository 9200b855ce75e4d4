/// What to do with the audio session and the audio unit of WebRTC.
public enum AudioEffect: Equatable, Sendable {
    /// Sets category and mode, without activating the session. Without `speaker`, the sound comes from the receiver at the ear,
    /// unless the person chooses another device.
    case configure(speaker: Bool)
    /// Tells WebRTC that the system activated the session.
    case sessionDidActivate
    case sessionDidDeactivate
    /// Activates or deactivates the session, where the system does not do it.
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
    /// What the app sets before any connection: nothing sounds, and the first pictures come with the loudspeaker.
    public static let isEnabledAtLaunch = false
    public static let usesSpeakerAtLaunch = true

    public let usesSystem: Bool
    public private(set) var isActive = false
    public private(set) var isEnabled = Self.isEnabledAtLaunch
    /// Whether the sound comes from the loudspeaker. Without pictures the phone is at the ear.
    public private(set) var usesSpeaker = Self.usesSpeakerAtLaunch
    private var isWanted = false

    public init(usesSystem: Bool) { self.usesSystem = usesSystem }

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
        isActive = isWanted
        let enabling = enable()
        return isWanted ? configure() + [.setActive(true)] + enabling : enabling + [.setActive(false)]
    }

    public mutating func handle(_ event: SystemAudioEvent) -> [AudioEffect] {
        guard usesSystem else { return [] }
        switch event {
        case .activated:
            guard !isActive else { return [] }
            isActive = true
            return [.sessionDidActivate] + configure() + enable()
        case .deactivated:
            guard isActive else { return [] }
            isActive = false
            return enable() + [.sessionDidDeactivate]
        }
    }

    /// Configures again. After a hold the system does not always say that the session is active.
    public func resume() -> [AudioEffect] { configure() }

    func configure() -> [AudioEffect] { [.configure(speaker: usesSpeaker)] }

    private mutating func enable() -> [AudioEffect] {
        let isEnabled = isActive && isWanted
        guard isEnabled != self.isEnabled else { return [] }
        self.isEnabled = isEnabled
        return [.setEnabled(isEnabled)]
    }
}
