/// The layout constants defined in `docs/layout.md`. The web's `layout.js` uses the same values; the cases in
/// `layout-cases.json` check that both implementations agree.
private enum Measure {
    /// The size of the smallest tile, in which a face is still recognizable.
    static let least = (width: 96, height: 72)
    /// The maximum number of tiles on one page of a grid.
    static let maxTiles = 25
    static let maxPinned = 4
    /// The maximum number of tiles that are arranged as strips. In four strips, only a third of a typical video would
    /// be visible.
    static let maxStrips = 3
    static let gap = 8.0
    /// The share of the viewport for one of two videos, if only that one has the same orientation as the viewport.
    static let matchingShare = 0.55
    /// The range of aspect ratios in which a tile shows a face well, from portrait to landscape.
    static let narrowest = 3.0 / 4
    static let widest = 16.0 / 9
    /// The aspect ratio assumed for a video of unknown size. Most cameras have it, so most tiles do not move once the
    /// size is known.
    static let usualAspect = 16.0 / 9
    /// A video is cropped only if at least this share of it stays visible. This is chosen so that a 16:9 video is
    /// still cropped in a 3:4 tile.
    static let leastVisible = narrowest / widest
    /// The largest share of a grid tile that the self-view may cover.
    static let maxCovered = 0.2
    /// The thickness of the strip beside the large tiles: its share of the viewport, and its maximum for a strip on
    /// the right (`width`) or below (`height`).
    static let stripShare = 0.2
    static let maxStrip = (width: 240, height: 180)
    /// The maximum side of a viewport, larger than any device's. It keeps sums far from overflow.
    static let maxSide = 100_000.0
}

extension LayoutInput {
    /// Computes the rectangle of each tile. Every input has a valid result.
    public func layOut() -> LayoutOutput {
        let (width, height) = (side(self.width), side(self.height))
        let viewport = Rectangle(x: 0, y: 0, width: Int(width), height: Int(height))
        let wanted = gap.map { $0.isFinite ? $0 : Measure.gap } ?? Measure.gap
        let space = Space(viewport: viewport, gap: max(0, Int(min(wanted, width / 20, height / 20))), page: page)
        let placedOwn = own.map { placeOwn($0, in: viewport, isAlone: tiles.isEmpty) }
        let placed = place(in: space, own: placedOwn)
        return LayoutOutput(
            tiles: placed.tiles, own: placed.own ?? placedOwn, overflow: tiles.count - placed.tiles.count,
            page: placed.page, pages: placed.pages)
    }

    private func side(_ value: Double) -> Double {
        value.isFinite ? min(max(0, value), Measure.maxSide) : 0
    }

    private func place(in space: Space, own placedOwn: PlacedOwnPicture?) -> Placed {
        if tiles.count <= 1 { return Placed(tiles: tiles.map { fitted($0, space.viewport) }) }
        let large = largeTiles()
        if !large.isEmpty {
            let others = tiles.indices.filter { !large.contains($0) }.map { tiles[$0] }
            return space.withStrip(large.map { tiles[$0] }, others, own, placedOwn)
        }
        if layout == .auto, tiles.count <= Measure.maxStrips {
            let strips = space.strips(tiles)
            if tiles.count == 2 || zip(tiles, strips).allSatisfy({ isCropped($0, $1.rectangle) }) {
                return Placed(tiles: strips)
            }
        }
        return space.ownedGrid(tiles, own, placedOwn)
    }

    /// Returns the indices of the tiles to show large, with the others in a strip beside them; empty if all tiles have
    /// the same size.
    private func largeTiles() -> [Int] {
        var chosen: [Int] = []
        for id in focus {
            if let index = tiles.firstIndex(where: { $0.id == id }), !chosen.contains(index) { chosen.append(index) }
        }
        let screen = tiles.firstIndex(where: \.isScreen)
        switch layout {
        case .grid: return []
        case .auto: return screen.map { [$0] } ?? []
        case .speaker: return [screen ?? chosen.first ?? 0]
        case .pinned: return chosen.isEmpty ? [screen ?? 0] : Array(chosen.prefix(Measure.maxPinned))
        }
    }
}

/// The tiles of one page with their rectangles, and the number of pages.
private struct Placed {
    var tiles: [PlacedTile]
    var page = 0
    var pages = 1
    /// The rectangle of the self-view if it is not in its corner of the viewport; otherwise nil.
    var own: PlacedOwnPicture?
}

/// A viewport, and the algorithms that divide it.
private struct Space {
    var viewport: Rectangle
    var gap: Int
    var page: Int

    var isWide: Bool { viewport.width >= viewport.height }

    var gridCapacity: Int {
        min(
            Measure.maxTiles,
            partsIn(viewport.width, Measure.least.width, gap) * partsIn(viewport.height, Measure.least.height, gap))
    }

    /// Places the tiles in a grid. If the self-view would hide people in its corner, it becomes a tile of the grid.
    func ownedGrid(_ tiles: [Tile], _ own: OwnPicture?, _ placedOwn: PlacedOwnPicture?) -> Placed {
        if let own, let placedOwn, hidesPeople(of: tiles, placedOwn) { return tiled(tiles, with: own) }
        return pages(of: tiles, capacity: gridCapacity) { grid(viewport, gap, $0) }
    }

    /// Returns whether the self-view in its corner would cover too much of a grid tile, or extend beyond one tile.
    /// False if the grid has room for only one tile.
    func hidesPeople(of tiles: [Tile], _ own: PlacedOwnPicture) -> Bool {
        let cells = grid(viewport, gap, Array(tiles.prefix(gridCapacity)))
        guard gridCapacity > 1, let cell = cells.first?.rectangle else { return false }
        let width = own.rectangle.width + OwnPictureSize.padding
        let height = own.rectangle.height + OwnPictureSize.padding
        let covered = Double(width * height)
        return width > cell.width || height > cell.height
            || covered > Measure.maxCovered * Double(cell.width) * Double(cell.height)
    }

    /// Places the tiles in a grid. On each page, one tile is the self-view, as near to its corner as possible.
    func tiled(_ tiles: [Tile], with own: OwnPicture) -> Placed {
        var rectangle = viewport
        var placed = pages(of: tiles, capacity: gridCapacity - 1) { part in
            let tile = Tile(id: "", aspect: own.aspect)
            let columns = columnsFor(viewport, gap, part + [tile])
            let index = cell(in: own.corner, columns: columns, others: part.count)
            var all = part
            all.insert(tile, at: index)
            var cells = grid(viewport, gap, all, columns: columns)
            rectangle = cells.remove(at: index).rectangle
            return cells
        }
        placed.own = PlacedOwnPicture(rectangle: rectangle, fit: .cover)
        return placed
    }

    /// Returns the index of the cell in a corner: the first or last cell of the first or last row.
    private func cell(in corner: Corner, columns: Int, others: Int) -> Int {
        if corner.isTop { return corner.isLeft ? 0 : min(columns - 1, others) }
        return corner.isLeft ? others / columns * columns : others
    }

    /// Arranges the tiles of the current page, which has at most `capacity` tiles.
    func pages(of tiles: [Tile], capacity: Int, arrange: ([Tile]) -> [PlacedTile]) -> Placed {
        let pages = max(1, (tiles.count + capacity - 1) / capacity)
        let page = min(max(0, page), pages - 1)
        let part = Array(tiles.dropFirst(page * capacity).prefix(capacity))
        return Placed(tiles: arrange(part), page: page, pages: pages)
    }

    /// Divides the long axis of the viewport among the tiles.
    func strips(_ tiles: [Tile]) -> [PlacedTile] {
        let matches = tiles.map { (limited($0.aspect, narrowest: 9.0 / 16) >= 1) == isWide }
        var shares = equal(tiles.count)
        if tiles.count == 2, matches[0] != matches[1] {
            shares = matches.map { $0 ? Measure.matchingShare : 1 - Measure.matchingShare }
        }
        let parts = split(isWide ? viewport.width : viewport.height, gap, shares)
        return zip(tiles, parts).map { tile, part in
            let rectangle =
                isWide
                ? Rectangle(x: part.start, y: 0, width: part.size, height: viewport.height)
                : Rectangle(x: 0, y: part.start, width: viewport.width, height: part.size)
            return PlacedTile(id: tile.id, rectangle: rectangle, fit: tile.isScreen ? .contain : .cover)
        }
    }

    /// The size of the strip and its tiles. `thickness` is the width of a strip on the right, or the height of one
    /// below. `side` is the size of its tiles in the other direction.
    private var strip: (thickness: Int, side: Int) {
        let (least, most) = (Measure.least, Measure.maxStrip)
        let (along, across) = isWide ? (least.height, least.width) : (least.width, least.height)
        let wanted =
            isWide
            ? between(across, Double(viewport.width) * Measure.stripShare, most.width)
            : between(across, Double(viewport.height) * Measure.stripShare, most.height)
        // Make the strip thinner if two tiles would not fit otherwise.
        let half = max(along, ((isWide ? viewport.height : viewport.width) - gap) / 2)
        let side = min(half, wanted * along / across)
        return (side < half ? wanted : min(wanted, half * across / along), side)
    }

    /// The part of the viewport that a strip leaves free.
    private var largePart: Rectangle {
        var part = viewport
        if isWide {
            part.width = max(0, viewport.width - strip.thickness - gap)
        } else {
            part.height = max(0, viewport.height - strip.thickness - gap)
        }
        return part
    }

    /// Places the self-view in a corner of the large part, because in the strip it would hide people.
    private func besideStrip(_ own: PlacedOwnPicture, _ corner: Corner) -> PlacedOwnPicture {
        let size = (width: own.rectangle.width, height: own.rectangle.height)
        return PlacedOwnPicture(rectangle: cornered(largePart, size, corner), fit: own.fit)
    }

    /// Places large tiles and a strip of the others: on the right of a landscape viewport, below in a portrait one.
    /// The self-view is at one end of the strip if the strip has room for all tiles, otherwise in a corner of the
    /// large part.
    func withStrip(
        _ large: [Tile], _ others: [Tile], _ own: OwnPicture?, _ placedOwn: PlacedOwnPicture?
    ) -> Placed {
        guard !others.isEmpty else { return ownedGrid(large, own, placedOwn) }
        let (width, height) = (viewport.width, viewport.height)
        let (thickness, side) = strip
        let length = isWide ? height : width
        let start = (isWide ? width : height) - thickness
        let capacity = partsIn(length, side, gap)
        func arrange(_ part: [Tile]) -> [PlacedTile] {
            // Center the tiles along the strip.
            let first = max(0, (length - part.count * (side + gap) + gap) / 2)
            return part.enumerated().map { index, tile in
                let at = first + index * (side + gap)
                let rectangle =
                    isWide
                    ? Rectangle(x: start, y: at, width: thickness, height: side)
                    : Rectangle(x: at, y: start, width: side, height: thickness)
                return fitted(tile, rectangle)
            }
        }
        let shown = grid(largePart, gap, large)
        if let own, others.count < capacity {
            let index = (isWide ? own.corner.isTop : own.corner.isLeft) ? 0 : others.count
            var part = others
            part.insert(Tile(id: "", aspect: own.aspect), at: index)
            var strip = arrange(part)
            let rectangle = strip.remove(at: index).rectangle
            return Placed(tiles: shown + strip, own: PlacedOwnPicture(rectangle: rectangle, fit: .cover))
        }
        var placed = pages(of: others, capacity: capacity, arrange: arrange)
        placed.tiles = shown + placed.tiles
        if let own, let placedOwn { placed.own = besideStrip(placedOwn, own.corner) }
        return placed
    }
}

// MARK: Grid

/// Lays tiles out in `known` columns, or in the number of columns that shows people largest. The last row is centered.
private func grid(_ area: Rectangle, _ gap: Int, _ tiles: [Tile], columns known: Int? = nil) -> [PlacedTile] {
    let columns = known ?? columnsFor(area, gap, tiles)
    let rows = (tiles.count + columns - 1) / columns
    let (lines, cells) = (split(area.height, gap, equal(rows)), split(area.width, gap, equal(columns)))
    return tiles.enumerated().map { index, tile in
        let row = index / columns
        let missing = row == rows - 1 ? rows * columns - tiles.count : 0
        let shift = missing * (cells[0].size + gap) / 2
        let (line, cell) = (lines[row], cells[index % columns])
        return fitted(
            tile,
            Rectangle(
                x: area.x + cell.start + shift, y: area.y + line.start,
                width: missing > 0 ? cells[0].size : cell.size, height: line.size))
    }
}

private func columnsFor(_ area: Rectangle, _ gap: Int, _ tiles: [Tile]) -> Int {
    let aspect = tiles.reduce(0) { $0 + limited($1.aspect, narrowest: Measure.narrowest) } / Double(tiles.count)
    let most = min(tiles.count, partsIn(area.width, Measure.least.width, gap))
    var best = (columns: most, shown: -1.0)
    for columns in 1...most {
        let rows = (tiles.count + columns - 1) / columns
        let width = Double(area.width - gap * (columns - 1)) / Double(columns)
        let height = Double(area.height - gap * (rows - 1)) / Double(rows)
        let shown = usefulArea(width, height, aspect: aspect)
        if height.rounded(.down) >= Double(Measure.least.height), shown > best.shown { best = (columns, shown) }
    }
    return best.columns
}

/// Returns the useful area of a cell: the largest part of it with a shape between 3:4 and 16:9, because the rest only
/// shows more background. If the video would not be cropped in the cell, returns the area of the video.
private func usefulArea(_ width: Double, _ height: Double, aspect: Double) -> Double {
    let isWhole = visibleShare(of: aspect, in: width / height) < Measure.leastVisible
    let (low, high) = isWhole ? (aspect, aspect) : (Measure.narrowest, Measure.widest)
    return min(width, height * high) * min(height, width / low)
}

// MARK: The self-view

private func placeOwn(_ own: OwnPicture, in viewport: Rectangle, isAlone: Bool) -> PlacedOwnPicture {
    if isAlone {
        let alone = fitted(Tile(id: "", aspect: own.aspect), viewport)
        return PlacedOwnPicture(rectangle: alone.rectangle, fit: alone.fit)
    }
    let size = OwnPictureSize(aspect: own.aspect, width: viewport.width, height: viewport.height)
    return PlacedOwnPicture(rectangle: cornered(viewport, (size.width, size.height), own.corner), fit: .cover)
}

/// Returns a rectangle of the given size in a corner of an area with its origin at 0, 0.
private func cornered(_ area: Rectangle, _ size: (width: Int, height: Int), _ corner: Corner) -> Rectangle {
    let padding = OwnPictureSize.padding
    let x = corner.isLeft ? padding : area.width - padding - size.width
    let y = corner.isTop ? padding : area.height - padding - size.height
    return Rectangle(x: x, y: y, width: size.width, height: size.height)
}

/// The size of the self-view in a corner of a viewport.
private struct OwnPictureSize {
    /// The distance of the self-view from the edges.
    static let padding = 10

    let width: Int
    let height: Int

    init(aspect: Double?, width viewportWidth: Int, height viewportHeight: Int) {
        let shorter = min(viewportWidth, viewportHeight)
        // The shorter side of the self-view, for a phone, a large phone, and a tablet.
        let small = shorter < 400 ? 90.0 : shorter < 700 ? 105 : 168
        let shape = limited(aspect, narrowest: 9.0 / 16)
        let (width, height) = shape >= 1 ? (small * shape, small) : (small, small / shape)
        // At most half of the viewport in each direction.
        let scale = min(1, Double(viewportWidth) / 2 / width, Double(viewportHeight) / 2 / height)
        (self.width, self.height) = (Int(width * scale), Int(height * scale))
    }
}

// MARK: Arithmetic

private func fitted(_ tile: Tile, _ rectangle: Rectangle) -> PlacedTile {
    PlacedTile(id: tile.id, rectangle: rectangle, fit: isCropped(tile, rectangle) ? .cover : .contain)
}

private func isCropped(_ tile: Tile, _ rectangle: Rectangle) -> Bool {
    let aspect = limited(tile.aspect, narrowest: 9.0 / 16)
    let there = Double(rectangle.width) / Double(rectangle.height)
    return !tile.isScreen && visibleShare(of: aspect, in: there) >= Measure.leastVisible
}

/// Returns the share of a video that stays visible when it is cropped to another aspect ratio.
private func visibleShare(of aspect: Double, in there: Double) -> Double { min(aspect / there, there / aspect) }

/// Returns how many parts of a given size fit in a length, at least one.
private func partsIn(_ length: Int, _ size: Int, _ gap: Int) -> Int { max(1, (length + gap) / (size + gap)) }

/// Divides a length into parts with gaps between them. Rounds the edges so that the parts and gaps together fill the
/// length.
private func split(_ length: Int, _ gap: Int, _ shares: [Double]) -> [(start: Int, size: Int)] {
    let free = Double(length - gap * (shares.count - 1))
    var before = 0.0
    return shares.enumerated().map { index, share in
        // Add a little before rounding down, because floating-point sums of shares can be slightly below the exact
        // value.
        let start = Int((free * before + 1e-6).rounded(.down))
        before += share
        return (start + gap * index, Int((free * before + 1e-6).rounded(.down)) - start)
    }
}

private func equal(_ count: Int) -> [Double] { Array(repeating: 1 / Double(count), count: count) }

private func between(_ low: Int, _ value: Double, _ high: Int) -> Int {
    Int(min(Double(high), max(Double(low), value)))
}

/// Limits an aspect ratio to the range from `narrowest` to 16:9. Returns the default for an unknown or invalid aspect
/// ratio.
private func limited(_ aspect: Double?, narrowest: Double) -> Double {
    guard let aspect, aspect > 0, aspect.isFinite else { return Measure.usualAspect }
    return min(Measure.widest, max(narrowest, aspect))
}
