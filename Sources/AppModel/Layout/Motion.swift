/// How pictures appear and react. The numbers are those of PerchRTC.
public enum Motion {
    /// What a change on the screen looks like. Durations are in seconds.
    public enum Change: Equatable, Sendable {
        /// Without a bounce it does not swing back.
        case spring(duration: Double, bounce: Double, velocity: Double)
        case crossFade(duration: Double)
    }

    /// A growth of the own picture and the way back, as an answer to a tap.
    public struct Pop: Equatable, Sendable {
        public var scale: Double
        public var growing: Double
        public var shrinking: Double
    }

    /// A tile appears with its first frame, and moves when the layout changes.
    public static func tile(reduceMotion: Bool) -> Change {
        reduceMotion ? .crossFade(duration: 0.3) : .spring(duration: 0.3, bounce: 0.15, velocity: 0.25)
    }

    /// Returns how the own picture pops when it is tapped; nil if the person wants less motion.
    public static func pop(reduceMotion: Bool) -> Pop? {
        reduceMotion ? nil : Pop(scale: 1.05, growing: 0.14, shrinking: 0.16)
    }

    /// The opacity of the overlay that says that the own microphone is muted.
    public static let mutedOverlay = 0.60
}

/// Which tiles are shown, and how each fills its rectangle: a tile appears with its first frame, and a double tap changes
/// how it is cropped.
public struct TileStates: Equatable, Sendable {
    private var shown: Set<String> = []
    private var toggled: Set<String> = []

    public init() {}

    /// The first frame of a stream arrived.
    public mutating func firstFrame(of id: String) { shown.insert(id) }

    /// The person tapped a tile twice.
    public mutating func doubleTap(on id: String) {
        if toggled.remove(id) == nil { toggled.insert(id) }
    }

    /// Forgets streams that are gone, so that the state does not grow, and which pictures were shown before they were turned off.
    public mutating func keep(only ids: some Sequence<String>, shown seen: some Sequence<String>) {
        shown.formIntersection(seen)
        toggled.formIntersection(ids)
    }

    public func isShown(_ id: String) -> Bool { shown.contains(id) }

    /// Returns how a placed tile fills its rectangle: as the layout says, or the other way after a double tap.
    public func fit(of tile: PlacedTile) -> Fit { toggled.contains(tile.id) ? tile.fit.other : tile.fit }
}
