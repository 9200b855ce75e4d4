// Staying in touch, and being woken. What the members mean is in protocol/README.md §13 and §14.

/// What a client asks about its contacts.
public enum ContactVerb: Equatable, Sendable {
    case keep(OfMeeting)
    case list
    case remove(OfPerson)

    var type: String {
        switch self {
        case .keep: "contact.keep"
        case .list: "contact.list"
        case .remove: "contact.remove"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "contact.keep": self = .keep(try OfMeeting(members: members))
        case "contact.list": self = .list
        case "contact.remove": self = .remove(try OfPerson(members: members))
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .list: break
        case .keep(var payload): try payload.fields(&coder)
        case .remove(var payload): try payload.fields(&coder)
        }
    }
}

/// A chat or a call, by which two people know each other.
public struct OfMeeting: Payload, Hashable {
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

/// What a client is told about its contacts.
public enum ContactNews: Equatable, Sendable {
    case asked(OfMeeting)
    case added(ContactAdded)
    case list(PeopleList)
    case changed(ContactChanged)
    case removed(OfPerson)

    var type: String {
        switch self {
        case .asked: "contact.asked"
        case .added: "contact.added"
        case .list: "contact.list"
        case .changed: "contact.changed"
        case .removed: "contact.removed"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "contact.asked": self = .asked(try OfMeeting(members: members))
        case "contact.added": self = .added(try ContactAdded(members: members))
        case "contact.list": self = .list(try PeopleList(members: members))
        case "contact.changed": self = .changed(try ContactChanged(members: members))
        case "contact.removed": self = .removed(try OfPerson(members: members))
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .asked(var payload): try payload.fields(&coder)
        case .added(var payload): try payload.fields(&coder)
        case .list(var payload): try payload.fields(&coder)
        case .changed(var payload): try payload.fields(&coder)
        case .removed(var payload): try payload.fields(&coder)
        }
    }
}

public struct ContactAdded: Payload, Hashable {
    public var person = PersonInfo()
    public var match: MatchID?
    public var call: CallID?
    public init() {}
    public init(person: PersonInfo, meeting: OfMeeting) {
        (self.person, match, call) = (person, meeting.match, meeting.call)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.nested("person", &person)
        try coder.id("matchId", &match)
        try coder.id("callId", &call)
    }
}

public struct ContactChanged: Payload, Hashable {
    public var person = PersonInfo()
    public init() {}
    public init(person: PersonInfo) { self.person = person }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.nested("person", &person) }
}

/// What a client says of the service that can wake it.
public enum PushVerb: Equatable, Sendable {
    case register(PushRegistration)
    case unregister(OfEndpoint)

    var type: String {
        switch self {
        case .register: "push.register"
        case .unregister: "push.unregister"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "push.register": self = .register(try PushRegistration(members: members))
        case "push.unregister": self = .unregister(try OfEndpoint(members: members))
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .register(var payload): try payload.fields(&coder)
        case .unregister(var payload): try payload.fields(&coder)
        }
    }
}

public enum PushKind: String, Hashable, Sendable, CaseIterable {
    /// Web Push (RFC 8030).
    case web
    /// Apple's service, for calls.
    case apns
}

public struct PushRegistration: Payload, Hashable {
    public var kind = PushKind.web
    /// The subscription's address, or the device token in hexadecimal digits.
    public var endpoint = ""
    /// The subscription's public key and authentication secret (RFC 8291 §2), in base64url.
    public var p256dh: String?
    public var auth: String?
    /// A development build's token.
    public var sandbox: Bool?
    public init() {}
    public init(kind: PushKind, endpoint: String, p256dh: String? = nil, auth: String? = nil, sandbox: Bool? = nil) {
        (self.kind, self.endpoint, self.p256dh, self.auth) = (kind, endpoint, p256dh, auth)
        self.sandbox = sandbox
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("kind", &kind)
        try coder.string("endpoint", &endpoint, max: Limits.pushEndpoint)
        try coder.string("p256dh", &p256dh, max: Limits.name)
        try coder.string("auth", &auth, max: Limits.name)
        try coder.bool("sandbox", &sandbox)
    }
}

public struct OfEndpoint: Payload, Hashable {
    public var endpoint = ""
    public init() {}
    public init(endpoint: String) { self.endpoint = endpoint }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("endpoint", &endpoint, max: Limits.pushEndpoint)
    }
}
