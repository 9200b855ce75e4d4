/// What the camera of this device does, and what the person and the system want of it.
///
/// Cameras start and stop slowly, and wishes change meanwhile. So one operation is carried out at a time, and the next one follows
/// from the newest wishes: a camera that is turned off while it starts is stopped afterwards.
public struct CameraMachine: Equatable, Sendable {
    public enum Operation: Equatable, Sendable {
        case run(CameraRequest, CameraFacing)
        case pause
    }

    /// Which way the camera looks, or will look when it is turned on.
    public private(set) var facing = CameraFacing.usual
    private var request: CameraRequest?
    /// What the person wants. The camera follows as fast as it can.
    private var isOn = false
    private var isInterrupted = false
    private var isUnderway = false
    /// What the camera does; nil if that is not known, after a failure.
    private var state: Operation? = .pause
    /// An operation that failed. It is tried again only after another wish.
    private var failed: Operation?
    /// The last camera that worked.
    private var working: CameraFacing?

    public init() {}

    // MARK: Wishes

    /// Captures this size and rate from now on.
    public mutating func start(_ request: CameraRequest) {
        (self.request, isOn, failed) = (request, true, nil)
    }

    /// Captures another size or rate, now or when the camera is turned on.
    public mutating func change(to request: CameraRequest) {
        guard self.request != nil else { return }
        (self.request, failed) = (request, nil)
    }

    /// Continues with the other camera. A camera that is off stays off.
    public mutating func flip() {
        (facing, failed) = (facing == .front ? .back : .front, nil)
    }

    public mutating func setEnabled(_ enabled: Bool) {
        guard request != nil else { return }
        (isOn, failed) = (enabled, nil)
    }

    /// The system takes the camera away, or gives it back.
    public mutating func interrupted(_ isInterrupted: Bool) {
        (self.isInterrupted, failed) = (isInterrupted, nil)
    }

    /// Ends for good.
    public mutating func stop() {
        (request, isOn, failed) = (nil, false, nil)
    }

    // MARK: Operations

    private var wanted: Operation? {
        if let request, isOn { return .run(request, facing) }
        // A session that is interrupted has no picture, and would not tell the end of the interruption if it were stopped. At
        // the end it is stopped in any case, because the capturer must not be released while it runs.
        return isInterrupted && request != nil ? nil : .pause
    }

    /// The operation to begin now; nil if one is under way, or if there is nothing to do.
    public mutating func next() -> Operation? {
        guard !isUnderway, let wanted, wanted != state, wanted != failed else { return nil }
        isUnderway = true
        return wanted
    }

    /// The camera runs.
    ///
    /// - Parameter used: the camera that is used: a device may have only one.
    public mutating func ran(_ request: CameraRequest, _ asked: CameraFacing, used: CameraFacing) {
        isUnderway = false
        // Unless the person wants the other one again by now.
        if facing == asked { facing = used }
        (state, working) = (.run(request, used), used)
    }

    public mutating func paused() { (isUnderway, state) = (false, .pause) }

    /// The camera could not be started. The one that worked goes on.
    public mutating func failedToRun(_ request: CameraRequest, _ asked: CameraFacing) {
        (isUnderway, state, failed) = (false, nil, .run(request, asked))
        if let working, working != asked, facing == asked { facing = working }
    }
}

extension CameraFacing {
    /// Chooses the camera of a device that looks this way, or else the first one.
    ///
    /// - Returns: its index; nil if there is none.
    func choose(from cameras: [CameraFacing?]) -> Int? {
        cameras.firstIndex(of: self) ?? cameras.indices.first
    }
}
