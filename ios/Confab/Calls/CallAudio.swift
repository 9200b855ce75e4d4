import AVFoundation
import AppModel
import Dispatch
import WebRTC

/// The audio session of WebRTC. `AudioMachine` decides when audio is enabled. `AudioLane` decides which effects must
/// not run on the main thread. WebRTC must not start the session itself: during calls, CallKit activates it.
@MainActor final class CallAudio: AudioControl {
    private var lane = AudioLane()
    private let queue = DispatchQueue(label: "audio session")

    init() {
        let session = RTCAudioSession.sharedInstance()
        session.useManualAudio = true
        session.isAudioEnabled = AudioMachine.isEnabledAtLaunch
        // Without this permission, the app's own ringtone would stay silent for a call that arrives during a
        // conversation.
        try? AVAudioSession.sharedInstance().setAllowHapticsAndSystemSoundsDuringRecording(true)
        Self.use(AudioMode(speaker: AudioMachine.usesSpeakerAtLaunch))
    }

    func perform(_ effect: AudioEffect, _ done: @escaping @MainActor (Bool) -> Void) {
        guard lane.takes(effect) else { return done(Self.carryOut(effect)) }
        queue.async { @Sendable [weak self] in
            let isDone = Self.carryOut(effect)
            Task { @MainActor in
                self?.lane.finished()
                done(isDone)
            }
        }
    }

    /// Carries out an effect on the audio session.
    ///
    /// - Returns: whether the system made the change.
    private nonisolated static func carryOut(_ effect: AudioEffect) -> Bool {
        let session = RTCAudioSession.sharedInstance()
        switch effect {
        case .configure(let speaker):
            use(AudioMode(speaker: speaker))
            return locked(session) { try session.setConfiguration(.webRTC()) }
        case .sessionDidActivate: session.audioSessionDidActivate(AVAudioSession.sharedInstance())
        case .sessionDidDeactivate: session.audioSessionDidDeactivate(AVAudioSession.sharedInstance())
        case .setActive(let on): return locked(session) { try session.setActive(on) }
        case .setEnabled(let on): session.isAudioEnabled = on
        }
        return true
    }

    /// Selects the loudspeaker or the earpiece for the next configuration of the session. A connected headset takes
    /// precedence over both.
    private nonisolated static func use(_ mode: AudioMode) {
        let configuration = RTCAudioSessionConfiguration.webRTC()
        configuration.mode = mode.native.rawValue
        RTCAudioSessionConfiguration.setWebRTC(configuration)
    }

    /// Changes the session while holding its lock, without which the session refuses changes.
    ///
    /// - Returns: whether the system made the change.
    private nonisolated static func locked(_ session: RTCAudioSession, _ change: () throws -> Void) -> Bool {
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
