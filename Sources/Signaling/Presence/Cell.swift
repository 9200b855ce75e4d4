import Wire

/// A piece of the globe of about 2 km by 2 km: all that is ever known of where somebody is.
///
/// Bands of equal latitude, each cut into as many columns as make the cells about square. What anybody is told is computed
/// from the centres of cells, so that two places in one cell cannot be told apart, by whomever and however often.
public struct Cell: Hashable, Sendable {
    /// From the south pole to the north pole, 2.0015 km each.
    public static let rows: Int32 = 10_000

    public var row: Int32
    /// From the antimeridian eastwards.
    public var column: Int32

    init(row: Int32, column: Int32) { (self.row, self.column) = (row, column) }

    /// Of a point in decimal degrees; `nil` for what is not on the globe.
    ///
    ///     Cell(latitude: 52.52, longitude: 13.405)
    public init?(latitude: Double, longitude: Double) {
        guard latitude.isFinite, longitude.isFinite, abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
        row = min(Self.rows - 1, Int32((latitude + 90) / 180 * Double(Self.rows)))
        let columns = Self.columns(inRow: row)
        // The two meridians of 180 degrees are one.
        column = Int32((longitude + 180) / 360 * Double(columns)) % columns
    }

    /// Around the globe, at this row's middle: 3 at the poles, 20 000 at the equator.
    static func columns(inRow row: Int32) -> Int32 {
        max(1, Int32((2 * Double(rows) * Trigonometry.cos(latitude(ofRow: row))).rounded()))
    }

    /// Of the row's middle, in radians.
    static func latitude(ofRow row: Int32) -> Double { ((Double(row) + 0.5) / Double(rows) - 0.5) * .pi }

    /// Of the centre, in radians.
    var latitude: Double { Self.latitude(ofRow: row) }

    /// Of the centre, in turns from the antimeridian eastwards: from 0, below 1.
    var turn: Double { (Double(column) + 0.5) / Double(Self.columns(inRow: row)) }

    /// Names the cell in 32 bits: no row has more than 65 535 columns.
    var number: UInt32 { UInt32(row) << 16 | UInt32(column) }

    var centre: GlobePoint { GlobePoint(latitude: latitude, turn: turn) }
}

extension NearbyVerb.Move {
    /// Where this is, as far as anybody will ever know; `nil` unless it is two numbers on the globe.
    var cell: Cell? {
        guard let latitude = Self.number(latitude), let longitude = Self.number(longitude) else { return nil }
        // How exact a device believes it is changes nothing: a cell is coarser. But a lie about it is no number either.
        if let accuracy, accuracy != .null {
            guard let metres = Self.number(accuracy), metres.isFinite, metres >= 0 else { return nil }
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

/// A point of the unit sphere in whole steps of 6 mm: differences are exact, and small enough to be squared.
struct GlobePoint: Hashable, Sendable {
    private static let steps = Double(1 << 30)

    var x: Int32
    var y: Int32
    var z: Int32

    /// - `latitude` in radians, `turn` in turns.
    init(latitude: Double, turn: Double) {
        let angle = (turn - 0.5) * 2 * .pi
        let radius = Trigonometry.cos(latitude) * Self.steps
        x = Int32((radius * Trigonometry.cos(angle)).rounded())
        y = Int32((radius * Trigonometry.sin(angle)).rounded())
        z = Int32((Trigonometry.sin(latitude) * Self.steps).rounded())
    }

    /// The square of the straight line between two, in steps; at most 2^62.
    @inline(__always) func squaredChord(to other: GlobePoint) -> Int64 {
        let (x, y, z) = (Int64(x) - Int64(other.x), Int64(y) - Int64(other.y), Int64(z) - Int64(other.z))
        return x &* x &+ y &* y &+ z &* z
    }

    /// The same for two points so many metres apart along the ground.
    static func squaredChord(metres: Double) -> Int64 {
        guard metres > 0 else { return 0 }
        let chord = 2 * Trigonometry.sin(min(metres, Distance.halfway) / (2 * Distance.earthRadius)) * steps
        return Int64((chord * chord).rounded(.up))
    }

    /// Metres along the ground.
    func distance(to other: GlobePoint) -> Double {
        let chord = Double(squaredChord(to: other)) / (Self.steps * Self.steps)
        return Distance.earthRadius * Trigonometry.acos(1 - chord / 2)
    }
}
