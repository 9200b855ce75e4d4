import Wire

/// People near this person. The server keeps only a coarse location of each person, and rounds all distances up to one
/// of a few steps.
///
/// ```swift
/// try await client.nearby.move(to: .init(latitude: 52.52, longitude: 13.41))
/// for await page in try await client.nearby.watch(unit: .kilometers, radius: 40) {
///     print(page.people.map(\.name))
/// }
/// ```
public actor Nearby {
    /// A unit of distances.
    public enum Unit: String, Hashable, Sendable, CaseIterable {
        /// Statute miles.
        case miles = "mi"
        /// Units of 1000 m.
        case kilometers = "km"
    }

    /// A person in the list of people nearby.
    public struct Neighbor: Hashable, Sendable, Identifiable {
        /// The person's id, for example to call them.
        public let id: PersonID
        /// The name that the person chose for others to see.
        public let name: String
        /// The upper limit of the range that contains the person's distance. The page states the unit.
        public let distance: Int
        /// Whether the person is in a chat or call, or has do-not-disturb on.
        public let isBusy: Bool

        init(_ row: NearbyRow) { (id, name, distance, isBusy) = (row.person, row.name, row.distance, row.busy) }
    }

    /// A page of the list of people nearby.
    public struct Page: Hashable, Sendable {
        /// The people on this page, nearest first.
        public let people: [Neighbor]
        /// The unit of the distances.
        public let unit: Unit
        /// The radius of the list in `unit`: the requested one, rounded up to one of the server's steps.
        public let radius: Int
        /// The value of `after` for the next page; nil on the last page.
        public let next: String?

        init(_ rows: NearbyRows) {
            (people, radius, next) = (rows.people.map(Neighbor.init), rows.radius, rows.next)
            unit = Unit(rawValue: rows.unit.rawValue) ?? .miles
        }
    }

    /// A location.
    public struct Position: Hashable, Sendable {
        /// Degrees north, -90 to 90.
        public var latitude: Double
        /// Degrees east, -180 to 180.
        public var longitude: Double
        /// Creates a location.
        public init(latitude: Double, longitude: Double) { (self.latitude, self.longitude) = (latitude, longitude) }
    }

    private let feature: FeatureCore<NearbyMachine>
    private let pages: EventSource<Page>
    private let source: EventSource<Event>

    /// An event about this person's location, or about the watched list.
    public enum Event: Hashable, Sendable {
        /// The location was deleted on another device, so this person is no longer listed.
        case positionForgotten
        /// After the connection was replaced, the SDK sent the location and the request for the list again, and the
        /// server rejected one of them.
        case failed(ConfabError)
    }

    init(_ desk: FeatureDesk) {
        let pages = EventSource<Page> { present, page in present = [page] }
        let source = EventSource<Event>()
        feature = FeatureCore(
            NearbyMachine(), desk,
            tell: { news in
                switch news {
                case .page(let rows): pages.send(Page(rows))
                case .positionForgotten: source.send(.positionForgotten)
                case .failed(let error): source.send(.failed(error))
                }
            })
        (self.pages, self.source) = (pages, source)
        desk.onClose {
            pages.finish()
            source.finish()
        }
    }

    /// The events about this person's location and the watched list.
    nonisolated public var events: Events<Event> { source.events }

    /// Sends this person's location to the server.
    ///
    /// - Throws: `not_present` before ``Presence/appear(_:)``, `position_invalid`, `position_too_fast`.
    public func move(to position: Position) async throws(ConfabError) {
        try await feature.ask(.move(.init(latitude: position.latitude, longitude: position.longitude)))
    }

    /// Deletes this person's location, so that others no longer see this person nearby. This also stops watching.
    public func forget() async throws(ConfabError) { try await feature.ask(.forget) }

    /// Watches a page of the list. A client watches one page at a time.
    ///
    /// - Parameters:
    ///   - unit: the unit of all distances.
    ///   - radius: how far away people may be, in `unit`. The server rounds it up to one of its steps: 3, 8, 16, 40,
    ///     80, 160 or 320 km, or 2, 5, 10, 25, 50, 100 or 200 miles.
    ///   - after: ``Page/next`` of the previous page; nil for the first.
    /// - Returns: the page, and an updated page after each change.
    /// - Throws: `not_present` before ``Presence/appear(_:)``, `position_unknown` before ``move(to:)``,
    ///   `rate_limited`.
    public func watch(unit: Unit = .kilometers, radius: Int = 320, after: String? = nil) async throws(ConfabError)
        -> Events<Page>
    {
        let wireUnit = DistanceUnit(rawValue: unit.rawValue) ?? .kilometers
        try await feature.ask(.watch(.init(unit: wireUnit, radius: max(radius, 1), after: after)))
        return pages.events
    }

    /// Stops watching the list. No more pages arrive.
    public func unwatch() async throws(ConfabError) { try await feature.ask(.unwatch) }

    nonisolated func presenceLeft() {
        feature.post { machine, _ in
            machine.presenceLeft()
            return []
        }
    }
}
