/// What the device does with the own camera, whatever the person wants.
public struct CameraState: Equatable, Sendable {
    /// Whether the system has taken it away, for example for another app.
    public internal(set) var isInterrupted = false
    /// Whether the system has stopped it because the app is not on the screen.
    var isStopped = false
    public internal(set) var facing = CameraFacing.usual

    /// People expect a mirror, but only of the camera that they look into.
    public var isMirrored: Bool { facing == .front }
    var works: Bool { !isInterrupted && !isStopped }

    /// What to read in place of the own picture.
    func text(isOff: Bool) -> String { isOff ? "camera off" : isInterrupted ? "camera paused" : "your video" }
}
