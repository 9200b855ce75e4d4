/// The layout of rooms on the canvas of an archive or a broadcast: the rectangles that a viewport of this size has (`docs/layout.md`), on even
/// pixels.
///
/// It has no local video and no pages: what does not fit is not drawn. Streams with the class `focus` are pinned.
public struct RoomCanvas: Hashable, Sendable {
    /// The name of the layout in the API, beside those of OpenTok's.
    public static let type = "room"

    private let width: Int
    private let height: Int

    /// Returns nil for a canvas that `ComposedLayout` refuses too.
    public init?(width: Int, height: Int) {
        guard ComposedLayout(.bestFit, width: width, height: height) != nil else { return nil }
        (self.width, self.height) = (width, height)
    }

    /// Returns the streams that are drawn. On a canvas of at least 320x240, none covers another one.
    ///
    /// - Parameter streams: the streams that have video, in the order in which they were included.
    public func cells(_ streams: [LayoutStream]) -> [LayoutCell] {
        let drawn = Set(ComposedLayout.byPriority(streams).prefix(ComposedLayout.maxDrawn).map(\.id))
        let shown = streams.filter { drawn.contains($0.id) }
        let tiles = shown.map { Tile(id: $0.id, aspect: $0.aspect, isScreen: $0.isScreen) }
        var input = LayoutInput(width: Double(width), height: Double(height), tiles: tiles)
        input.focus = shown.filter { $0.classes.contains("focus") }.map(\.id)
        if !input.focus.isEmpty { input.layout = .pinned }
        return input.layOut().tiles.compactMap(cell)
    }

    /// Rounds the edges down to even pixels. Rectangles that did not overlap still do not. Returns nil for a rectangle that a canvas below
    /// 320x240 has no room for.
    private func cell(_ tile: PlacedTile) -> LayoutCell? {
        func even(_ edge: Int, in length: Int) -> Int { min(max(0, edge), length) / 2 * 2 }
        let rectangle = tile.rectangle
        let (left, top) = (even(rectangle.x, in: width), even(rectangle.y, in: height))
        let right = even(rectangle.x + rectangle.width, in: width)
        let bottom = even(rectangle.y + rectangle.height, in: height)
        guard left < right, top < bottom else { return nil }
        return LayoutCell(
            id: tile.id, x: left, y: top, width: right - left, height: bottom - top,
            fit: tile.fit == .cover ? .cover : .contain)
    }
}
