import RTC

/// The size and frame rate that a subscriber prefers. A subscriber without a preference gets the best layer.
public struct VideoPreference: Equatable, Sendable {
    /// The size in pixels of the box in which the video is shown. The video should fill the box without being
    /// enlarged. A width or a height alone is enough; if both are nil, no size is preferred.
    public var width: Int?
    public var height: Int?
    /// The maximum frame rate. It has an effect only if the publisher's encodings differ in frame rate or have
    /// temporal layers.
    public var frameRate: Int?
    /// The priority when the subscriber's connection cannot carry all videos: the quality of videos with a higher
    /// priority is raised first. 0 by default; above 0 the video is pinned.
    public var priority = 0

    public init(width: Int? = nil, height: Int? = nil, frameRate: Int? = nil, priority: Int = 0) {
        (self.width, self.height, self.frameRate, self.priority) = (width, height, frameRate, priority)
    }

    /// Returns whether a video of this size is at least as wide or as high as the box. If the preference contains no
    /// box, no video is large enough.
    func isMet(by size: PictureSize) -> Bool {
        (width.map { Int(size.width) >= $0 } ?? false) || (height.map { Int(size.height) >= $0 } ?? false)
    }
}

/// The properties of one encoding of a video that layer selection needs. With simulcast (RFC 8853), a video has
/// several encodings.
struct Layer: Equatable, Sendable {
    /// The size in the most recent keyframe. Nil before the first keyframe, and for codecs whose headers are not parsed.
    var size: PictureSize?
    var isAlive = false
    var rates = FrameRates()
    /// When subscribers began to need the layer, or when it was last marked as missing; nil if no subscriber needs it.
    var wantedSince: MediaTime?
    /// The time until which the layer is considered missing, because the publisher does not send it although it is
    /// needed; nil if it has not been missing since it was last received.
    var isMissingUntil: MediaTime?
}

extension Layer {
    /// Selects a layer for a subscriber with this preference.
    ///
    /// Prefers layers whose frame rate can be kept within the requested one. Of those, it returns the smallest layer
    /// that fills the requested box, or the largest if none does.
    ///
    /// - Parameters:
    ///   - layers: all layers, in the publisher's order.
    ///   - current: the layer that the subscriber receives now. A small change in that layer's frame rate does not
    ///     cause a switch.
    ///   - aliveOnly: whether to skip layers that the publisher currently does not send.
    ///   - allowed: one bit for each layer that may be selected.
    /// - Returns: the index of the selected layer; nil only if there is no layer to choose.
    static func best(
        of layers: [Layer], for preference: VideoPreference, current: Int?, aliveOnly: Bool, allowed: UInt8 = .max
    ) -> Int? {
        var best: (index: Int, size: PictureSize, isMet: Bool, isSlow: Bool)?
        for index in layers.indices where layers[index].isAlive || !aliveOnly {
            guard allowed >> UInt8(index) & 1 == 1 else { continue }
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

    /// Guesses the size of a layer that has not sent a keyframe yet. Each layer is assumed to be half or twice as wide
    /// and high as the layer before it, depending on whether the known sizes decrease or increase. If no size is
    /// known, the preferred layer, which comes first (RFC 8853 §5.2), is assumed to be 1280 × 720.
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
