import Wire

extension Cell {
    /// The number of rows from the south pole to the north pole. Each is 2.0015 km high.
    public static let rows: Int32 = 10_000

    /// Returns the cell of a point in decimal degrees, or `nil` if the point is not on the globe.
    ///
    ///     Cell(latitude: 52.52, longitude: 13.405)
    public init?(latitude: Double, longitude: Double) {
        guard latitude.isFinite, longitude.isFinite, abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
        let row = min(Self.rows - 1, Int32((latitude + 90) / 180 * Double(Self.rows)))
        let columns = Self.columns(inRow: row)
        // The meridians of 180° and -180° are the same.
        self.init(row: row, column: Int32((longitude + 180) / 360 * Double(columns)) % columns)
    }

    /// Returns the number of columns in a row: 3 at the poles, 20,000 at the equator.
    static func columns(inRow row: Int32) -> Int32 {
        max(1, Int32((2 * Double(rows) * Trigonometry.cos(latitude(ofRow: row))).rounded()))
    }

    /// Returns the latitude of the row's middle, in radians.
    static func latitude(ofRow row: Int32) -> Double { ((Double(row) + 0.5) / Double(rows) - 0.5) * .pi }

    /// The latitude of the center, in radians.
    var latitude: Double { Self.latitude(ofRow: row) }

    /// The longitude of the center, as a fraction of a turn eastward from the antimeridian: at least 0, below 1.
    var turn: Double { (Double(column) + 0.5) / Double(Self.columns(inRow: row)) }

    /// A 32-bit number that identifies the cell. 16 bits are enough for the column, because no row has more than 65,535.
    var number: UInt32 { UInt32(row) << 16 | UInt32(column) }

    var center: GlobePoint { GlobePoint(latitude: latitude, turn: turn) }
}

extension NearbyVerb.Move {
    /// The cell that contains this location, or `nil` if the location or its accuracy is invalid.
    var cell: Cell? {
        guard let latitude = Self.number(latitude), let longitude = Self.number(longitude) else { return nil }
        // Only validate the accuracy. It is not used, because a cell is coarser.
        if let accuracy, accuracy != .null {
            guard let meters = Self.number(accuracy), meters.isFinite, meters >= 0 else { return nil }
        }
        return Cell(latitude: latitude, longitude: longitude)
    }

    private static func number(_ value: JSONValue?) -> Double? {
        switch value {
        case .integer(let integer): Double(integer)
        case .number(let number): number
        default: nil
        }
    }
}

/// A point on the globe, with integer coordinates in steps of about 6 mm. Differences of coordinates are exact, and their
/// squares fit in 64 bits.
struct GlobePoint: Hashable, Sendable {
    private static let steps = Double(1 << 30)
    /// The earth's mean radius (IUGG), in meters.
    static let earthRadius = 6_371_008.8
    /// Half the earth's circumference, which is the largest possible distance between two points, in meters.
    private static let halfway = earthRadius * .pi

    var x: Int32
    var y: Int32
    var z: Int32

    /// - `latitude` is in radians. `turn` is the longitude as a fraction of a turn eastward from the antimeridian.
    init(latitude: Double, turn: Double) {
        let angle = (turn - 0.5) * 2 * .pi
        let radius = Trigonometry.cos(latitude) * Self.steps
        x = Int32((radius * Trigonometry.cos(angle)).rounded())
        y = Int32((radius * Trigonometry.sin(angle)).rounded())
        z = Int32((Trigonometry.sin(latitude) * Self.steps).rounded())
    }

    /// Returns the square of the straight-line distance (chord) between two points, in squared steps. At most 2^62.
    @inline(__always) func squaredChord(to other: GlobePoint) -> Int64 {
        let (x, y, z) = (Int64(x) - Int64(other.x), Int64(y) - Int64(other.y), Int64(z) - Int64(other.z))
        return x &* x &+ y &* y &+ z &* z
    }

    /// Returns the squared length of the straight line between two points that are this many meters apart along the
    /// ground, in squared steps.
    static func squaredChord(meters: Double) -> Int64 {
        guard meters > 0 else { return 0 }
        let chord = 2 * Trigonometry.sin(min(meters, halfway) / (2 * earthRadius)) * steps
        return Int64((chord * chord).rounded(.up))
    }

    /// Returns the distance along the ground, in meters.
    func distance(to other: GlobePoint) -> Double {
        let chord = Double(squaredChord(to: other)) / (Self.steps * Self.steps)
        return Self.earthRadius * Trigonometry.acos(1 - chord / 2)
    }
}
