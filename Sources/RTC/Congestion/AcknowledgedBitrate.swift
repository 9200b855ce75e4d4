/// The bitrate at which packets arrive at the receiver, computed from feedback (draft-ietf-rmcat-gcc-02 §5.5: R_hat).
///
/// Bytes are counted over 150 ms of the receiver's clock. The closer a sample is to the current result, the larger is
/// its weight, as in libwebrtc's `BitrateEstimator`. If a report is lost, neither the bytes nor the time that it
/// covers are counted.
struct AcknowledgedBitrate: Sendable {
    private static let window = MediaInterval.milliseconds(150)
    /// The duration of the first sample. It is longer than `window`, because all later results depend on it.
    private static let firstWindow = MediaInterval.milliseconds(500)
    /// The factor that turns the relative distance of a sample from the result into the sample's standard deviation.
    private static let uncertainty = 10.0
    /// The amount by which the variance of the result increases with each sample.
    private static let growth = 5.0

    /// The minimum time over which `latest` is measured.
    private static let latestWindow = MediaInterval.milliseconds(60)
    /// After a pause longer than this, packets that arrive closer together than `burst` were held back by the network.
    private static let pause = MediaInterval.milliseconds(60)
    private static let burst = MediaInterval.milliseconds(5)
    /// If a packet's arrival time is this much earlier than the previous one's, the receiver's clock was set back.
    private static let jump = MediaInterval.seconds(1)

    private var bytes = 0
    private var span = MediaInterval.zero
    private var (latestBytes, latestSpan) = (0, MediaInterval.zero)
    /// The unsmoothed bitrate of the last 60 ms or more; nil at first.
    private(set) var latest: Bitrate?
    /// The length of the pause before the latest packet; nil if there was none. It is counted only if the next packet
    /// shows that nothing was held back.
    private var heldSpan: MediaInterval?
    /// The size of the latest packet, counted together with `heldSpan`.
    private var heldBytes = 0
    private var last: MediaInterval?
    /// The estimate in kilobits per second; nil before the first sample.
    private var estimate: Double?
    private var variance = 50.0

    var bitrate: Bitrate? { estimate.map { Bitrate(bitsPerSecond: Int64($0 * 1000)) } }

    /// Adds a packet that has arrived.
    /// - Parameters:
    ///   - arrival: when the packet arrived, by the receiver's clock.
    ///   - continues: whether no packet was sent between this one and the previous one added.
    @inline(__always)
    mutating func add(bytes count: Int, arrival: MediaInterval, continues: Bool) {
        if let last, last - arrival > Self.jump { self.last = nil }
        defer { last = max(last ?? arrival, arrival) }
        guard let last, continues else { return }
        let passed = max(.zero, arrival - last)
        addLatest(count, passed)
        bytes += count
        span = span + passed
        guard span >= (estimate == nil ? Self.firstWindow : Self.window) else { return }
        take(Double(bytes) * 8e6 / Double(span.nanoseconds))
        (bytes, span) = (0, .zero)
    }

    @inline(__always)
    private mutating func addLatest(_ count: Int, _ passed: MediaInterval) {
        if let held = heldSpan {
            // The previous packet followed a pause. If this one also took long, the link is slow and has held nothing
            // back, so the pause counts.
            if passed > Self.burst { (latestBytes, latestSpan) = (latestBytes + heldBytes, latestSpan + held) }
            heldSpan = nil
        }
        guard passed <= Self.pause else { return (heldSpan, heldBytes) = (passed, count) }
        latestBytes += count
        latestSpan = latestSpan + passed
        guard latestSpan >= Self.latestWindow else { return }
        latest = Bitrate(bytes: latestBytes, in: latestSpan)
        (latestBytes, latestSpan) = (0, .zero)
    }

    private mutating func take(_ sample: Double) {
        guard let estimate else { return self.estimate = sample }
        let distance = Self.uncertainty * abs(estimate - sample) / max(1, estimate)
        let sampleVariance = distance * distance
        let predicted = variance + Self.growth
        self.estimate = max(0, (sampleVariance * estimate + predicted * sample) / (sampleVariance + predicted))
        variance = sampleVariance * predicted / (sampleVariance + predicted)
    }

    /// Replaces the estimate with a more reliable measurement: the bitrate found by a probe, or the rate at which
    /// packets arrive when a queue begins to drain.
    mutating func restart(at bitrate: Bitrate) { estimate = Double(bitrate.bitsPerSecond) / 1000 }
}
