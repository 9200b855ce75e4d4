import Wire

/// How far apart two people are, as either is told: one of seven buckets, and nothing finer.
public enum Distance {
    /// The mean of the globe's radii (IUGG), in metres.
    static let earthRadius = 6_371_008.8
    /// From pole to pole; nothing is further away than this.
    static let halfway = earthRadius * .pi

    /// The upper edges as people read them. Whoever asks in kilometres is told of the same buckets: two sets of edges, each
    /// cutting the other's, would tell more than either.
    static let miles = [2, 5, 10, 25, 50, 100, 200]
    static let kilometres = [3, 8, 16, 40, 80, 160, 320]
    static let buckets = miles.count

    /// The upper edges in metres, and as squared chords.
    static let edges = miles.map { Double($0) * 1609.344 }
    static let squaredEdges = edges.map { GlobePoint.squaredChord(metres: $0) }

    static func labels(_ unit: DistanceUnit) -> [Int] {
        switch unit {
        case .miles: miles
        case .kilometres: kilometres
        }
    }

    /// How many buckets a radius reaches: what is not an edge is rounded up to one, and nothing reaches past the last.
    static func reach(_ radius: Int, _ unit: DistanceUnit) -> Int {
        let labels = labels(unit)
        return (labels.firstIndex { $0 >= radius } ?? buckets - 1) + 1
    }

    /// The bucket of two cells; `nil` beyond the last.
    public static func bucket(_ one: Cell, _ other: Cell) -> Int? {
        let chord = one.centre.squaredChord(to: other.centre)
        return squaredEdges.firstIndex { chord <= $0 }
    }
}
