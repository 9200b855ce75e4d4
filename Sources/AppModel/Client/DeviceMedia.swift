import Confab

/// The direction a camera faces.
public enum CameraFacing: Equatable, Sendable { case front, back }

/// Media whose camera can be changed while it is published. The media of the app's engine conforms to this protocol.
public protocol SwitchableCamera: LocalMedia {
    /// Switches between the front and the back camera. Returns the one in use afterwards.
    func switchCamera() async throws(ConfabError) -> CameraFacing
    /// Changes the size or the frame rate.
    func change(to request: CameraRequest) async throws(ConfabError)
}

/// A change to this device's media that was caused by the system.
public enum CaptureChange: Equatable, Sendable {
    /// True when the system took the camera away from the app, for example because the app is off screen, and false
    /// when it gave the camera back. If the user turns the camera off during the interruption, the capture session
    /// keeps running, so that the end of the interruption is still reported.
    case interrupted(Bool)
    /// The capture has ended, for example because the system stopped recording the screen.
    case ended
}

/// Media that the system can interrupt or end. The media of the app's engine conforms to this protocol.
public protocol WatchedMedia: LocalMedia {
    /// Changes caused by the system. Only one task may read them.
    var changes: AsyncStream<CaptureChange> { get }
}

/// Video of a shared screen with audio of the microphone: the media sent in a call while the screen is shared.
///
/// Engines do not support it. ``ConfiguredEngine`` splits it into its parts.
final class SharedScreen: LocalMedia {
    let sound: any LocalMedia
    let picture: any LocalMedia

    init(sound: any LocalMedia, picture: any LocalMedia) { (self.sound, self.picture) = (sound, picture) }

    var hasAudio: Bool { sound.hasAudio }
    var video: (any VideoSource)? { picture.video }
    var size: VideoSize? { picture.size }
    var videoKind: MediaStream.VideoKind { .screen }
    /// The simulcast layers of the screen. By default there are none, so that text stays sharp.
    var layers: [Layer]? { picture.layers ?? [] }

    func setEnabled(audio: Bool?, video: Bool?) async {
        if let audio { await sound.setEnabled(audio: audio, video: nil) }
        if let video { await picture.setEnabled(audio: nil, video: video) }
    }

    /// Stops the screen. The microphone stays on.
    func stop() async { await picture.stop() }
}
