import Layout

/// Which part of a frame is drawn where.
public struct Placement: Hashable, Sendable {
    /// The part of the frame that is visible, in pixels. Its edges are even. Its width and height may be odd if the whole frame is visible.
    public var source: Rectangle
    /// Where it is drawn, within the cell, in even pixels of the canvas. The rest of the cell is black.
    public var target: Rectangle

    /// - Parameters:
    ///   - width, height: the frame's size in pixels, greater than zero.
    public init(width: Int, height: Int, in cell: CompositorCell) {
        let whole = Rectangle(x: 0, y: 0, width: width, height: height)
        let all = Rectangle(x: cell.x, y: cell.y, width: cell.width, height: cell.height)
        // The frame is wider than the cell if this is true.
        let isWider = width * cell.height > height * cell.width
        switch cell.fit {
        case .contain:
            source = whole
            target = all
            if isWider {
                target.height = Self.even(height * cell.width / width)
                target.y += Self.half(cell.height - target.height)
            } else {
                target.width = Self.even(width * cell.height / height)
                target.x += Self.half(cell.width - target.width)
            }
        case .cover:
            (source, target) = (whole, all)
            if isWider {
                source.width = min(width, Self.even(height * cell.width / cell.height))
                source.x = Self.half(width - source.width)
            } else {
                source.height = min(height, Self.even(width * cell.height / cell.width))
                source.y = Self.half(height - source.height)
            }
        }
    }

    /// Rounds down to an even number, at least 2.
    private static func even(_ value: Int) -> Int { max(2, value / 2 * 2) }
    /// Half of a length, rounded down to an even number.
    private static func half(_ value: Int) -> Int { max(0, value) / 4 * 2 }
}
