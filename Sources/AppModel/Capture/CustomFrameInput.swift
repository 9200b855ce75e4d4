/// Decides what to do with the frames that an application supplies.
public struct CustomFrameInput: Sendable {
    /// What to do with a frame.
    public enum Answer: Equatable, Sendable {
        /// Sends the frame with this timestamp, in nanoseconds.
        case send(Int64)
        /// Drops the frame because the user has paused the video. The application may continue.
        case drop
        /// Rejects the frame because the video has ended. The application should stop.
        case refuse
    }

    public var isPaused = false
    private var isOver = false

    public init() {}

    public mutating func stop() { isOver = true }

    /// Decides what to do with a frame that the application supplied.
    ///
    /// - Parameter uptime: the time since the device started, in seconds. It replaces the capturer's timestamps, which
    /// may be in any unit: WebRTC needs a clock that never goes backward.
    public func received(uptime: Double) -> Answer {
        guard !isOver, let time = FramePacer.nanoseconds(uptime) else { return .refuse }
        return isPaused ? .drop : .send(time)
    }
}
