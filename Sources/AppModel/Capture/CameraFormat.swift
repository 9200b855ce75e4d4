/// A format that a camera offers, without the system's types.
public struct CameraFormat: Equatable, Sendable {
    public var width: Int
    public var height: Int
    /// The ranges of frame rates, in frames per second.
    public var frameRates: [ClosedRange<Double>]
    /// Whether its frames are NV12 with video range, which the encoder takes without a conversion.
    public var isNV12: Bool

    public init(width: Int, height: Int, frameRates: [ClosedRange<Double>], isNV12: Bool) {
        (self.width, self.height, self.frameRates, self.isNV12) = (width, height, frameRates, isNV12)
    }

    fileprivate var area: Int { width.multipliedReportingOverflow(by: height).partialValue }

    fileprivate func allows(_ rate: Double) -> Bool { frameRates.contains { $0.contains(rate) } }

    fileprivate func covers(_ request: CameraRequest) -> Bool {
        width >= request.width && height >= request.height
    }
}

/// The format to start a camera with.
public struct CameraChoice: Equatable, Sendable {
    /// Its index in the list of formats.
    public var index: Int
    public var frameRate: Int
}

extension CameraRequest {
    /// Chooses the smallest format that is at least as large as the request and allows its rate; of equals, one in NV12.
    /// Without one, the largest that allows the rate, and without that, the format whose rates are nearest. Returns nil only
    /// for an empty list: then there is no camera.
    public func choose(from formats: [CameraFormat]) -> CameraChoice? {
        let rate = Double(frameRate)
        let allowing = formats.indices.filter { formats[$0].allows(rate) }
        let covering = allowing.filter { formats[$0].covers(self) }
        if let best = covering.min(by: { formats[$0].isBetter(than: formats[$1], smallest: true) }) {
            return CameraChoice(index: best, frameRate: frameRate)
        }
        if let best = allowing.min(by: { formats[$0].isBetter(than: formats[$1], smallest: false) }) {
            return CameraChoice(index: best, frameRate: frameRate)
        }
        return formats.indices
            .compactMap { index in formats[index].nearestRate(to: rate).map { (index: index, rate: $0) } }
            .min { abs($0.rate - rate) < abs($1.rate - rate) }
            .map { CameraChoice(index: $0.index, frameRate: Int($0.rate.rounded(.down))) }
    }
}

extension CameraFormat {
    fileprivate func isBetter(than other: Self, smallest: Bool) -> Bool {
        guard area == other.area else { return (area < other.area) == smallest }
        return isNV12 && !other.isNV12
    }

    /// Returns the rate nearest to the wanted one; nil if the format has none.
    fileprivate func nearestRate(to rate: Double) -> Double? {
        let possible = frameRates.map { min(max(rate, $0.lowerBound), $0.upperBound) }.filter {
            (1...1000).contains($0)
        }
        return possible.min { abs($0 - rate) < abs($1 - rate) }
    }
}
