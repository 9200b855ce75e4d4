/// A rectangle in whole pixels or points, in a viewport, a canvas or a frame.
public struct Rectangle: Hashable, Sendable {
    /// The left edge, from the left edge of what the rectangle is in.
    public var x: Int
    /// The upper edge, from the upper edge of what the rectangle is in.
    public var y: Int
    /// In pixels or points, not negative.
    public var width: Int
    /// In pixels or points, not negative.
    public var height: Int

    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
}
