import Confab

/// The content of the Picture in Picture window, which is shown after the app leaves the foreground.
public struct SmallWindow: Sendable {
    public var source: any VideoSource
    /// The size of the video in pixels.
    public var size: PixelSize

    /// Creates the content; nil without video.
    init?(_ source: (any VideoSource)?, _ size: PixelSize?) {
        guard let source else { return nil }
        (self.source, self.size) = (source, size ?? .usual)
    }
}

extension PixelSize {
    /// The aspect ratios supported by the Picture in Picture window. Others are clamped.
    private static let aspects = 0.25...4.0

    /// Creates a size with the given ratio of width to height; nil if the ratio is unknown.
    init?(aspect: Double?) {
        guard let aspect, aspect.isFinite else { return nil }
        let height = PictureSize.usual.height
        let shape = min(max(aspect, Self.aspects.lowerBound), Self.aspects.upperBound)
        self.init(width: Int((shape * Double(height)).rounded()), height: height)
    }
}
