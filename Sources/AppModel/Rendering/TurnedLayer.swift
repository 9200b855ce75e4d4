/// Where a layer lies that shows a picture turned and mirrored, so that it fills its view. Sizes are in points.
public struct TurnedLayer: Equatable, Sendable {
    /// The size before turning.
    public var width: Double
    public var height: Double
    /// The center, in the view.
    public var x: Double
    public var y: Double
    /// How far the layer is turned clockwise, in radians. It is turned before it is mirrored.
    public var angle: Double
    /// -1 for a mirrored picture, otherwise 1.
    public var horizontalScale: Double

    /// - Parameters:
    ///   - width: the width of the view.
    ///   - height: the height of the view.
    ///   - degrees: how far the picture has to be turned clockwise, a multiple of 90.
    public init(width: Double, height: Double, degrees: Int, isMirrored: Bool) {
        let isUpright = degrees % 180 == 0
        (self.width, self.height) = isUpright ? (width, height) : (height, width)
        (x, y) = (width / 2, height / 2)
        angle = Double(degrees) * .pi / 180
        horizontalScale = isMirrored ? -1 : 1
    }
}
