/// The state of this device's camera, apart from whether the user has turned it on.
public struct CameraState: Equatable, Sendable {
    /// Whether the system has taken the camera away, for example for another app.
    public internal(set) var isInterrupted = false
    /// Whether the system has stopped the camera because the app is off screen.
    var isStopped = false
    public internal(set) var facing = CameraFacing.usual

    /// Whether to mirror the self-view. People expect a mirror image, but only from the front camera.
    public var isMirrored: Bool { facing == .front }
    var works: Bool { !isInterrupted && !isStopped }

    /// Returns the text for the self-view.
    func text(isOff: Bool) -> String { isOff ? "camera off" : isInterrupted ? "camera paused" : "your video" }
}
