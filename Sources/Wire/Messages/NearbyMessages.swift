/// A client's request about people nearby (`protocol/people.md` §11). `move` and `watch` fail with `not_present` if the device
/// has not sent `presence.appear`.
public enum NearbyVerb: Equatable, Sendable, MessageSet {
    /// Reports the device's location. Answered with `ok`, or with `position_invalid` or `position_too_fast`.
    case move(Move)
    /// Deletes the location and removes this person from the list. Answered with `ok`.
    case forget
    /// Requests a page of the list and all later changes to the page. Replaces the page that this device watched
    /// before. Answered with ``NearbyNotice/list(_:)``, or with `position_unknown`, `rate_limited`, or `malformed` for
    /// an unknown `after`.
    case watch(Watch)
    /// Stops watching the page. Answered with `ok`.
    case unwatch

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .move(let payload): try visitor.message("nearby.move", payload)
        case .forget: try visitor.message("nearby.forget", NoMembers())
        case .watch(let payload): try visitor.message("nearby.watch", payload)
        case .unwatch: try visitor.message("nearby.unwatch", NoMembers())
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("nearby.move", Self.move),
        .init("nearby.forget", .forget),
        .init("nearby.watch", Self.watch),
        .init("nearby.unwatch", .unwatch),
    ]
}

extension NearbyVerb {
    /// A device's location. When a message is decoded, the members may be any JSON. They are checked later, because a
    /// bad value has its own error code, `position_invalid`.
    public struct Move: Payload, Hashable {
        /// Degrees north, -90 to 90.
        public var latitude: JSONValue?
        /// Degrees east, -180 to 180.
        public var longitude: JSONValue?
        /// The accuracy in meters, at least 0; nil if unknown. The server checks this value but does not use it.
        public var accuracy: JSONValue?
        public init() {}
        public init(latitude: Double, longitude: Double) {
            (self.latitude, self.longitude) = (.number(latitude), .number(longitude))
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.json("latitude", &latitude)
            try coder.json("longitude", &longitude)
            try coder.json("accuracy", &accuracy)
        }
    }

    /// The page of the list to watch.
    public struct Watch: Payload, Hashable {
        /// The unit of `radius` and of the distances in the list.
        public var unit = DistanceUnit.miles
        /// How far away people may be, in `unit`: 2, 5, 10, 25, 50, 100 or 200 miles, or 3, 8, 16, 40, 80, 160 or 320 km. Any
        /// other number, at least 1, is rounded up to the next of these.
        public var radius = 200
        /// ``NearbyNotice/List/next`` of the previous page; nil for the first page.
        public var after: String?
        /// Maximum number of rows, 1 to 50; nil for 50.
        public var limit: Int?
        public init() {}
        public init(unit: DistanceUnit, radius: Int, after: String? = nil, limit: Int? = nil) {
            (self.unit, self.radius, self.after, self.limit) = (unit, radius, after, limit)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("unit", &unit)
            try coder.integer("radius", &radius, in: 1...Int(Int32.max))
            try coder.string("after", &after, max: Limits.name)
            try coder.integer("limit", &limit, in: 1...Limits.nearbyRows)
        }
    }
}

/// A server's message about people nearby (`protocol/people.md` §11).
public enum NearbyNotice: Equatable, Sendable, MessageSet {
    /// Answers `nearby.watch`.
    case list(List)
    /// The watched page has changed. Sent at most once a second.
    case changed(Changed)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .list(let payload): try visitor.message("nearby.list", payload)
        case .changed(let payload): try visitor.message("nearby.changed", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("nearby.list", Self.list),
        .init("nearby.changed", Self.changed),
    ]
}

extension NearbyNotice {
    /// A page of people nearby.
    public struct List: AnswerPayload, Hashable {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The unit of `radius` and of all distances.
        public var unit = DistanceUnit.miles
        /// The radius of the request, rounded up to one of the values in ``NearbyVerb/Watch/radius``.
        public var radius = 200
        /// The rows, by ascending ``NearbyRow/distance``. There may be fewer than `limit` even if `next` is set.
        public var people: [NearbyRow] = []
        /// The value of `after` with which to request the next page; nil on the last page.
        public var next: String?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.choice("unit", &unit)
            try coder.integer("radius", &radius, in: 1...Int(Int32.max))
            try coder.list("people", &people)
            try coder.string("next", &next, max: Limits.name)
        }
    }

    /// An update to the watched page: what has changed since it was last sent, and the current order.
    public struct Changed: Payload, Hashable {
        /// The rows that are new or have changed, including members that have not changed.
        public var people: [NearbyRow] = []
        /// The ids of people who are no longer on the page; nil is the same as an empty list.
        public var gone: [PersonID]? = []
        /// The ids of all people on the page now, in order; nil is the same as an empty list.
        public var order: [PersonID]? = []
        /// The value of `after` with which to request the next page; nil on the last page.
        public var next: String?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.list("people", &people)
            try coder.ids("gone", &gone)
            try coder.ids("order", &order)
            try coder.string("next", &next, max: Limits.name)
        }
    }
}

/// The unit in which a client wants to see how far away people are.
public enum DistanceUnit: String, Hashable, Sendable, CaseIterable {
    /// Statute miles of 1609.344 m.
    case miles = "mi"
    /// Kilometers. The limits of the distance ranges are defined in miles and apply in both units. In kilometers, each
    /// limit is rounded: 2 miles are sent as 3 km.
    case kilometers = "km"
}

/// A person on a page of people nearby.
public struct NearbyRow: Payload, Hashable {
    /// The person's public id.
    public var person = PersonID(high: 0, low: 0)
    /// The name that the person shows to others.
    public var name = ""
    /// The distance in the unit of the request, rounded up to one of the values in ``NearbyVerb/Watch/radius``. The
    /// server never sends an exact distance.
    public var distance = 0
    /// Whether the person is in a chat or call, or does not want to be disturbed.
    public var busy = false
    public init() {}
    public init(person: PersonID, name: String, distance: Int, busy: Bool) {
        (self.person, self.name, self.distance, self.busy) = (person, name, distance, busy)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("personId", &person)
        try coder.string("name", &name, max: Limits.name)
        try coder.integer("distance", &distance, in: 0...Int(Int32.max))
        try coder.bool("busy", &busy)
    }
}
