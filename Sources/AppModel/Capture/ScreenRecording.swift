/// Decides which samples of a screen recording are sent.
public struct ScreenRecording: Sendable {
    /// A sample from the system.
    public enum Sample: Equatable, Sendable {
        case picture(seconds: Double)
        /// The audio of apps, which is not sent. The microphone has a separate track.
        case sound
        case failure
    }

    /// What to do with a sample.
    public enum Answer: Equatable, Sendable {
        /// Sends the frame with this timestamp, in nanoseconds.
        case send(Int64)
        case drop
        /// The recording has ended. Returned once.
        case ended
    }

    /// Whether the user has paused the share.
    public var isPaused = false
    private var isOver = false
    private var pacer = FramePacer(framesPerSecond: FramePacer.screenRate)

    public init() {}

    public mutating func received(_ sample: Sample) -> Answer {
        guard !isOver else { return .drop }
        switch sample {
        case .sound: return .drop
        case .failure:
            isOver = true
            return .ended
        case .picture(let seconds):
            guard !isPaused, let time = FramePacer.nanoseconds(seconds), pacer.accepts(time) else { return .drop }
            return .send(time)
        }
    }
}
