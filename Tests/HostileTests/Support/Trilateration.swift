import Foundation

/// A point on the globe, in degrees.
struct GlobePlace: Hashable, Sendable {
    static let radius = 6_371_008.8

    var latitude: Double
    var longitude: Double

    /// Returns the distance along the ground in meters (haversine formula).
    func distance(to other: GlobePlace) -> Double {
        let (south, north) = (latitude * .pi / 180, other.latitude * .pi / 180)
        let (half, across) = (sin((north - south) / 2), sin((other.longitude - longitude) * .pi / 360))
        return 2 * Self.radius * asin(min(1, (half * half + cos(south) * cos(north) * across * across).squareRoot()))
    }

    /// Returns the point at this distance in meters, in a direction in radians from north.
    func going(_ meters: Double, towards bearing: Double) -> GlobePlace {
        let (angle, from) = (meters / Self.radius, latitude * .pi / 180)
        let to = asin(sin(from) * cos(angle) + cos(from) * sin(angle) * cos(bearing))
        let turn = atan2(sin(bearing) * sin(angle) * cos(from), cos(angle) - sin(from) * sin(to))
        return GlobePlace(latitude: to * 180 / .pi, longitude: longitude + turn * 180 / .pi)
    }
}

/// The cell of about 2 km from protocol §11. It is computed from the documentation, as an attacker would, and not with
/// the server's code.
struct GlobeCell: Hashable, Sendable {
    private static let rows = 10_000.0

    private let row: Double
    private let column: Double
    private let columns: Double

    init(_ place: GlobePlace) {
        row = min(Self.rows - 1, ((place.latitude + 90) / 180 * Self.rows).rounded(.down))
        let middle = ((row + 0.5) / Self.rows - 0.5) * .pi
        columns = max(1, (2 * Self.rows * cos(middle)).rounded())
        column = ((place.longitude + 180) / 360 * columns).rounded(.down).truncatingRemainder(dividingBy: columns)
    }

    /// Returns a point in the cell. The arguments are fractions of the cell's height and width, from its southwestern
    /// corner.
    func place(_ north: Double, _ east: Double) -> GlobePlace {
        GlobePlace(
            latitude: (row + north) / Self.rows * 180 - 90, longitude: (column + east) / columns * 360 - 180)
    }

    var center: GlobePlace { place(0.5, 0.5) }
    /// Area in square meters.
    var area: Double {
        place(0, 0.5).distance(to: place(1, 0.5)) * place(0.5, 0).distance(to: place(0.5, 1))
    }
}

/// The distance bucket of a person, as seen from one fake location.
struct Sighting: Sendable {
    private static let miles = [0, 2, 5, 10, 25, 50, 100, 200]
    /// The maximum difference in meters between this distance computation and the server's.
    private static let slack = 1.0
    static let edges = miles.map { Double($0) * 1609.344 }

    var from: GlobeCell
    /// The received bucket; nil if the person is not listed within 200 miles.
    var label: Int?

    /// Returns whether a person in that cell would be shown in this bucket.
    func allows(_ cell: GlobeCell) -> Bool {
        let distance = from.center.distance(to: cell.center)
        guard let label else { return distance > (Self.edges.last ?? 0) - Self.slack }
        guard let index = Self.miles.firstIndex(of: label), index > 0 else { return false }
        return distance > (index == 1 ? -1 : Self.edges[index - 1] - Self.slack)
            && distance <= Self.edges[index] + Self.slack
    }
}

/// The region where a person may be, according to the buckets seen from many fake locations.
struct Region: Sendable {
    /// The radius in meters of the search around the known approximate location.
    private static let reach = 6000.0
    private static let step = 100.0

    private(set) var places: [GlobePlace] = []

    init(_ sightings: [Sighting], around center: GlobePlace) {
        var verdicts: [GlobeCell: Bool] = [:]
        for north in stride(from: -Self.reach, through: Self.reach, by: Self.step) {
            for east in stride(from: -Self.reach, through: Self.reach, by: Self.step) {
                let place = center.going(north, towards: 0).going(east, towards: .pi / 2)
                let cell = GlobeCell(place)
                let isPossible = verdicts[cell] ?? sightings.allSatisfy { $0.allows(cell) }
                verdicts[cell] = isPossible
                if isPossible { places.append(place) }
            }
        }
    }

    /// Area in square meters.
    var area: Double { Double(places.count) * Self.step * Self.step }
}
