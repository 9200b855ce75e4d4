/// What a client asks about its person and its devices (`protocol/README.md` §10).
public enum PresenceVerb: Equatable, Sendable, MessageSet {
    case appear(Appearance)
    case set(Appearance)
    case leave
    case find(PersonReference)
    case link
    case useLink(UseLink)
    case devices
    case unlink(Unlink)
    case delete
    case block(PersonReference)
    case unblock(PersonReference)
    case blocked

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .appear(let payload): try visitor.message("presence.appear", payload)
        case .set(let payload): try visitor.message("presence.set", payload)
        case .leave: try visitor.message("presence.leave", NoMembers())
        case .find(let payload): try visitor.message("presence.find", payload)
        case .link: try visitor.message("presence.link", NoMembers())
        case .useLink(let payload): try visitor.message("presence.useLink", payload)
        case .devices: try visitor.message("presence.devices", NoMembers())
        case .unlink(let payload): try visitor.message("presence.unlink", payload)
        case .delete: try visitor.message("presence.delete", NoMembers())
        case .block(let payload): try visitor.message("presence.block", payload)
        case .unblock(let payload): try visitor.message("presence.unblock", payload)
        case .blocked: try visitor.message("presence.blocked", NoMembers())
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("presence.appear", Self.appear),
        .init("presence.set", Self.set),
        .init("presence.leave", .leave),
        .init("presence.find", Self.find),
        .init("presence.link", .link),
        .init("presence.useLink", Self.useLink),
        .init("presence.devices", .devices),
        .init("presence.unlink", Self.unlink),
        .init("presence.delete", .delete),
        .init("presence.block", Self.block),
        .init("presence.unblock", Self.unblock),
        .init("presence.blocked", .blocked),
    ]
}

extension PresenceVerb {
    /// The code that another device shows, to become that device's person.
    public struct UseLink: Payload, Hashable {
        public var code = ""
        /// What the person calls this device.
        public var label: String?
        public init() {}
        public init(code: String, label: String? = nil) { (self.code, self.label) = (code, label) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("code", &code, max: Limits.name)
            try coder.string("label", &label, max: Limits.message)
        }
    }

    public struct Unlink: Payload, Hashable {
        public var device = PersonID(high: 0, low: 0)
        public init() {}
        public init(device: PersonID) { self.device = device }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("deviceId", &device) }
    }
}

/// What a client is told about its person and others (`protocol/README.md` §10).
public enum PresenceNotice: Equatable, Sendable, MessageSet {
    case own(Own)
    case person(Person)
    case linkCode(LinkCode)
    case linked(Linked)
    case unlinked
    case deleted
    case devices(Devices)
    case blocked(PeopleList)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .own(let payload): try visitor.message("presence.self", payload)
        case .person(let payload): try visitor.message("presence.person", payload)
        case .linkCode(let payload): try visitor.message("presence.linkCode", payload)
        case .linked(let payload): try visitor.message("presence.linked", payload)
        case .unlinked: try visitor.message("presence.unlinked", NoMembers())
        case .deleted: try visitor.message("presence.deleted", NoMembers())
        case .devices(let payload): try visitor.message("presence.devices", payload)
        case .blocked(let payload): try visitor.message("presence.blocked", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("presence.self", Self.own),
        .init("presence.person", Self.person),
        .init("presence.linkCode", Self.linkCode),
        .init("presence.linked", Self.linked),
        .init("presence.unlinked", .unlinked),
        .init("presence.deleted", .deleted),
        .init("presence.devices", Self.devices),
        .init("presence.blocked", Self.blocked),
    ]
}

extension PresenceNotice {
    /// How one's own person is there.
    public struct Own: PossibleAnswerPayload, Hashable {
        public var re: UInt64?
        public var person = PersonID(high: 0, low: 0)
        public var name = ""
        public var visible = true
        public var doNotDisturb = false
        public var ringable = Ringable.everyone
        public var hasPosition = false
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("personId", &person)
            try coder.string("name", &name, max: Limits.name)
            try coder.bool("visible", &visible)
            try coder.bool("doNotDisturb", &doNotDisturb)
            try coder.choice("ringable", &ringable)
            try coder.bool("hasPosition", &hasPosition)
        }
    }

    public struct Person: AnswerPayload, Hashable {
        public var re: UInt64 = 0
        public var person = PersonInfo()
        public init() {}
        public init(re: UInt64, person: PersonInfo) { (self.re, self.person) = (re, person) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.nested("person", &person)
        }
    }

    public struct LinkCode: AnswerPayload, Hashable {
        public var re: UInt64 = 0
        public var code = ""
        public var expiresIn: Duration = .zero
        public init() {}
        public init(re: UInt64, code: String, expiresIn: Duration) {
            (self.re, self.code, self.expiresIn) = (re, code, expiresIn)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.string("code", &code, max: Limits.name)
            try coder.milliseconds("expiresInMs", &expiresIn)
        }
    }

    public struct Linked: AnswerPayload, Hashable {
        public var re: UInt64 = 0
        public var person = PersonID(high: 0, low: 0)
        public init() {}
        public init(re: UInt64, person: PersonID) { (self.re, self.person) = (re, person) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("personId", &person)
        }
    }

    public struct Devices: AnswerPayload, Hashable {
        public var re: UInt64 = 0
        public var devices: [DeviceInfo] = []
        public init() {}
        public init(re: UInt64, devices: [DeviceInfo]) { (self.re, self.devices) = (re, devices) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.list("devices", &devices)
        }
    }
}

/// Who may ring somebody.
public enum Ringable: String, Hashable, Sendable, CaseIterable {
    case everyone, contacts, nobody
}

/// How somebody wants to be there. What is left out stays as it is.
public struct Appearance: Payload, Hashable {
    public var name: String?
    public var visible: Bool?
    public var doNotDisturb: Bool?
    public var ringable: Ringable?
    public init() {}
    public init(name: String? = nil, visible: Bool? = nil, doNotDisturb: Bool? = nil, ringable: Ringable? = nil) {
        (self.name, self.visible, self.doNotDisturb, self.ringable) = (name, visible, doNotDisturb, ringable)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        // The person judges the name, with a code of its own.
        try coder.string("name", &name, max: Limits.message)
        try coder.bool("visible", &visible)
        try coder.bool("doNotDisturb", &doNotDisturb)
        try coder.choice("ringable", &ringable)
    }
}

public struct PersonReference: Payload, Hashable {
    public var person = PersonID(high: 0, low: 0)
    public init() {}
    public init(person: PersonID) { self.person = person }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("personId", &person) }
}

/// One person as others may see them.
public struct PersonInfo: Payload, Hashable {
    public var id = PersonID(high: 0, low: 0)
    public var name = ""
    public var online = false
    public init() {}
    public init(id: PersonID, name: String, online: Bool) { (self.id, self.name, self.online) = (id, name, online) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("personId", &id)
        try coder.string("name", &name, max: Limits.name)
        try coder.bool("online", &online)
    }
}

/// One of a person's devices.
public struct DeviceInfo: Payload, Hashable {
    public var id = PersonID(high: 0, low: 0)
    public var label = ""
    /// The one that asks.
    public var current = false
    public var present = false
    public var linkedAt: Timestamp?
    public init() {}
    public init(id: PersonID, label: String, current: Bool, present: Bool, linkedAt: Timestamp?) {
        (self.id, self.label, self.current, self.present, self.linkedAt) = (id, label, current, present, linkedAt)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("deviceId", &id)
        try coder.string("label", &label, max: Limits.name)
        try coder.bool("current", &current)
        try coder.bool("present", &present)
        try coder.timestamp("linkedAt", &linkedAt)
    }
}

/// Contacts, or people one blocked.
public struct PeopleList: AnswerPayload, Hashable {
    public var re: UInt64 = 0
    public var people: [PersonInfo] = []
    public init() {}
    public init(re: UInt64, people: [PersonInfo]) { (self.re, self.people) = (re, people) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.list("people", &people)
    }
}
