import Wire

/// The distance between two people. It is reported only as one of seven buckets.
public enum Distance {
    /// The upper edges of the buckets in miles. Clients that use kilometers get the same buckets with rounded labels.
    /// A second set of edges would reveal more precise distances to a client that requests both units.
    static let miles = [2, 5, 10, 25, 50, 100, 200]
    static let kilometers = [3, 8, 16, 40, 80, 160, 320]
    static let buckets = miles.count

    /// The upper edges of the buckets in meters.
    static let edges = miles.map { Double($0) * 1609.344 }
    /// The upper edges of the buckets as squared chords.
    static let squaredEdges = edges.map { GlobePoint.squaredChord(meters: $0) }

    static func labels(_ unit: DistanceUnit) -> [Int] {
        switch unit {
        case .miles: miles
        case .kilometers: kilometers
        }
    }

    /// Returns the number of buckets that a radius covers. A radius between two edges is rounded up to the next edge.
    /// A radius beyond the last edge covers all buckets.
    static func reach(_ radius: Int, _ unit: DistanceUnit) -> Int {
        let labels = labels(unit)
        return (labels.firstIndex { $0 >= radius } ?? buckets - 1) + 1
    }

    /// Returns the bucket for the distance between two cells, or `nil` if they are farther apart than the last bucket.
    public static func bucket(_ one: Cell, _ other: Cell) -> Int? {
        let chord = one.center.squaredChord(to: other.center)
        return squaredEdges.firstIndex { chord <= $0 }
    }
}
