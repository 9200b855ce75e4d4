/// The arrangement of the tiles in a room (`docs/layout.md`).
public enum RoomLayout: String, Codable, CaseIterable, Sendable {
    case auto, grid, speaker, pinned

    public var text: String {
        switch self {
        case .auto: "Automatic"
        case .grid: "Grid"
        case .speaker: "Speaker"
        case .pinned: "Pinned"
        }
    }
}

/// A corner of the viewport, for the self-view.
public enum Corner: String, Codable, CaseIterable, Sendable {
    case topLeft, topRight, bottomLeft, bottomRight

    var isLeft: Bool { self == .topLeft || self == .bottomLeft }
    var isTop: Bool { self == .topLeft || self == .topRight }

    init(isTop: Bool, isLeft: Bool) {
        self = isTop ? (isLeft ? .topLeft : .topRight) : (isLeft ? .bottomLeft : .bottomRight)
    }
}

/// How a video fills its rectangle: `cover` crops it, `contain` shows all of it.
public enum Fit: String, Codable, Sendable {
    case cover, contain

    public var other: Fit { self == .cover ? .contain : .cover }
}

/// A rectangle in whole pixels or points.
public struct Rectangle: Equatable, Sendable {
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int

    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
}

/// A tile to be placed: another person's video, or a shared screen.
public struct Tile: Equatable, Sendable {
    public var id: String
    /// The width divided by the height; nil while it is unknown.
    public var aspect: Double?
    public var isScreen: Bool

    public init(id: String, aspect: Double? = nil, isScreen: Bool = false) {
        (self.id, self.aspect, self.isScreen) = (id, aspect, isScreen)
    }
}

/// The self-view to be placed.
public struct OwnPicture: Equatable, Sendable {
    /// The width divided by the height; nil while it is unknown.
    public var aspect: Double?
    public var corner: Corner

    public init(aspect: Double? = nil, corner: Corner = .bottomRight) {
        (self.aspect, self.corner) = (aspect, corner)
    }
}

/// A tile with its rectangle, and how its video fills the rectangle.
public struct PlacedTile: Equatable, Sendable {
    public var id: String
    public var rectangle: Rectangle
    public var fit: Fit
}

/// The rectangle of the self-view, and how the video fills it.
public struct PlacedOwnPicture: Equatable, Sendable {
    public var rectangle: Rectangle
    public var fit: Fit
}

/// The viewport and the tiles from which a layout is computed.
public struct LayoutInput: Equatable, Sendable {
    /// The size of the viewport.
    public var width: Double
    public var height: Double
    /// The tiles of the other people and of shared screens, in display order.
    public var tiles: [Tile]
    public var layout = RoomLayout.auto
    /// The ids of the tiles to show large: that of the active speaker's tile, or those of the pinned tiles.
    public var focus: [String] = []
    /// The self-view; nil if it is not shown.
    public var own: OwnPicture?
    /// The space between tiles; nil for the default.
    public var gap: Double?
    /// The page to show, from 0. A number that is too large means the last page.
    public var page = 0

    public init(width: Double, height: Double, tiles: [Tile]) {
        (self.width, self.height, self.tiles) = (width, height, tiles)
    }
}

/// The result of a layout.
public struct LayoutOutput: Equatable, Sendable {
    public var tiles: [PlacedTile]
    public var own: PlacedOwnPicture?
    /// The number of tiles on other pages.
    public var overflow: Int
    public var page: Int
    public var pages: Int

    public var hasPages: Bool { pages > 1 }
    public var hasPreviousPage: Bool { page > 0 }
    public var hasNextPage: Bool { page < pages - 1 }
    /// The page before and the page after this one. At the first or the last page, there is none, so the number stays
    /// the same.
    public var previousPage: Int { hasPreviousPage ? page - 1 : page }
    public var nextPage: Int { hasNextPage ? page + 1 : page }
}
