import RTC

/// The size and frame rate that a subscriber prefers. Without a preference it gets the best.
public struct VideoPreference: Equatable, Sendable {
    /// The size of the box to fill without enlarging the picture, in pixels. One dimension is enough.
    public var width: Int?
    public var height: Int?
    /// The maximum frame rate, if the publisher's encodings allow a choice.
    public var frameRate: Int?

    public init(width: Int? = nil, height: Int? = nil, frameRate: Int? = nil) {
        (self.width, self.height, self.frameRate) = (width, height, frameRate)
    }

    /// Whether a picture of this size fills the box. Without a box, no picture is large enough.
    func isMet(by size: PictureSize) -> Bool {
        (width.map { Int(size.width) >= $0 } ?? false) || (height.map { Int(size.height) >= $0 } ?? false)
    }
}

/// One of several encodings of a video (simulcast, RFC 8853), with what layer selection needs.
struct Layer: Equatable, Sendable {
    /// The size from the last keyframe; nil before the first, and for codecs whose headers are not parsed.
    var size: PictureSize?
    var isAlive = false
    var rates = FrameRates()
}

extension Layer {
    /// Selects a layer for a subscriber with this preference.
    ///
    /// Prefers layers whose frame rate can be low enough. Among those, returns the smallest that fills the requested box,
    /// or else the largest.
    ///
    /// - Parameters:
    ///   - layers: in the publisher's order.
    ///   - current: the layer that the subscriber receives now. Small changes of its frame rate do not cause a switch.
    ///   - aliveOnly: whether to skip layers that send nothing at present.
    /// - Returns: the index of the layer; nil only if there is none.
    static func best(
        of layers: [Layer], for preference: VideoPreference, current: Int?, aliveOnly: Bool
    ) -> Int? {
        var best: (index: Int, size: PictureSize, isMet: Bool, isSlow: Bool)?
        for index in layers.indices where layers[index].isAlive || !aliveOnly {
            let size = layers[index].size ?? guess(index, among: layers)
            let isMet = preference.isMet(by: size)
            let isSlow =
                preference.frameRate.map { layers[index].rates.canMatch($0, isCurrent: index == current) } ?? true
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

    /// Guesses the size of a layer without a keyframe so far: half or twice that of its neighbor, following the order of
    /// the known sizes. The preferred layer comes first (RFC 8853 §5.2), and is assumed to be 1280 × 720 if no size is
    /// known.
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
