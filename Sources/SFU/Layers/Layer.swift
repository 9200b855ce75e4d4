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
