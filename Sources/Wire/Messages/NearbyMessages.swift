/// What a client asks about who is near (`protocol/README.md` §11).
public enum NearbyVerb: Equatable, Sendable, MessageSet {
    case move(Move)
    case forget
    case watch(Watch)
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
    /// Where a device says it is. The person's machine checks the numbers: they have an error code of their own.
    public struct Move: Payload, Hashable {
        public var latitude: JSONValue?
        public var longitude: JSONValue?
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

    /// Which page of the list somebody looks at.
    public struct Watch: Payload, Hashable {
        public var unit = DistanceUnit.miles
        public var radius = 200
        public var after: String?
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

/// What a client is told about who is near (`protocol/README.md` §11).
public enum NearbyNotice: Equatable, Sendable, MessageSet {
    case list(List)
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
    public struct List: AnswerPayload, Hashable {
        public var re: UInt64 = 0
        public var unit = DistanceUnit.miles
        public var radius = 200
        public var people: [NearbyRow] = []
        /// Where the next page begins; absent on the last.
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

    public struct Changed: Payload, Hashable {
        /// New or different, whole.
        public var people: [NearbyRow] = []
        public var gone: [PersonID]? = []
        /// The page as it is now.
        public var order: [PersonID]? = []
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

/// What distances are told in.
public enum DistanceUnit: String, Hashable, Sendable, CaseIterable {
    case miles = "mi"
    case kilometres = "km"
}

/// One row: the distance is the upper edge of a bucket, in the unit that was asked for.
public struct NearbyRow: Payload, Hashable {
    public var person = PersonID(high: 0, low: 0)
    public var name = ""
    public var distance = 0
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
