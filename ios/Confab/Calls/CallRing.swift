import AppModel
import AudioToolbox
import Foundation

/// Plays the ringtones of incoming calls where CallKit is not allowed. `Ringer` decides when.
@MainActor final class CallRing: RingSpeaker {
    private var sounds: [RingTone: SystemSoundID] = [:]

    func play(_ tone: RingTone) {
        if let sound = sounds[tone] ?? load(tone) { AudioServicesPlayAlertSound(sound) }
    }

    /// Stops the ringtone. Disposing of a sound should stop it; see the open questions in the README.
    func stop() {
        for sound in sounds.values { _ = AudioServicesDisposeSystemSoundID(sound) }
        sounds = [:]
    }

    /// Writes the tone to a file, because the system plays sounds only from files. Returns the sound, or nil if the
    /// system rejects it.
    private func load(_ tone: RingTone) -> SystemSoundID? {
        let file = URL.temporaryDirectory.appending(path: "\(tone).wav")
        guard (try? tone.wav.write(to: file)) != nil else { return nil }
        var sound: SystemSoundID = 0
        guard AudioServicesCreateSystemSoundID(file as CFURL, &sound) == kAudioServicesNoError else { return nil }
        sounds[tone] = sound
        return sound
    }
}
