import RTC

/// Measures the frame rate and the bitrate of an encoding, in total and up to each of VP8's temporal layers (`TID` in
/// RFC 7741 §4.2).
struct FrameRates: Equatable, Sendable {
    /// How long frames are counted before the rates are updated.
    static let interval = MediaInterval.seconds(1)
    /// The number of frames counted in each temporal layer since `since`. Without temporal layers, all frames count in
    /// the first.
    private var counts = SIMD4<UInt32>()
    private var since: MediaTime?
    private var hasLayers = false
    /// The frame rate up to and including each temporal layer, in frames per ten seconds; nil before the first
    /// measurement.
    private(set) var framesPer10s: SIMD4<UInt32>?
    /// The bytes received in each temporal layer during the current measurement, including the overhead of each
    /// packet.
    private var bytes = SIMD4<UInt32>()
    /// The bytes in a second up to and including each temporal layer, smoothed; nil before the first measurement.
    private(set) var bytesPerSecond: SIMD4<UInt32>?
    /// Whether the encoding uses temporal layers.
    var hasTemporalLayers: Bool { hasLayers }

    init() {}

    /// Creates rates that another node has measured.
    init(hasTemporalLayers: Bool, framesPer10s: SIMD4<UInt32>?, bytesPerSecond: SIMD4<UInt32>?) {
        (hasLayers, self.framesPer10s, self.bytesPerSecond) = (hasTemporalLayers, framesPer10s, bytesPerSecond)
    }

    /// The rates without the counts of the measurement that is in progress.
    var measured: FrameRates {
        var copy = FrameRates()
        (copy.hasLayers, copy.framesPer10s, copy.bytesPerSecond) = (hasLayers, framesPer10s, bytesPerSecond)
        return copy
    }

    /// Counts a frame. Called when the last packet of the frame arrives.
    mutating func count(_ temporalLayer: UInt8) {
        hasLayers = temporalLayer != FeedPacket.noLayer
        counts[Int(temporalLayer & 3) * (hasLayers ? 1 : 0)] &+= 1
    }

    /// Counts the bytes of a packet. Called for each packet.
    @inline(__always)
    mutating func count(bytes count: Int, _ temporalLayer: UInt8) {
        let layer = temporalLayer == FeedPacket.noLayer ? 0 : Int(temporalLayer & 3)
        bytes[layer] &+= UInt32(truncatingIfNeeded: count)
    }

    /// Updates the bitrates from the bytes counted in the elapsed milliseconds. Keeps them if no bytes were counted.
    /// The bitrates are smoothed, so that one keyframe does not look like a high bitrate.
    private mutating func measureBytes(_ elapsed: Int64) {
        var sums = SIMD4<UInt32>()
        for layer in 0..<4 {
            let count = UInt64(bytes[layer]) * 1000 / UInt64(max(1, elapsed))
            sums[layer] = UInt32(clamping: count) &+ (layer > 0 ? sums[layer - 1] : 0)
        }
        bytes = .zero
        guard sums[3] > 0 else { return }
        guard let former = bytesPerSecond else { return bytesPerSecond = sums }
        for layer in 0..<4 { sums[layer] = (sums[layer] / 2) &+ (former[layer] / 2) }
        bytesPerSecond = sums
    }

    /// Updates the rates once per `interval`.
    /// - Returns: true if the frame rates changed.
    mutating func measure(now: MediaTime) -> Bool {
        guard let since else {
            (self.since, counts, bytes) = (now, .zero, .zero)
            return false
        }
        let elapsed = (now - since).milliseconds
        guard elapsed >= Self.interval.milliseconds else { return false }
        var sums = counts &* 10_000 / UInt32(clamping: elapsed)
        for layer in 1..<4 { sums[layer] &+= sums[layer - 1] }
        (self.since, counts) = (now, .zero)
        measureBytes(elapsed)
        // Keep the rates if no frame arrived, so that turning a video off does not look like a change.
        guard sums[3] > 0, sums != framesPer10s else { return false }
        framesPer10s = sums
        return true
    }

    /// Returns whether the lowest temporal layer is within this frame rate; true if the rates have not been measured
    /// yet.
    /// - Parameter isCurrent: whether the subscriber receives this encoding now, which allows a larger tolerance.
    func canMatch(_ rate: Int, isCurrent: Bool) -> Bool {
        framesPer10s.map { Int($0[0]) <= Self.limit(rate, isCurrent) } ?? true
    }

    /// Returns the highest temporal layer within this frame rate; 0 if no layer is, or `FeedPacket.noLayer` if all
    /// layers may be sent.
    ///
    /// - Parameters:
    ///   - rate: the maximum frame rate in frames per second; nil for no limit.
    ///   - current: the result of the previous call.
    func temporalLayer(for rate: Int?, current: UInt8) -> UInt8 {
        guard let rate, let framesPer10s, hasLayers,
            Int(framesPer10s[3]) > Self.limit(rate, current == FeedPacket.noLayer)
        else {
            return FeedPacket.noLayer
        }
        for layer in stride(from: 2, through: 1, by: -1)
        where Int(framesPer10s[layer]) <= Self.limit(rate, current == UInt8(layer)) { return UInt8(layer) }
        return 0
    }

    /// Converts a frame rate to frames per ten seconds and adds a tolerance: a tenth, because a count over one second
    /// is inexact, or a quarter for the current choice, so that the choice does not flap.
    private static func limit(_ rate: Int, _ isCurrent: Bool) -> Int {
        min(max(rate, 0), 10_000) * (isCurrent ? 125 : 110) / 10
    }
}
