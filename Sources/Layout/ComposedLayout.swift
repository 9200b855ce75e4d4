/// A stream with video that may be drawn in a composed recording or a broadcast.
public struct LayoutStream: Hashable, Sendable {
    public var id: String
    /// The client connection that publishes it.
    public var connection: String
    /// The classes that the application gave it, such as `focus` or `full`.
    public var classes: [String]
    public var isScreen: Bool
    /// The width of its video divided by the height; nil while it is unknown. Only the layout of rooms depends on it.
    public var aspect: Double?

    public init(
        id: String, connection: String, classes: [String] = [], isScreen: Bool = false, aspect: Double? = nil
    ) {
        (self.id, self.connection, self.classes, self.isScreen) = (id, connection, classes, isScreen)
        self.aspect = aspect
    }
}

/// Where a stream is drawn, in whole, even pixels of the canvas.
public struct LayoutCell: Hashable, Sendable {
    public var id: String
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int
    /// How a picture of another shape is drawn in the cell.
    public var fit: LayoutFit

    public init(id: String, x: Int, y: Int, width: Int, height: Int, fit: LayoutFit = .contain) {
        (self.id, self.x, self.y, self.width, self.height, self.fit) = (id, x, y, width, height, fit)
    }
}

/// The layout of a composed recording or a broadcast, with the names of OpenTok's API.
///
/// A pure function: `cells` has no state. The layout of rooms (`RoomCanvas`) has other rules. `docs/layout.md` says why.
public struct ComposedLayout: Hashable, Sendable {
    /// A predefined layout.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case bestFit
        case pip
        case verticalPresentation
        case horizontalPresentation
    }

    /// The maximum number of streams that are drawn, as OpenTok documents.
    public static let maxDrawn = 16
    /// The sides of a canvas in pixels: those of OpenTok's resolutions are within, and products of them do not overflow.
    public static let sides = 64...4_096

    public var kind: Kind
    /// The layout while a screen is shared; nil if it stays `bestFit`.
    public var screenshareKind: Kind?
    public let width: Int
    public let height: Int

    /// - Parameters:
    ///   - screenshareKind: allowed only with `bestFit`.
    ///   - width: the canvas in pixels. Even, and in `sides`.
    /// - Returns: nil if one of these rules is broken.
    public init?(_ kind: Kind, screenshareKind: Kind? = nil, width: Int, height: Int) {
        guard Self.sides.contains(width), Self.sides.contains(height), width % 2 == 0, height % 2 == 0 else {
            return nil
        }
        guard screenshareKind == nil || kind == .bestFit else { return nil }
        (self.kind, self.screenshareKind, self.width, self.height) = (kind, screenshareKind, width, height)
    }

    private var isPortrait: Bool { height > width }

    /// Returns the streams that are drawn, in the order in which they are painted: a later one covers an earlier one.
    ///
    /// - Parameter streams: the streams that have video, in the order in which they were included.
    public func cells(_ streams: [LayoutStream]) -> [LayoutCell] {
        var ordered = Self.byPriority(streams)
        var kind = kind
        if let screenshareKind, ordered.contains(where: \.isScreen) {
            kind = screenshareKind
            if kind == .bestFit { ordered.removeAll { !$0.isScreen } } else { Self.moveFirst(&ordered) { $0.isScreen } }
        } else if let name = kind.prominentClass {
            Self.moveFirst(&ordered) { $0.classes.contains(name) }
        }
        switch kind {
        case .bestFit: return bestFit(Array(ordered.prefix(Self.maxDrawn)))
        case .pip: return pip(ordered)
        case .verticalPresentation: return vertical(Array(ordered.prefix(1 + maxInStrip(.verticalPresentation))))
        case .horizontalPresentation: return horizontal(Array(ordered.prefix(1 + maxInStrip(.horizontalPresentation))))
        }
    }

    /// Returns the streams in OpenTok's order of priority: those with classes first. Of equals, the earlier one is first.
    static func byPriority(_ streams: [LayoutStream]) -> [LayoutStream] {
        let sharing = Set(streams.filter(\.isScreen).map(\.connection))
        let withClasses = Set(streams.filter { !$0.classes.isEmpty }.map(\.connection))
        func rank(_ stream: LayoutStream) -> Int {
            let base = stream.classes.isEmpty ? 4 : 0
            if stream.isScreen { return base }
            if sharing.contains(stream.connection) { return base + 1 }
            return base + (stream.classes.isEmpty && withClasses.contains(stream.connection) ? 2 : 3)
        }
        return streams.enumerated().sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }.map(
            \.element)
    }

    private static func moveFirst(_ streams: inout [LayoutStream], _ matches: (LayoutStream) -> Bool) {
        guard let index = streams.firstIndex(where: matches) else { return }
        streams.insert(streams.remove(at: index), at: 0)
    }

    /// The streams beside the large one. OpenTok's tables have these numbers for its resolutions.
    private func maxInStrip(_ kind: Kind) -> Int {
        let isFullHD = max(width, height) >= 1_920
        if kind == .verticalPresentation, isPortrait { return isFullHD ? 10 : 8 }
        if kind == .horizontalPresentation, isPortrait { return 3 }
        return isFullHD ? 7 : 5
    }

    private func bestFit(_ streams: [LayoutStream]) -> [LayoutCell] {
        guard !streams.isEmpty else { return [] }
        let (columns, rows) = grid(streams.count)
        return streams.enumerated().map { index, stream in
            let row = index / columns
            let inRow = min(columns, streams.count - row * columns)
            // A last row that is not full is centered.
            let indent = Self.even((width - Self.edge(inRow, of: columns, width)) / 2)
            let left = Self.edge(index % columns, of: columns, width)
            let right = Self.edge(index % columns + 1, of: columns, width)
            return cell(
                stream, indent + left, Self.edge(row, of: rows, height), right - left,
                Self.edge(row + 1, of: rows, height) - Self.edge(row, of: rows, height))
        }
    }

    private func grid(_ count: Int) -> (columns: Int, rows: Int) {
        let columns = count <= 1 ? 1 : count <= 4 ? 2 : count <= 9 ? 3 : 4
        let rows = (count + columns - 1) / columns
        // Exchanging columns and rows matters for two, five, six, and ten to twelve streams.
        return isPortrait ? (rows, columns) : (columns, rows)
    }

    /// The large stream, and one in the corner above it.
    private func pip(_ streams: [LayoutStream]) -> [LayoutCell] {
        streams.prefix(2).enumerated().map { index, stream in
            index == 0
                ? cell(stream, 0, 0, width, height)
                : cell(
                    stream, Self.even(width * 7 / 10), Self.even(height / 10), Self.even(width / 5),
                    Self.even(height / 5))
        }
    }

    /// The large stream on the right, and a strip on the left.
    private func vertical(_ streams: [LayoutStream]) -> [LayoutCell] {
        let (strip, most) = (Self.even(width / 5), maxInStrip(.verticalPresentation))
        return streams.enumerated().map { index, stream in
            guard index > 0 else { return cell(stream, strip, 0, width - strip, height) }
            let (top, bottom) = (Self.edge(index - 1, of: most, height), Self.edge(index, of: most, height))
            return cell(stream, 0, top, strip, bottom - top)
        }
    }

    /// The large stream above, and a strip below.
    private func horizontal(_ streams: [LayoutStream]) -> [LayoutCell] {
        let (top, most) = (Self.even(height * 4 / 5), maxInStrip(.horizontalPresentation))
        return streams.enumerated().map { index, stream in
            guard index > 0 else { return cell(stream, 0, 0, width, top) }
            let (left, right) = (Self.edge(index - 1, of: most, width), Self.edge(index, of: most, width))
            return cell(stream, left, top, right - left, height - top)
        }
    }

    private func cell(_ stream: LayoutStream, _ x: Int, _ y: Int, _ width: Int, _ height: Int) -> LayoutCell {
        LayoutCell(id: stream.id, x: x, y: y, width: width, height: height)
    }

    /// Encoders need even positions and sizes, because the color of four pixels is stored once.
    private static func even(_ value: Int) -> Int { value / 2 * 2 }

    /// The edge of a column or row. Neighbors share it, so there are no seams.
    private static func edge(_ index: Int, of count: Int, _ length: Int) -> Int { 2 * (index * length / (2 * count)) }
}

extension ComposedLayout.Kind {
    /// The class of the stream that is large; nil if all are equal. If several have it, the first by priority is large, and if
    /// none has it, the first stream.
    var prominentClass: String? {
        switch self {
        case .bestFit: nil
        case .pip: "full"
        case .verticalPresentation, .horizontalPresentation: "focus"
        }
    }
}
