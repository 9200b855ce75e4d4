/// The size of a frame, in pixels.
public struct PixelSize: Equatable, Sendable {
    /// The size assumed until the real one is known.
    public static let usual = PixelSize(width: PictureSize.usual.width, height: PictureSize.usual.height)

    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// The width divided by the height; nil for an empty size.
    public var aspect: Double? { width > 0 && height > 0 ? Double(width) / Double(height) : nil }

    /// Returns the size after a rotation by a multiple of 90 degrees.
    public func turned(by degrees: Int) -> PixelSize {
        degrees % 180 == 0 ? self : PixelSize(width: height, height: width)
    }
}
