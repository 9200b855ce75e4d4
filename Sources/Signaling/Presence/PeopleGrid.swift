import Wire

/// The people in each cell. Finds the occupied cells around a location.
///
/// Cells are grouped in blocks of about 16 by 16. Each block has a contiguous list of its occupied cells. A search counts whole
/// blocks where possible, and looks at single cells only in blocks that the edge of a bucket crosses. The cost of adding or
/// removing a person does not depend on the number of people.
struct PeopleGrid: Sendable {
    /// An occupied cell.
    struct Square: Sendable {
        var cell: UInt32
        var center: GlobePoint
        var count: Int32
        /// The number of the first person in the cell. `links` leads from each person to the next.
        var first: Int32
    }

    /// A block of cells, with a list of its occupied cells.
    struct Block: Sendable {
        var place: Int32
        var center: GlobePoint
        var count: Int32 = 0
        var squares: ContiguousArray<Square> = []
    }

    /// The data that a search needs per person. It is small so that much of it stays in the processor's cache, because
    /// it is accessed in random order.
    struct Link: Sendable {
        var order: UInt64 = 0
        var next: Int32 = none
        var previous: Int32 = none
        var block: Int32 = none
        var cell: UInt32 = 0
    }

    static let none: Int32 = -1
    /// Maximum distance of a cell's center from its block's center, in meters.
    static let blockRadius = 30_000.0

    /// The number of the block at each position of the grid; `none` if no one is in that block. Allocated when the
    /// first person is added.
    private var places: ContiguousArray<Int32> = []
    private(set) var blocks = Numbered<Block>()
    private(set) var links: ContiguousArray<Link> = []
    private(set) var count = 0

    // MARK: Adding and removing

    mutating func insert(_ number: Int32, _ order: UInt64, at cell: Cell) {
        if places.isEmpty { places = ContiguousArray(repeating: Self.none, count: BlockRow.places) }
        while links.count <= Int(number) { links.append(Link()) }
        let block = block(of: cell)
        let index = blocks[block].squares.firstIndex { $0.cell == cell.number }
        let square = index ?? blocks[block].squares.count
        if index == nil {
            blocks[block].squares.append(Square(cell: cell.number, center: cell.center, count: 0, first: Self.none))
        }
        let next = blocks[block].squares[square].first
        links[Int(number)] = Link(order: order, next: next, block: block, cell: cell.number)
        if next != Self.none { links[Int(next)].previous = number }
        blocks[block].squares[square].first = number
        blocks[block].squares[square].count += 1
        blocks[block].count += 1
        count += 1
    }

    mutating func remove(_ number: Int32) {
        let link = links[Int(number)]
        guard link.block != Self.none,
            let square = blocks[link.block].squares.firstIndex(where: { $0.cell == link.cell })
        else { return }
        links[Int(number)] = Link()
        if link.next != Self.none { links[Int(link.next)].previous = link.previous }
        if link.previous != Self.none {
            links[Int(link.previous)].next = link.next
        } else {
            blocks[link.block].squares[square].first = link.next
        }
        count -= 1
        blocks[link.block].count -= 1
        blocks[link.block].squares[square].count -= 1
        if blocks[link.block].squares[square].count == 0 { removeSquare(square, of: link.block) }
    }

    private mutating func removeSquare(_ square: Int, of block: Int32) {
        let last = blocks[block].squares.removeLast()
        if square < blocks[block].squares.count { blocks[block].squares[square] = last }
        guard blocks[block].squares.isEmpty else { return }
        places[Int(blocks[block].place)] = Self.none
        blocks[block].squares = []
        blocks.free(block)
    }

    private mutating func block(of cell: Cell) -> Int32 {
        let (row, column) = BlockRow.place(of: cell)
        let place = row.start + column
        if places[place] != Self.none { return places[place] }
        let number = blocks.insert(Block(place: Int32(place), center: row.center(ofColumn: column)))
        places[place] = number
        return number
    }

    // MARK: Searching

    /// The blocks and cells in a ring around a location, and the number of people in them.
    struct Census {
        var count = 0
        /// The occupied blocks and cells. If `square` is `none`, the whole block is meant.
        var pieces: ContiguousArray<(block: Int32, square: Int32)> = []
    }

    /// Counts the people in this distance bucket around a cell, without visiting each person.
    func census(of bucket: Int, around cell: Cell, _ center: GlobePoint) -> Census {
        var census = Census()
        guard count > 0 else { return census }
        let ring = Ring.all[bucket]
        BlockRow.visit(within: ring.reach, of: cell) { row, columns in
            for column in columns {
                let number = places[row.start + (column < row.columns ? column : column - row.columns)]
                if number != Self.none { take(number, of: ring, around: center, into: &census) }
            }
        }
        return census
    }

    private func take(_ number: Int32, of ring: Ring, around center: GlobePoint, into census: inout Census) {
        let chord = blocks[number].center.squaredChord(to: center)
        guard chord > ring.outsideLow, chord <= ring.outsideHigh else { return }
        if chord > ring.insideLow, chord <= ring.insideHigh {
            census.count += Int(blocks[number].count)
            return census.pieces.append((number, Self.none))
        }
        blocks[number].squares.withUnsafeBufferPointer { squares in
            for index in squares.indices where ring.holds(squares[index].center.squaredChord(to: center)) {
                census.count += Int(squares[index].count)
                census.pieces.append((number, Int32(index)))
            }
        }
    }

    /// The inner and outer radius of one distance bucket as squared chords (`low`, `high`). A block is completely in
    /// the ring if its center is between `insideLow` and `insideHigh`. It has no cell in the ring if its center is not
    /// between `outsideLow` and `outsideHigh`.
    struct Ring: Sendable {
        var low: Int64
        var high: Int64
        var insideLow: Int64
        var insideHigh: Int64
        var outsideLow: Int64
        var outsideHigh: Int64
        /// The angle in radians, seen from the earth's center, between the middle of the ring and the center of the
        /// farthest block that can be in it.
        var reach: Double

        static let all = (0..<Distance.buckets).map { Ring(bucket: $0) }

        init(bucket: Int) {
            let (inner, outer) = (bucket == 0 ? 0 : Distance.edges[bucket - 1], Distance.edges[bucket])
            let radius = PeopleGrid.blockRadius
            // The first bucket includes the center's own cell, at distance zero.
            low = bucket == 0 ? -1 : Distance.squaredEdges[bucket - 1]
            high = Distance.squaredEdges[bucket]
            insideLow = bucket == 0 ? -1 : GlobePoint.squaredChord(meters: inner + radius)
            insideHigh = outer > radius ? GlobePoint.squaredChord(meters: outer - radius) : -1
            outsideLow = inner > radius ? GlobePoint.squaredChord(meters: inner - radius) : -1
            outsideHigh = GlobePoint.squaredChord(meters: outer + radius)
            reach = (outer + radius) / GlobePoint.earthRadius
        }

        @inline(__always) func holds(_ chord: Int64) -> Bool { chord > low && chord <= high }
    }
}

/// A row of blocks at the same latitude.
struct BlockRow: Sendable {
    /// The number of cell rows in a row of blocks.
    static let height = 16
    static let count = Int(Cell.rows) / height
    static let all: ContiguousArray<BlockRow> = {
        var rows: ContiguousArray<BlockRow> = []
        var start = 0
        for index in 0..<count {
            let row = BlockRow(index: index, start: start)
            rows.append(row)
            start += row.columns
        }
        return rows
    }()
    static let places = all.last.map { $0.start + $0.columns } ?? 0

    var columns: Int
    /// The position of the row's first block in `PeopleGrid.places`.
    var start: Int
    var latitude: Double
    var sine: Double
    var cosine: Double

    private init(index: Int, start: Int) {
        latitude = ((Double(index) + 0.5) / Double(Self.count) - 0.5) * .pi
        (sine, cosine) = (Trigonometry.sin(latitude), Trigonometry.cos(latitude))
        columns = max(1, Int((2 * Double(Self.count) * cosine).rounded()))
        self.start = start
    }

    func center(ofColumn column: Int) -> GlobePoint {
        GlobePoint(latitude: latitude, turn: (Double(column) + 0.5) / Double(columns))
    }

    static func place(of cell: Cell) -> (row: BlockRow, column: Int) {
        let row = all[Int(cell.row) / height]
        return (row, min(row.columns - 1, Int(cell.turn * Double(row.columns))))
    }

    /// Visits all blocks whose center is within this angle of a cell's center. Calls the visitor with a range of
    /// columns for each row. Columns beyond the row's last one are past the antimeridian: subtract the row's number of
    /// columns from them.
    static func visit(within angle: Double, of cell: Cell, _ visit: (BlockRow, Range<Int>) -> Void) {
        let (latitude, turn) = (cell.latitude, cell.turn)
        let (sine, cosine, reach) = (
            Trigonometry.sin(latitude), Trigonometry.cos(latitude), Trigonometry.cos(angle)
        )
        let (middle, span) = ((latitude / .pi + 0.5) * Double(count) - 0.5, angle / .pi * Double(count))
        let first = max(0, Int((middle - span).rounded(.up)))
        let last = min(count - 1, Int((middle + span).rounded(.down)))
        guard first <= last else { return }
        for index in first...last {
            let row = all[index]
            // Compute the maximum difference in longitude with the spherical law of cosines.
            let limit = (reach - sine * row.sine) / (cosine * row.cosine)
            if limit >= 1 { continue }
            let half = limit <= -1 ? 0.5 : Trigonometry.acos(limit) / (2 * .pi)
            let columns = Double(row.columns)
            let from = ((turn - half) * columns - 0.5).rounded(.up)
            let to = ((turn + half) * columns - 0.5).rounded(.down)
            guard from <= to else { continue }
            let start = Int(from) < 0 ? Int(from) + row.columns : Int(from)
            visit(row, start..<start + min(row.columns, Int(to - from) + 1))
        }
    }
}
