/// When each frame of the output is due.
///
/// Frame k shows the time `start + k · 40 ms` of the server's timeline. It is due when that time is `delay` ago, so that what
/// traveled longer is there too. The clock never skips a frame: if the compositor is slow, `EncoderPace` makes it faster.
public struct CompositorClock: Sendable {
    /// The time between two frames.
    public static let interval = Duration.milliseconds(40)
    /// The frames of a fragment, 0.48 s. One fragment is a part of low-latency HLS.
    public static let framesPerFragment = 12
    /// The frames from one keyframe to the next, 1.92 s.
    public static let framesPerGroup = 48

    /// The time of frame 0 on the server's timeline.
    public let start: Duration
    private let begun: Duration
    private let delay: Duration
    /// The next frame to compose.
    public private(set) var next = 0

    /// - Parameters:
    ///   - start: the present time of the server's timeline.
    ///   - now: the same moment on this machine's monotonic clock.
    public init(start: Duration, now: Duration, delay: Duration) {
        (self.start, begun, self.delay) = (start, now, delay)
    }

    /// The time of the next frame on the server's timeline.
    public var time: Duration { start + Self.interval * next }
    /// When the next frame is due, on this machine's clock.
    public var due: Duration { begun + Self.interval * next + delay }

    /// Returns how long the next frame has been due; zero if it is not due yet.
    public func behind(now: Duration) -> Duration { max(.zero, now - due) }

    /// Returns the time of the server's timeline at this moment.
    public func timeline(now: Duration) -> Duration { start + (now - begun) }

    /// Continues with the next frame.
    public mutating func advance() { next += 1 }
}
