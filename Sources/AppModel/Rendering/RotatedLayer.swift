/// The geometry of a layer that shows a rotated and mirrored video and fills its view. Sizes are in points.
public struct RotatedLayer: Equatable, Sendable {
    /// The size before the rotation.
    public var width: Double
    public var height: Double
    /// The center, in the view's coordinates.
    public var x: Double
    public var y: Double
    /// The clockwise rotation in radians. It is applied before mirroring.
    public var angle: Double
    /// -1 for mirrored video, otherwise 1.
    public var horizontalScale: Double

    /// Computes the layer that fills a view with rotated video.
    ///
    /// - Parameters:
    ///   - width: the width of the view.
    ///   - height: the height of the view.
    ///   - degrees: the clockwise rotation of the video, a multiple of 90.
    public init(width: Double, height: Double, degrees: Int, isMirrored: Bool) {
        let isUpright = degrees % 180 == 0
        (self.width, self.height) = isUpright ? (width, height) : (height, width)
        (x, y) = (width / 2, height / 2)
        angle = Double(degrees) * .pi / 180
        horizontalScale = isMirrored ? -1 : 1
    }
}
