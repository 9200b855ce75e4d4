import AVFoundation
import AppModel
import WebRTC

/// The audio session of WebRTC. `AudioMachine` decides when sound flows. Nothing starts it by itself, because CallKit requires
/// that the system activates the session during calls.
@MainActor final class CallAudio: AudioControl {
    private let session = RTCAudioSession.sharedInstance()

    init() {
        session.useManualAudio = true
        // Set before any connection.
        session.isAudioEnabled = AudioMachine.isEnabledAtLaunch
        use(AudioMode(speaker: AudioMachine.usesSpeakerAtLaunch))
    }

    /// The loudspeaker or the receiver, unless a headset is connected.
    private func use(_ mode: AudioMode) {
        let configuration = RTCAudioSessionConfiguration.webRTC()
        configuration.mode = mode.native.rawValue
        RTCAudioSessionConfiguration.setWebRTC(configuration)
    }

    func perform(_ effect: AudioEffect) {
        switch effect {
        case .configure(let speaker):
            use(AudioMode(speaker: speaker))
            locked { try session.setConfiguration(.webRTC()) }
        case .sessionDidActivate: session.audioSessionDidActivate(AVAudioSession.sharedInstance())
        case .sessionDidDeactivate: session.audioSessionDidDeactivate(AVAudioSession.sharedInstance())
        case .setActive(let on): locked { try session.setActive(on) }
        case .setEnabled(let on): session.isAudioEnabled = on
        }
    }

    /// The session refuses changes without its lock. A change that fails leaves the sound as it is, and the next one tries again.
    private func locked(_ change: () throws -> Void) {
        session.lockForConfiguration()
        try? change()
        session.unlockForConfiguration()
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
