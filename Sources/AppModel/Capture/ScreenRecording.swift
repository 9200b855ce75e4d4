/// Which parts of a recording of the screen are sent.
public struct ScreenRecording: Sendable {
    /// What the system hands over.
    public enum Sample: Equatable, Sendable {
        case picture(seconds: Double)
        /// The sound of the app. The microphone is a track of its own.
        case sound
        case failure
    }

    public enum Answer: Equatable, Sendable {
        /// With this time, in nanoseconds.
        case send(Int64)
        case drop
        /// The recording is over. Told once.
        case ended
    }

    /// The person has paused the share.
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
