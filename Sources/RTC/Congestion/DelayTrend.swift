/// Detects a growing queue from the trend of the delay (draft-ietf-rmcat-gcc-02 §5.4, with the trend line of libwebrtc's
/// `TrendlineEstimator` in place of the draft's Kalman filter).
///
/// A line is fitted through the smoothed delay of the recent groups of packets. If its slope exceeds a threshold for a while, a
/// queue is growing. The threshold adapts to the usual slope: otherwise a TCP flow that fills the same queue would take all of
/// the link.
struct DelayTrend: Sendable {
    enum Usage: UInt8, Sendable {
        case normal
        /// A queue grows.
        case over
        /// A queue shrinks.
        case under
    }

    /// The number of groups through which the line is fitted, about half a second of video.
    static let window = 20
    private static let smoothing = 0.9
    private static let gain = 4.0
    /// The slope is multiplied by the number of groups so far, up to this.
    private static let maxGroups = 60
    /// How long the slope must exceed the threshold, in milliseconds.
    private static let overuseTime = 10.0
    private static let thresholds = 6.0...600.0
    /// How fast the threshold rises and falls, per millisecond (draft-ietf-rmcat-gcc-02 §5.4: K_u and K_d).
    private static let rise = 0.0087
    private static let fall = 0.039
    /// A slope that exceeds the threshold by more than this is a sudden change of the path, to which the threshold does not
    /// adapt.
    private static let spike = 15.0

    private(set) var usage = Usage.normal
    private(set) var threshold = 12.5
    /// The arrival and the smoothed delay of recent groups, in milliseconds.
    private var points = ContiguousArray<SIMD2<Double>>(repeating: .zero, count: window)
    /// Where the next point goes.
    private var place = 0
    private var line = Line()
    private var count = 0
    private var first: MediaInterval?
    private var sum = 0.0
    private var smoothed = 0.0
    private var previousTrend = 0.0
    private var timeOverUsing: Double?
    private var overuses = 0
    private var updatedAt: MediaTime?

    /// - Parameter hasQueue: whether the smallest delays have grown, too. If not, only jitter has.
    mutating func add(_ difference: PacketGroups.Difference, hasQueue: Bool, now: MediaTime) {
        let first = first ?? difference.arrival
        self.first = first
        let delay = Double((difference.arrived - difference.sent).nanoseconds) / 1e6
        sum += delay
        smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * sum
        let time = Double((difference.arrival - first).nanoseconds) / 1e6
        add(SIMD2(time, smoothed))
        let trend = count >= Self.window ? line.slope(of: Self.window) ?? previousTrend : previousTrend
        detect(trend, after: Double(difference.sent.nanoseconds) / 1e6, hasQueue: hasQueue, now: now)
    }

    /// Adds a point, in the place of the oldest one.
    @inline(__always)
    private mutating func add(_ point: SIMD2<Double>) {
        if place == 0 {
            // Once in a window, all is added again near the new point, before the rounding errors of small differences between
            // large numbers become visible.
            line = Line(origin: point)
            for point in points[1..<max(1, min(count, Self.window))] { line.add(point) }
        } else {
            if count >= Self.window { line.remove(points[place]) }
            line.add(point)
        }
        points[place] = point
        count &+= 1
        place = place == Self.window - 1 ? 0 : place + 1
    }

    private mutating func detect(_ trend: Double, after milliseconds: Double, hasQueue: Bool, now: MediaTime) {
        let modified = Double(min(count, Self.maxGroups)) * trend * Self.gain
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

extension DelayTrend {
    /// Fits a line through points by least squares. It keeps sums, so that a point takes the same few steps for any number of
    /// points: each group of packets of each receiver adds one.
    private struct Line: Sendable {
        /// A denominator that is smaller means that all groups arrived at once. Arrivals are reported in steps of 0.25 ms, and
        /// with one step between two of 20 groups the denominator is 1.2.
        private static let smallest = 1.0

        /// A point near all others. The sums are of the distances from it.
        private var origin = SIMD2<Double>.zero
        private var sum = SIMD2<Double>.zero
        /// The sums of the squares of x, and of the products of x and y.
        private var products = SIMD2<Double>.zero

        init() {}

        /// A line with this point only.
        init(origin: SIMD2<Double>) { self.origin = origin }

        mutating func add(_ point: SIMD2<Double>) {
            let offset = point - origin
            sum += offset
            products += offset * offset.x
        }

        mutating func remove(_ point: SIMD2<Double>) {
            let offset = point - origin
            sum -= offset
            products -= offset * offset.x
        }

        /// - Parameter count: the number of points.
        /// - Returns: nil if all groups arrived at once.
        func slope(of count: Int) -> Double? {
            let scaled = products * Double(count) - sum * sum.x
            return scaled.x >= Self.smallest ? scaled.y / scaled.x : nil
        }
    }
}
