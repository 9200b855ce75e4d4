/// The animations of tiles and of the self-view. The constants are those of PerchRTC, a discontinued iPhone app.
public enum Motion {
    /// An animation of a change on the screen. Durations are in seconds.
    public enum Change: Equatable, Sendable {
        /// A spring. With a bounce of 0, it does not overshoot.
        case spring(duration: Double, bounce: Double, velocity: Double)
        case crossFade(duration: Double)
    }

    /// A short growth of the self-view that confirms a tap. `growing` and `shrinking` are durations in seconds.
    public struct Pop: Equatable, Sendable {
        public var scale: Double
        public var growing: Double
        public var shrinking: Double
    }

    /// Returns the animation of a tile that appears with its first frame, or moves when the layout changes.
    public static func tile(reduceMotion: Bool) -> Change {
        reduceMotion ? .crossFade(duration: 0.3) : .spring(duration: 0.3, bounce: 0.15, velocity: 0.25)
    }

    /// Returns the animation of the self-view after a tap; nil if the user prefers reduced motion.
    public static func pop(reduceMotion: Bool) -> Pop? {
        reduceMotion ? nil : Pop(scale: 1.05, growing: 0.14, shrinking: 0.16)
    }

    /// The opacity of the overlay shown while the local microphone is muted.
    public static let mutedOverlay = 0.60
}

/// Tracks which tiles are shown and how each fills its rectangle: a tile appears with its first frame, and a double tap
/// toggles its cropping.
public struct TileStates: Equatable, Sendable {
    private var shown: Set<String> = []
    private var toggled: Set<String> = []

    public init() {}

    /// Records the first frame of a tile's video.
    public mutating func firstFrame(of id: String) { shown.insert(id) }

    /// Toggles the cropping of a tile after a double tap.
    public mutating func doubleTap(on id: String) {
        if toggled.remove(id) == nil { toggled.insert(id) }
    }

    /// Drops the state of tiles that are not in `ids`, so that the state does not grow. Hides tiles that are not in
    /// `seen`, because their video was turned off, until their next first frame.
    public mutating func keep(only ids: some Sequence<String>, shown seen: some Sequence<String>) {
        shown.formIntersection(seen)
        toggled.formIntersection(ids)
    }

    public func isShown(_ id: String) -> Bool { shown.contains(id) }

    /// Returns how a placed tile fills its rectangle: as laid out, or the opposite after a double tap.
    public func fit(of tile: PlacedTile) -> Fit { toggled.contains(tile.id) ? tile.fit.other : tile.fit }
}
