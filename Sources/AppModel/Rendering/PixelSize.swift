/// The size of a picture, in pixels.
public struct PixelSize: Equatable, Sendable {
    /// The size of a picture that is not known yet.
    public static let usual = PixelSize(width: PictureSize.usual.width, height: PictureSize.usual.height)

    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// The width divided by the height; nil for an empty picture.
    public var aspect: Double? { width > 0 && height > 0 ? Double(width) / Double(height) : nil }

    /// The size after a turn by a multiple of 90 degrees.
    public func turned(by degrees: Int) -> PixelSize {
        degrees % 180 == 0 ? self : PixelSize(width: height, height: width)
    }
}
