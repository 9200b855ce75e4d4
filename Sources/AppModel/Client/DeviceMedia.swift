import Confab

/// Which way a camera looks.
public enum CameraFacing: Equatable, Sendable { case front, back }

/// Media with a camera that can be changed while it is published. The engine of an app conforms to it.
public protocol SwitchableCamera: LocalMedia {
    /// Uses the next camera: front, back. Returns the one that is used then.
    func switchCamera() async throws(ConfabError) -> CameraFacing
    /// Captures another size or rate from now on.
    func change(to request: CameraRequest) async throws(ConfabError)
}

/// What the system does to media of this device, although nobody here asked for it.
public enum CaptureChange: Equatable, Sendable {
    /// The system took the camera away, for example because the app is not on the screen, or gave it back. If the person turns the
    /// camera off meanwhile, the session keeps running, so that the end of the interruption is still reported.
    case interrupted(Bool)
    /// The capture is over, for example because the system stopped recording the screen.
    case ended
}

/// Media that the system can interrupt or end. The engine of an app conforms to it.
public protocol WatchedMedia: LocalMedia {
    /// What the system does. There is one reader.
    var changes: AsyncStream<CaptureChange> { get }
}

/// Pictures of a shared screen with the sound of the microphone: what the other person of a call gets while a screen is shared.
///
/// The engine does not know it. ``ChoosingEngine`` takes it apart.
final class SharedScreen: LocalMedia {
    let sound: any LocalMedia
    let picture: any LocalMedia

    init(sound: any LocalMedia, picture: any LocalMedia) { (self.sound, self.picture) = (sound, picture) }

    var hasAudio: Bool { sound.hasAudio }
    var video: (any VideoSource)? { picture.video }
    var size: VideoSize? { picture.size }
    var videoKind: MediaStream.VideoKind { .screen }
    /// A screen is sent in one size. Text has to stay sharp.
    var layers: [Layer]? { picture.layers ?? [] }

    func setEnabled(audio: Bool?, video: Bool?) async {
        if let audio { await sound.setEnabled(audio: audio, video: nil) }
        if let video { await picture.setEnabled(audio: nil, video: video) }
    }

    /// The microphone goes on.
    func stop() async { await picture.stop() }
}
