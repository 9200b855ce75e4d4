/// Detects a growing queue from the trend of the delay (draft-ietf-rmcat-gcc-02 §5.4, with the trend line of
/// libwebrtc's `TrendlineEstimator` in place of the draft's Kalman filter).
///
/// A line is fitted through the smoothed delay of the recent groups of packets. If its slope exceeds a threshold for a
/// while, a queue is growing. The threshold adapts to the usual slope. Otherwise a TCP flow that fills the same queue
/// would take the whole link.
struct DelayTrend: Sendable {
    /// Whether a queue grows or shrinks, according to the trend of the delay.
    enum Usage: UInt8, Sendable {
        case normal
        /// A queue grows.
        case over
        /// A queue shrinks.
        case under
    }

    private static let smoothing = 0.9
    private static let gain = 4.0
    /// The slope is multiplied by the number of groups so far, up to this number.
    private static let maxGroups = 60
    /// How long the slope must exceed the threshold before the queue counts as growing, in milliseconds.
    private static let overuseTime = 10.0
    private static let thresholds = 6.0...600.0
    /// The rates at which the threshold rises and falls, per millisecond (draft-ietf-rmcat-gcc-02 §5.4: K_u and K_d).
    // Declare each constant separately. Several in a tuple would be computed at run time, and each use would check
    // whether that has happened.
    private static let rise = 0.0087
    private static let fall = 0.039
    /// A slope that exceeds the threshold by more than this is a sudden change in the path. The threshold does not
    /// adapt to it.
    private static let spike = 15.0

    private(set) var usage = Usage.normal
    private(set) var threshold = 12.5
    /// The arrivals and smoothed delays of recent groups, in milliseconds: about half a second of video.
    private var line = SlidingLinearFit()
    /// The number of groups so far, up to `maxGroups`.
    private var count = 0
    private var first: MediaInterval?
    private var sum = 0.0
    private var smoothed = 0.0
    private var previousTrend = 0.0
    private var timeOverUsing: Double?
    private var overuses = 0
    private var updatedAt: MediaTime?

    /// Adds the difference between two packet groups, and updates the trend.
    ///
    /// - Parameter hasQueue: whether the smallest delays have grown as well. If not, there was only jitter.
    mutating func add(_ difference: PacketGroups.Difference, hasQueue: Bool, now: MediaTime) {
        let first = first ?? difference.arrival
        self.first = first
        let delay = Double((difference.arrived - difference.sent).nanoseconds) / 1e6
        sum += delay
        smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * sum
        let time = Double((difference.arrival - first).nanoseconds) / 1e6
        line.add(SIMD2(time, smoothed))
        count = min(count + 1, Self.maxGroups)
        let passed = Double(difference.sent.nanoseconds) / 1e6
        detect(line.slope ?? previousTrend, after: passed, hasQueue: hasQueue, now: now)
    }

    private mutating func detect(_ trend: Double, after milliseconds: Double, hasQueue: Bool, now: MediaTime) {
        let modified = Double(count) * trend * Self.gain
        if modified > threshold, hasQueue {
            timeOverUsing = timeOverUsing.map { $0 + milliseconds } ?? milliseconds / 2
            overuses += 1
            if timeOverUsing ?? 0 > Self.overuseTime, overuses > 1, trend >= previousTrend {
                (timeOverUsing, overuses, usage) = (0, 0, .over)
            }
        } else {
            (timeOverUsing, overuses) = (nil, 0)
            usage = modified < -threshold ? .under : .normal
        }
        previousTrend = trend
        adapt(to: abs(modified), isJitter: !hasQueue, now: now)
    }

    private mutating func adapt(to slope: Double, isJitter: Bool, now: MediaTime) {
        defer { updatedAt = now }
        guard let updatedAt, isJitter || slope <= threshold + Self.spike else { return }
        let passed = min(100, Double((now - updatedAt).nanoseconds) / 1e6)
        let speed = slope < threshold ? Self.fall : Self.rise
        threshold += speed * (slope - threshold) * passed
        threshold = min(max(threshold, Self.thresholds.lowerBound), Self.thresholds.upperBound)
    }
}
