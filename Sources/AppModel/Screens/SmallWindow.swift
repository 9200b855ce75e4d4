import Confab

/// What the small window shows after the app is left (Picture in Picture).
public struct SmallWindow: Sendable {
    public var source: any VideoSource
    /// In pixels.
    public var size: PixelSize

    /// Nil without a picture.
    init?(_ source: (any VideoSource)?, _ size: PixelSize?) {
        guard let source else { return nil }
        (self.source, self.size) = (source, size ?? .usual)
    }
}

extension PixelSize {
    /// The shapes that a small window has. Others are narrowed or widened.
    private static let aspects = 0.25...4.0

    /// A size with this width divided by the height.
    init?(aspect: Double?) {
        guard let aspect, aspect.isFinite else { return nil }
        let height = PictureSize.usual.height
        let shape = min(max(aspect, Self.aspects.lowerBound), Self.aspects.upperBound)
        self.init(width: Int((shape * Double(height)).rounded()), height: height)
    }
}
