import RTC

/// What a subscriber would like the picture to be. Nothing said is the best there is.
public struct VideoPreference: Equatable, Sendable {
    /// In pixels: the picture is to fill a box of this size without being enlarged, either way where only one is said.
    public var width: Int?
    public var height: Int?
    /// No more pictures a second than this, where the publisher's encodings allow a choice.
    public var frameRate: Int?

    public init(width: Int? = nil, height: Int? = nil, frameRate: Int? = nil) {
        (self.width, self.height, self.frameRate) = (width, height, frameRate)
    }

    /// Whether pictures of this size fill the box. Without a box none is large enough.
    func isMet(by size: PictureSize) -> Bool {
        (width.map { Int(size.width) >= $0 } ?? false) || (height.map { Int(size.height) >= $0 } ?? false)
    }
}

/// One of several encodings of a picture (simulcast, RFC 8853), as far as choosing among them goes.
struct Layer: Equatable, Sendable {
    /// From its last keyframe; nil before the first, and for codecs whose headers we do not read.
    var size: PictureSize?
    var isAlive = false
    var rates = FrameRates()
}

extension Layer {
    /// What a subscriber with this wish is to get.
    ///
    /// Among those whose frame rate can be low enough, if there are any: the smallest that is at least as large as
    /// asked for, else the largest.
    ///
    /// - Parameters:
    ///   - layers: in the publisher's order.
    ///   - current: what the subscriber gets now; a rate that only trembles does not take it away.
    ///   - livingOnly: without those that send nothing at present.
    /// - Returns: its index; nil only when there is none to choose.
    static func best(
        of layers: [Layer], for preference: VideoPreference, current: Int?, livingOnly: Bool
    ) -> Int? {
        var best: (index: Int, size: PictureSize, isMet: Bool, isSlow: Bool)?
        for index in layers.indices where layers[index].isAlive || !livingOnly {
            let size = layers[index].size ?? guess(index, among: layers)
            let isMet = preference.isMet(by: size)
            let isSlow = preference.frameRate.map { layers[index].rates.canBe($0, isCurrent: index == current) } ?? true
            if let best {
                if best.isSlow != isSlow {
                    guard isSlow else { continue }
                } else if best.isMet != isMet {
                    guard isMet else { continue }
                } else {
                    guard isMet ? size.area < best.size.area : size.area > best.size.area else { continue }
                }
            }
            best = (index, size, isMet, isSlow)
        }
        return best?.index
    }

    /// What is not known yet: half of the next in the order or twice as large, whichever way the known ones go. The
    /// preferred one comes first (RFC 8853 §5.2), and where nothing is known it is taken to be 1280 × 720.
    static func guess(_ index: Int, among layers: [Layer]) -> PictureSize {
        var (nearest, other): (Int?, Int?)
        for known in layers.indices where layers[known].size != nil {
            if nearest.map({ abs(known - index) < abs($0 - index) }) ?? true {
                (nearest, other) = (known, nearest)
            } else {
                other = known
            }
        }
        let base = nearest.flatMap { layers[$0].size } ?? PictureSize(width: 1280, height: 720)
        var steps = index - (nearest ?? 0)
        if let nearest, let other, let far = layers[other].size, (far.area > base.area) == (other > nearest) {
            steps = -steps
        }
        func scaled(_ length: UInt16) -> UInt16 {
            steps >= 0 ? max(1, length >> UInt16(steps)) : UInt16(min(Int(length) << -steps, Int(UInt16.max)))
        }
        return PictureSize(width: scaled(base.width), height: scaled(base.height))
    }
}

/// How many pictures a second an encoding has, and has up to each of VP8's temporal layers (RFC 7741 §4.2, `TID`).
struct FrameRates: Equatable, Sendable {
    /// As often as this they are counted anew.
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
