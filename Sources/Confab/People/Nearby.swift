import Wire

/// People near this person. The server keeps only a coarse location, and sends distances only in steps.
///
/// ```swift
/// try await client.nearby.move(to: Position(latitude: 52.52, longitude: 13.41))
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

    /// A person in the list.
    public struct Neighbor: Hashable, Sendable, Identifiable {
        /// The person's id, for example to call them.
        public let id: PersonID
        /// The name that the person chose for others to see.
        public let name: String
        /// The upper end of the distance range that the person is in, in the unit of the page.
        public let distance: Int
        /// Whether the person is in a chat or call, or has do-not-disturb on.
        public let isBusy: Bool

        init(_ row: NearbyRow) { (id, name, distance, isBusy) = (row.person, row.name, row.distance, row.busy) }
    }

    /// A page of the list, nearest people first.
    public struct Page: Hashable, Sendable {
        /// The people on this page, nearest first.
        public let people: [Neighbor]
        /// The unit of the distances.
        public let unit: Unit
        /// The radius, in `unit`, rounded up to a step.
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

    /// An event about the location.
    public enum Event: Hashable, Sendable {
        /// The location was deleted on another device, so this person is no longer listed.
        case positionForgotten
        /// The server rejected the location or list that the SDK sent again after the connection was replaced.
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

    /// The events about the location.
    nonisolated public var events: Events<Event> { source.events }

    /// Sends this person's location to the server.
    ///
    /// - Throws: `not_present` before ``Presence/appear(_:)``, `position_invalid`, `position_too_fast`.
    public func move(to position: Position) async throws(ConfabError) {
        try await feature.ask(.move(.init(latitude: position.latitude, longitude: position.longitude)))
    }

    /// Deletes the location, so that this person is no longer listed. This also stops watching.
    public func forget() async throws(ConfabError) { try await feature.ask(.forget) }

    /// Watches a page of the list. A client watches one page at a time.
    ///
    /// - Parameters:
    ///   - unit: the unit of all distances.
    ///   - radius: how far away people may be, in `unit`. The server rounds it up to a step.
    ///   - after: ``Page/next`` of the previous page; nil for the first.
    /// - Returns: the page, and an updated page after each change.
    /// - Throws: `position_unknown` before ``move(to:)``, `rate_limited`.
    public func watch(unit: Unit = .kilometers, radius: Int = 320, after: String? = nil) async throws(ConfabError)
        -> Events<Page>
    {
        let wireUnit = DistanceUnit(rawValue: unit.rawValue) ?? .kilometers
        try await feature.ask(.watch(.init(unit: wireUnit, radius: max(radius, 1), after: after)))
        return pages.events
    }

    /// Stops watching.
    public func unwatch() async throws(ConfabError) { try await feature.ask(.unwatch) }

    nonisolated func presenceLeft() {
        feature.post { machine, _ in
            machine.presenceLeft()
            return []
        }
    }
}
