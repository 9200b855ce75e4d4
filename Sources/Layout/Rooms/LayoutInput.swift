/// The arrangement of the tiles in a room (`docs/layout.md`).
public enum RoomLayout: String, Codable, CaseIterable, Sendable {
    /// The layout that suits the number and the shapes of the videos.
    case auto
    /// All videos have the same size.
    case grid
    /// One video is large: a screen, or the person who speaks.
    case speaker
    /// The videos of `focus` are large.
    case pinned
}

/// A corner of the viewport, for the self-view.
public enum Corner: String, Codable, CaseIterable, Sendable {
    /// The four corners, row by row.
    case topLeft, topRight, bottomLeft, bottomRight

    /// False for both corners on the right.
    public var isLeft: Bool { self == .topLeft || self == .bottomLeft }
    /// False for both corners at the bottom.
    public var isTop: Bool { self == .topLeft || self == .topRight }

    public init(isTop: Bool, isLeft: Bool) {
        self = isTop ? (isLeft ? .topLeft : .topRight) : (isLeft ? .bottomLeft : .bottomRight)
    }
}

/// How a video fills its rectangle: `cover` crops it, `contain` shows all of it.
public enum Fit: String, Codable, Sendable {
    /// Fills the rectangle, without what is outside of it.
    case cover
    /// Shows everything, with empty space beside it.
    case contain

    /// What a double tap changes it to.
    public var other: Fit { self == .cover ? .contain : .cover }
}

/// A tile to be placed: another person's video, or a shared screen.
public struct Tile: Equatable, Sendable {
    /// Any text that no other tile of the input has.
    public var id: String
    /// The width divided by the height; nil while it is unknown.
    public var aspect: Double?
    /// Whether it shows a screen, which is never cropped, instead of a camera.
    public var isScreen: Bool

    public init(id: String, aspect: Double? = nil, isScreen: Bool = false) {
        (self.id, self.aspect, self.isScreen) = (id, aspect, isScreen)
    }
}

/// The self-view to be placed.
public struct OwnPicture: Equatable, Sendable {
    /// The width divided by the height; nil while it is unknown.
    public var aspect: Double?
    /// Where it is in front of other videos, if it is.
    public var corner: Corner

    public init(aspect: Double? = nil, corner: Corner = .bottomRight) {
        (self.aspect, self.corner) = (aspect, corner)
    }
}

/// A tile with its rectangle, and how its video fills the rectangle.
public struct PlacedTile: Equatable, Sendable {
    /// That of the tile in the input.
    public var id: String
    /// Overlaps that of no other tile.
    public var rectangle: Rectangle
    /// Screens are always contained.
    public var fit: Fit

    public init(id: String, rectangle: Rectangle, fit: Fit) {
        (self.id, self.rectangle, self.fit) = (id, rectangle, fit)
    }
}

/// The rectangle of the self-view, and how the video fills it.
public struct PlacedOwnPicture: Equatable, Sendable {
    /// May be in front of tiles.
    public var rectangle: Rectangle
    /// Contained only if it fills the viewport.
    public var fit: Fit
}

/// The viewport and the tiles from which a layout is computed.
public struct LayoutInput: Equatable, Sendable {
    /// The viewport's, in pixels or points. Any number is allowed.
    public var width: Double
    /// The viewport's, in pixels or points. Any number is allowed.
    public var height: Double
    /// The tiles of the other people and of shared screens, in display order.
    public var tiles: [Tile]
    /// How the tiles are arranged.
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
    /// Those of the page that is shown.
    public var tiles: [PlacedTile]
    /// The self-view; nil if the input has none.
    public var own: PlacedOwnPicture?
    /// The number of tiles on other pages.
    public var overflow: Int
    /// The number of the page that is shown, from 0.
    public var page: Int
    /// At least 1.
    public var pages: Int

    public init(tiles: [PlacedTile], own: PlacedOwnPicture?, overflow: Int, page: Int, pages: Int) {
        (self.tiles, self.own, self.overflow, self.page, self.pages) = (tiles, own, overflow, page, pages)
    }

    /// Whether one page is not enough.
    public var hasPages: Bool { pages > 1 }
    /// False on the first one.
    public var hasPreviousPage: Bool { page > 0 }
    /// False on the last one.
    public var hasNextPage: Bool { page < pages - 1 }
    /// The page before and the page after this one. At the first or the last page, there is none, so the number stays
    /// the same.
    public var previousPage: Int { hasPreviousPage ? page - 1 : page }
    public var nextPage: Int { hasNextPage ? page + 1 : page }
}
