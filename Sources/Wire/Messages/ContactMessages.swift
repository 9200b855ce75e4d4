/// A client's request about contacts (`protocol/people.md` §13).
public enum ContactVerb: Equatable, Sendable, MessageSet {
    /// Offers to stay in touch, during the chat or up to 60 s after it, or during the call or up to an hour after it. Answered
    /// with `ok`, or with `not_found` or `not_permitted`. The two people become contacts when both have sent this request.
    case keep(MeetingReference)
    /// Requests all contacts. Answered with ``ContactNotice/list(_:)``.
    case list
    /// Removes a contact, so that the two people are no longer contacts of each other. Answered with `ok`, or with
    /// `not_found`.
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

/// A server's message about contacts (`protocol/people.md` §13).
public enum ContactNotice: Equatable, Sendable, MessageSet {
    /// The other person in this chat or call wants to stay in touch. Sent again when a device goes online.
    case asked(MeetingReference)
    /// A person became a contact, because both agreed.
    case added(Added)
    /// Answers `contact.list` with at most 500 contacts.
    case list(PeopleList)
    /// A contact changed their name, or went online or offline.
    case changed(Changed)
    /// A person is no longer a contact: one of the two removed or blocked the other, or was deleted.
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
    /// A new contact, and where the two met.
    public struct Added: Payload, Hashable {
        /// The new contact.
        public var person = PersonInfo()
        /// The id of the match in which the two people met; nil if they met in a call.
        public var match: MatchID?
        /// The id of the call in which the two people met; nil if they met in a chat.
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

    /// The new state of a contact.
    public struct Changed: Payload, Hashable {
        /// The contact, including the members that have not changed.
        public var person = PersonInfo()
        public init() {}
        public init(person: PersonInfo) { self.person = person }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.nested("person", &person) }
    }
}

/// A chat or a call in which two people met. Exactly one of the two ids must be set. Otherwise the request fails with
/// `malformed`.
public struct MeetingReference: Payload, Hashable {
    /// The id of the match; nil if the two people met in a call.
    public var match: MatchID?
    /// The id of the call; nil if the two people met in a chat.
    public var call: CallID?
    public init() {}
    public init(match: MatchID) { self.match = match }
    public init(call: CallID) { self.call = call }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("matchId", &match)
        try coder.id("callId", &call)
        if coder.isReading, (match == nil) == (call == nil) {
            throw WireError(.malformed, "Send either \"matchId\" or \"callId\", not both.")
        }
    }
}
