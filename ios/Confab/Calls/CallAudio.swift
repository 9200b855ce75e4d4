import AVFoundation
import AppModel
import WebRTC

/// Controls WebRTC's audio session. `AudioMachine` decides when audio is enabled. WebRTC must not activate the session
/// on its own, because during calls CallKit does.
@MainActor final class CallAudio: AudioControl {
    private let session = RTCAudioSession.sharedInstance()

    init() {
        session.useManualAudio = true
        session.isAudioEnabled = AudioMachine.isEnabledAtLaunch
        // Otherwise, the app's own ringtone would stay silent for a call that arrives during a conversation.
        try? AVAudioSession.sharedInstance().setAllowHapticsAndSystemSoundsDuringRecording(true)
        use(AudioMode(speaker: AudioMachine.usesSpeakerAtLaunch))
    }

    /// Uses the loudspeaker or the earpiece, unless a headset is connected.
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

    /// Performs a change with the session's lock, without which the session rejects changes.
    ///
    /// - Returns: false if the system refused the change.
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
