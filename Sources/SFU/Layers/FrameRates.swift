import RTC

/// How many pictures a second an encoding has, and has up to each of VP8's temporal layers (RFC 7741 §4.2, `TID`).
struct FrameRates: Equatable, Sendable {
    /// How long frames are counted before the rates are replaced.
    static let interval = MediaInterval.seconds(1)
    /// Of each temporal layer, or in the first where there are none.
    private var counts = SIMD4<UInt32>()
    private var since: MediaTime?
    private var hasLayers = false
    /// Pictures in ten seconds, up to each temporal layer; nil until they were counted for a while.
    private(set) var tenfold: SIMD4<UInt32>?

    /// A picture's last packet has come.
    mutating func count(_ temporalLayer: UInt8) {
        hasLayers = temporalLayer != PendingPacket.noLayer
        counts[Int(temporalLayer & 3) * (hasLayers ? 1 : 0)] &+= 1
    }

    /// - Returns: whether the rates are new.
    mutating func measure(now: MediaTime) -> Bool {
        guard let since else {
            (self.since, counts) = (now, .zero)
            return false
        }
        let elapsed = (now - since).milliseconds
        guard elapsed >= Self.interval.milliseconds else { return false }
        var sums = counts &* 10_000 / UInt32(clamping: elapsed)
        for layer in 1..<4 { sums[layer] &+= sums[layer - 1] }
        (self.since, counts) = (now, .zero)
        // In silence they stay what they were: what is switched off would otherwise look like something new.
        guard sums[3] > 0, sums != tenfold else { return false }
        tenfold = sums
        return true
    }

    /// Whether so few pictures a second can be taken of it; an encoding that was not counted yet is given a chance.
    func canBe(_ rate: Int, isCurrent: Bool) -> Bool {
        tenfold.map { Int($0[0]) <= Self.limit(rate, isCurrent) } ?? true
    }

    /// The highest temporal layer with which there are no more pictures a second; `PendingPacket.noLayer` for all.
    ///
    /// - Parameter current: what the answer was the last time.
    func temporalLayer(for rate: Int?, current: UInt8) -> UInt8 {
        guard let rate, let tenfold, hasLayers, Int(tenfold[3]) > Self.limit(rate, current == PendingPacket.noLayer)
        else {
            return PendingPacket.noLayer
        }
        for layer in stride(from: 2, through: 1, by: -1)
        where Int(tenfold[layer]) <= Self.limit(rate, current == UInt8(layer)) { return UInt8(layer) }
        return 0
    }

    /// A tenth more than asked for is what counting for a second may find; a quarter, where the choice was made
    /// already.
    private static func limit(_ rate: Int, _ isCurrent: Bool) -> Int {
        min(max(rate, 0), 10_000) * (isCurrent ? 125 : 110) / 10
    }
}
