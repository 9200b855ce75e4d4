/// A rectangle in whole pixels or points, in a viewport, a canvas or a frame.
public struct Rectangle: Hashable, Sendable {
    /// The distance of the left edge from the left edge of the container.
    public var x: Int
    /// The distance of the upper edge from the upper edge of the container.
    public var y: Int
    /// In pixels or points, not negative.
    public var width: Int
    /// In pixels or points, not negative.
    public var height: Int

    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
}
