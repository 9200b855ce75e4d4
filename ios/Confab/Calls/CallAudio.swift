import AVFoundation
import AppModel
import WebRTC

/// The audio session of WebRTC. `AudioMachine` decides when sound flows. Nothing starts it by itself, because CallKit requires
/// that the system activates the session during calls.
@MainActor final class CallAudio: AudioControl {
    private let session = RTCAudioSession.sharedInstance()

    init() {
        session.useManualAudio = true
        session.isAudioEnabled = false
        // Set before any connection.
        use(speaker: true)
    }

    /// The loudspeaker or the receiver, unless a headset is connected.
    private func use(speaker: Bool) {
        let configuration = RTCAudioSessionConfiguration.webRTC()
        configuration.mode = (speaker ? AVAudioSession.Mode.videoChat : .voiceChat).rawValue
        RTCAudioSessionConfiguration.setWebRTC(configuration)
    }

    func perform(_ effect: AudioEffect) {
        switch effect {
        case .configure(let speaker):
            use(speaker: speaker)
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
