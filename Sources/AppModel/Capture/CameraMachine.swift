/// Decides what the camera of this device does, from the requests of the user and the interruptions of the system.
///
/// A camera takes a long time to start or stop, and new requests may arrive during that time. So operations run one at
/// a time, and each is chosen from the newest requests: a camera that is turned off while it starts is stopped
/// afterwards.
public struct CameraMachine: Equatable, Sendable {
    /// An operation on the camera. Also describes the state of the camera after the operation.
    public enum Operation: Equatable, Sendable {
        case run(CameraRequest, CameraFacing)
        case pause
    }

    /// The direction the camera faces, or will face when it is turned on.
    public private(set) var facing = CameraFacing.usual
    private var request: CameraRequest?
    /// Whether the user wants the camera on. The camera is turned on or off as soon as it can be.
    private var isOn = false
    private var isInterrupted = false
    private var isUnderway = false
    /// The state of the camera; nil if it is unknown after a failure.
    private var state: Operation? = .pause
    /// The operation that failed, which is not retried. Nil once another request, or a change in the interruption, has
    /// arrived.
    private var failed: Operation?
    /// The direction of the last camera that could be started; nil before the first start.
    private var working: CameraFacing?

    public init() {}

    // MARK: Requests

    /// Starts capturing with this size and rate.
    public mutating func start(_ request: CameraRequest) {
        (self.request, isOn, failed) = (request, true, nil)
    }

    /// Changes the size or rate, now or when the camera is turned on. Does nothing before ``start(_:)``.
    public mutating func change(to request: CameraRequest) {
        guard self.request != nil else { return }
        (self.request, failed) = (request, nil)
    }

    /// Switches to the other camera. A camera that is off stays off.
    public mutating func flip() {
        (facing, failed) = (facing == .front ? .back : .front, nil)
    }

    public mutating func setEnabled(_ enabled: Bool) {
        guard request != nil else { return }
        (isOn, failed) = (enabled, nil)
    }

    /// Handles an interruption by the system, or its end.
    public mutating func interrupted(_ isInterrupted: Bool) {
        (self.isInterrupted, failed) = (isInterrupted, nil)
    }

    /// Stops the camera for good.
    public mutating func stop() {
        (request, isOn, failed) = (nil, false, nil)
    }

    // MARK: Operations

    private var wanted: Operation? {
        if let request, isOn { return .run(request, facing) }
        // Do not pause an interrupted camera: it produces no video anyway, and a paused one would not report the end
        // of the interruption. If the camera is no longer needed, pause it in any case, because the capturer must not
        // be released while it runs.
        return isInterrupted && request != nil ? nil : .pause
    }

    /// Returns the operation to start now; nil if one is running or nothing is to be done.
    public mutating func next() -> Operation? {
        guard !isUnderway, let wanted, wanted != state, wanted != failed else { return nil }
        isUnderway = true
        return wanted
    }

    /// Records that the camera started.
    ///
    /// - Parameter used: the camera in use. It can differ from `asked`, because a device may have only one camera.
    public mutating func ran(_ request: CameraRequest, _ asked: CameraFacing, used: CameraFacing) {
        isUnderway = false
        // Keep the direction if the user has switched again in the meantime.
        if facing == asked { facing = used }
        (state, working) = (.run(request, used), used)
    }

    public mutating func paused() { (isUnderway, state) = (false, .pause) }

    /// Records that the camera could not be started. Selects the camera that worked before, unless the user has
    /// switched again.
    public mutating func failedToRun(_ request: CameraRequest, _ asked: CameraFacing) {
        (isUnderway, state, failed) = (false, nil, .run(request, asked))
        if let working, working != asked, facing == asked { facing = working }
    }
}

extension CameraFacing {
    /// Returns the index of the camera that faces this direction, or else of the first one.
    ///
    /// - Returns: nil if there is no camera.
    func choose(from cameras: [CameraFacing?]) -> Int? {
        cameras.firstIndex(of: self) ?? cameras.indices.first
    }
}
