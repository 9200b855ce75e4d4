import AVFoundation
import AppModel
import WebRTC

/// The audio session of WebRTC. `AudioMachine` decides when sound flows. WebRTC must not start it on its own: during calls, CallKit
/// activates the session.
@MainActor final class CallAudio: AudioControl {
    private let session = RTCAudioSession.sharedInstance()

    init() {
        session.useManualAudio = true
        session.isAudioEnabled = AudioMachine.isEnabledAtLaunch
        // Otherwise a call during a conversation would not ring, where the app itself rings.
        try? AVAudioSession.sharedInstance().setAllowHapticsAndSystemSoundsDuringRecording(true)
        use(AudioMode(speaker: AudioMachine.usesSpeakerAtLaunch))
    }

    /// The loudspeaker or the receiver, unless a headset is connected.
    private func use(_ mode: AudioMode) {
        let configuration = RTCAudioSessionConfiguration.webRTC()
        configuration.mode = mode.native.rawValue
        RTCAudioSessionConfiguration.setWebRTC(configuration)
    }

    func perform(_ effect: AudioEffect) -> Bool {
        switch effect {
        case .configure(let speaker):
            use(AudioMode(speaker: speaker))
            return locked { try session.setConfiguration(.webRTC()) }
        case .sessionDidActivate: session.audioSessionDidActivate(AVAudioSession.sharedInstance())
        case .sessionDidDeactivate: session.audioSessionDidDeactivate(AVAudioSession.sharedInstance())
        case .setActive(let on): return locked { try session.setActive(on) }
        case .setEnabled(let on): session.isAudioEnabled = on
        }
        return true
    }

    /// The session refuses changes without its lock.
    ///
    /// - Returns: whether the system made the change.
    private func locked(_ change: () throws -> Void) -> Bool {
        session.lockForConfiguration()
        defer { session.unlockForConfiguration() }
        return (try? change()) != nil
    }
}

extension AudioMode {
    fileprivate var native: AVAudioSession.Mode {
        switch self {
        case .videoChat: .videoChat
        case .voiceChat: .voiceChat
        }
    }
}
