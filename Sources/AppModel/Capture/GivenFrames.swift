/// What becomes of the frames that an application hands over.
public struct GivenFrames: Sendable {
    public enum Answer: Equatable, Sendable {
        /// With this time, in nanoseconds.
        case send(Int64)
        /// The person has paused the video. The application may go on.
        case drop
        /// The video is over, and the application should stop.
        case refuse
    }

    public var isPaused = false
    private var isOver = false

    public init() {}

    public mutating func stop() { isOver = true }

    /// - Parameter uptime: the time since the device was started, in seconds. A capturer's timestamps may be in any unit. WebRTC
    ///   needs a clock that never goes back.
    public func received(uptime: Double) -> Answer {
        guard !isOver, let time = FramePacer.nanoseconds(uptime) else { return .refuse }
        return isPaused ? .drop : .send(time)
    }
}
