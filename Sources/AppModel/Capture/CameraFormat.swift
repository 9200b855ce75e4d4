import Confab

/// A format of a camera, independent of the system's types.
public struct CameraFormat: Equatable, Sendable {
    public var width: Int
    public var height: Int
    /// The supported frame rates, in frames per second.
    public var frameRates: [ClosedRange<Double>]
    /// Whether its frames are NV12 with video range, which the encoder accepts without conversion.
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

/// The format to use, and the frame rate to capture with it.
struct CameraChoice: Equatable, Sendable {
    /// The index of the format in the list.
    var index: Int
    var frameRate: Int
}

extension CameraRequest {
    /// Chooses the smallest format that is at least as large as the request and supports its rate. Of several equally
    /// small formats, prefers one in NV12. If no format is large enough, chooses the largest format that supports the
    /// rate. If no format supports the rate, chooses the one with the closest rate. Returns nil if the list is empty,
    /// or if no format has a rate from 1 to 1000.
    func choose(from formats: [CameraFormat]) -> CameraChoice? {
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

    /// Returns the supported rate nearest to `rate`; nil if the format supports no rate from 1 to 1000.
    fileprivate func nearestRate(to rate: Double) -> Double? {
        let possible = frameRates.map { min(max(rate, $0.lowerBound), $0.upperBound) }.filter {
            (1...1000).contains($0)
        }
        return possible.min { abs($0 - rate) < abs($1 - rate) }
    }
}

/// A camera of this device, independent of the system's types.
public struct CameraDescription: Equatable, Sendable {
    /// The direction the camera faces; nil for a camera that is not built into the device.
    public var facing: CameraFacing?
    public var formats: [CameraFormat]

    public init(facing: CameraFacing?, formats: [CameraFormat]) { (self.facing, self.formats) = (facing, formats) }
}

/// The camera and the format to capture with.
public struct CameraSelection: Equatable, Sendable {
    /// The index of the camera in the list.
    public var camera: Int
    /// The index of the format in the camera's formats.
    public var format: Int
    public var frameRate: Int
    /// The size of the format, in pixels.
    public var size: VideoSize
    /// The direction the camera faces. If unknown, the requested direction.
    public var facing: CameraFacing
}

extension CameraRequest {
    public init(_ preset: CapturePreset) {
        self.init(width: preset.size.width, height: preset.size.height, frameRate: preset.frameRate)
    }

    /// Chooses the camera that faces in this direction, or else the first one. Then chooses the format to capture
    /// with.
    ///
    /// - Throws: `media_failed` if there is no camera, or if the chosen camera has no usable format.
    public func select(_ facing: CameraFacing, from cameras: [CameraDescription]) throws(ConfabError) -> CameraSelection
    {
        guard let camera = facing.choose(from: cameras.map(\.facing)) else { throw .noCamera }
        let formats = cameras[camera].formats
        guard let choice = choose(from: formats) else { throw .noCameraFormat }
        let format = formats[choice.index]
        return CameraSelection(
            camera: camera, format: choice.index, frameRate: choice.frameRate,
            size: VideoSize(width: format.width, height: format.height), facing: cameras[camera].facing ?? facing)
    }
}
