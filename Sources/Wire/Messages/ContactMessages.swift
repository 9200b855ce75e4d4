/// What a client asks about its contacts (`protocol/README.md` §13).
public enum ContactVerb: Equatable, Sendable, MessageSet {
    case keep(MeetingReference)
    case list
    case remove(PersonReference)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .keep(let payload): try visitor.message("contact.keep", payload)
        case .list: try visitor.message("contact.list", NoMembers())
        case .remove(let payload): try visitor.message("contact.remove", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("contact.keep", Self.keep),
        .init("contact.list", .list),
        .init("contact.remove", Self.remove),
    ]
}

/// What a client is told about its contacts (`protocol/README.md` §13).
public enum ContactNotice: Equatable, Sendable, MessageSet {
    case asked(MeetingReference)
    case added(Added)
    case list(PeopleList)
    case changed(Changed)
    case removed(PersonReference)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .asked(let payload): try visitor.message("contact.asked", payload)
        case .added(let payload): try visitor.message("contact.added", payload)
        case .list(let payload): try visitor.message("contact.list", payload)
        case .changed(let payload): try visitor.message("contact.changed", payload)
        case .removed(let payload): try visitor.message("contact.removed", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("contact.asked", Self.asked),
        .init("contact.added", Self.added),
        .init("contact.list", Self.list),
        .init("contact.changed", Self.changed),
        .init("contact.removed", Self.removed),
    ]
}

extension ContactNotice {
    public struct Added: Payload, Hashable {
        public var person = PersonInfo()
        public var match: MatchID?
        public var call: CallID?
        public init() {}
        public init(person: PersonInfo, meeting: MeetingReference) {
            (self.person, match, call) = (person, meeting.match, meeting.call)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.nested("person", &person)
            try coder.id("matchId", &match)
            try coder.id("callId", &call)
        }
    }

    public struct Changed: Payload, Hashable {
        public var person = PersonInfo()
        public init() {}
        public init(person: PersonInfo) { self.person = person }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.nested("person", &person) }
    }
}

/// A chat or a call, by which two people know each other.
public struct MeetingReference: Payload, Hashable {
    public var match: MatchID?
    public var call: CallID?
    public init() {}
    public init(match: MatchID) { self.match = match }
    public init(call: CallID) { self.call = call }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("matchId", &match)
        try coder.id("callId", &call)
        if coder.isReading, (match == nil) == (call == nil) {
            throw WireError(.malformed, "Name a match or a call, one of the two.")
        }
    }
}
