import Composing
import Layout
import LiveComposing
import MediaFiles

/// The streams of a broadcast, and where each of them is drawn.
///
/// A pure value. Its owner numbers the streams, reports changes, and sends what `change` returns to the compositor.
public struct BroadcastScene: Sendable {
    /// What the layout needs to know about a stream.
    public struct Stream: Hashable, Sendable {
        /// The client connection that publishes it.
        public var connection: String
        /// The classes that the application gave it.
        public var classes: [String]
        /// Whether it shows a screen instead of a camera.
        public var isScreen: Bool
        /// Whether its video is drawn: it has video, which is neither left out nor muted.
        public var hasVideo: Bool

        public init(connection: String, classes: [String] = [], isScreen: Bool = false, hasVideo: Bool = true) {
            (self.connection, self.classes) = (connection, classes)
            (self.isScreen, self.hasVideo) = (isScreen, hasVideo)
        }
    }

    private let canvas: ArchiveCanvas
    private var drawn: DrawnLayout?
    private var streams: [UInt32: Stream] = [:]
    /// The numbers of the streams in the order in which they were added.
    private var order: [UInt32] = []
    private var sent = CompositorLayout()

    /// - Parameters:
    ///   - layout: nothing is drawn while this is not supported (`ArchiveLayout.isSupported`).
    ///   - canvas: the size of the broadcast.
    public init(_ layout: ArchiveLayout, on canvas: ArchiveCanvas) {
        self.canvas = canvas
        drawn = DrawnLayout(layout, on: canvas)
    }

    /// Continues with another layout.
    public mutating func set(_ layout: ArchiveLayout) { drawn = DrawnLayout(layout, on: canvas) }

    /// Adds a stream, or replaces what is known about it.
    public mutating func add(_ number: UInt32, _ stream: Stream) {
        if streams.updateValue(stream, forKey: number) == nil { order.append(number) }
    }

    /// Changes a stream. Does nothing if it was not added.
    public mutating func update(_ number: UInt32, _ change: (inout Stream) -> Void) {
        guard var stream = streams[number] else { return }
        change(&stream)
        streams[number] = stream
    }

    /// Removes a stream. Does nothing if it was not added.
    public mutating func remove(_ number: UInt32) {
        guard streams.removeValue(forKey: number) != nil else { return }
        order.removeAll { $0 == number }
    }

    /// Returns the compositor's layout if it has changed since the last call; otherwise nil. It is empty at first.
    public mutating func change() -> CompositorLayout? {
        let visible = order.compactMap { number -> LayoutStream? in
            guard let stream = streams[number], stream.hasVideo else { return nil }
            return LayoutStream(
                id: String(number), connection: stream.connection, classes: stream.classes, isScreen: stream.isScreen)
        }
        let cells = (drawn?.cells(visible) ?? []).compactMap { cell in
            UInt32(cell.id).map { number in
                CompositorCell(
                    stream: number, x: cell.x, y: cell.y, width: cell.width, height: cell.height, fit: cell.fit)
            }
        }
        let layout = CompositorLayout(cells)
        guard layout != sent else { return nil }
        sent = layout
        return layout
    }
}
