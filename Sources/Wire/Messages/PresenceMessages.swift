/// A client's request about its person and that person's devices (`protocol/people.md` §10).
public enum PresenceVerb: Equatable, Sendable, MessageSet {
    /// Takes the person online on this device: others can see them, and calls ring on it. Answered with
    /// ``PresenceNotice/own(_:)``, or with `invalid_name`.
    case appear(Appearance)
    /// Changes the person's name and settings. Answered with ``PresenceNotice/own(_:)``, or with `not_present` or
    /// `invalid_name`.
    case set(Appearance)
    /// Takes the person offline on this device. A call on the device continues. Answered with `ok`.
    case leave
    /// Looks up a person by id. Answered with ``PresenceNotice/person(_:)``, or with `not_found`.
    case find(PersonReference)
    /// Requests a code to link another device. Answered with ``PresenceNotice/linkCode(_:)``, or with `rate_limited`,
    /// `link_invalid` or `not_permitted`.
    case link
    /// Links this device to the person whose other device shows the code. Answered with ``PresenceNotice/linked(_:)``, or with
    /// `link_invalid`, `invalid_name` or `rate_limited`. The server then closes with 4409.
    case useLink(UseLink)
    /// Requests the person's devices. Answered with ``PresenceNotice/devices(_:)``.
    case devices
    /// Unlinks a device. Afterwards, a linked device is a separate person again, and the person's first device must
    /// get a new identity. Answered with `ok`, or with `not_found`, or with `not_permitted` for the
    /// person's only device.
    case unlink(Unlink)
    /// Deletes the person and everything stored about them, on all devices. Answered with `ok`. The server then closes with
    /// 4409.
    case delete
    /// Blocks a person. The two no longer see each other and are never matched again. Answered with `ok`, or with `not_found`
    /// or `not_permitted`.
    case block(PersonReference)
    /// Unblocks a person. Answered with `ok`, or with `not_found`.
    case unblock(PersonReference)
    /// Requests the people that this person has blocked. Answered with ``PresenceNotice/blocked(_:)``.
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
    /// A pairing code that another device shows, to link this device to the same person.
    public struct UseLink: Payload, Hashable {
        /// The pairing code: 8 characters of Crockford's base32. Case, hyphens and spaces do not matter.
        public var code = ""
        /// A name for this device, which the person chooses; nil for "Linked device". The same rules apply as for names of
        /// people.
        public var label: String?
        public init() {}
        public init(code: String, label: String? = nil) { (self.code, self.label) = (code, label) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("code", &code, max: Limits.name)
            try coder.string("label", &label, max: Limits.message)
        }
    }

    /// The device to unlink.
    public struct Unlink: Payload, Hashable {
        /// A device id from ``PresenceNotice/devices(_:)``.
        public var device = PersonID(high: 0, low: 0)
        public init() {}
        public init(device: PersonID) { self.device = device }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("deviceId", &device) }
    }
}

/// A server's message about this person and other people (`protocol/people.md` §10).
public enum PresenceNotice: Equatable, Sendable, MessageSet {
    /// This person's name and settings. Answers `appear` and `set`, and is sent as an event to the person's other online
    /// devices. Named `presence.self` on the wire.
    case own(Own)
    /// Answers `presence.find`.
    case person(Person)
    /// Answers `presence.link`.
    case linkCode(LinkCode)
    /// Answers `presence.useLink`. This device now belongs to another person, so the client must send a new `hello` without
    /// `resume`.
    case linked(Linked)
    /// This device was unlinked. The client must send a new `hello` without `resume`.
    case unlinked
    /// This person was deleted. The client must send a new `hello` without an identity.
    case deleted
    /// Answers `presence.devices`.
    case devices(Devices)
    /// Answers `presence.blocked` with at most 500 people, most recently blocked first. The ids in this list are only valid in
    /// `presence.unblock`.
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
    /// This person's name and settings.
    public struct Own: PossibleAnswerPayload, Hashable {
        /// The `seq` of the request that this message answers; nil for an event.
        public var re: UInt64?
        /// The person's own public id.
        public var person = PersonID(high: 0, low: 0)
        /// The name that other people see. If the person chose none, the name is generated from the id.
        public var name = ""
        /// Whether other people see the person in lists, and contacts see the person as online.
        public var visible = true
        /// Whether callers always receive `busy`.
        public var doNotDisturb = false
        /// Who may call this person.
        public var ringable = Ringable.everyone
        /// Whether the server has a location of the person, so that the person can be listed nearby.
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

    /// The result of looking up a person.
    public struct Person: AnswerPayload, Hashable {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The person. A person who has blocked the requester is reported as offline.
        public var person = PersonInfo()
        public init() {}
        public init(re: UInt64, person: PersonInfo) { (self.re, self.person) = (re, person) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.nested("person", &person)
        }
    }

    /// A pairing code to show to the user, who enters it on another device.
    public struct LinkCode: AnswerPayload, Hashable {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The pairing code: 8 characters, shown as `ABCD-EFGH`. The code works once, and replaces any earlier code.
        public var code = ""
        /// How long the code is valid.
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

    /// The person that this device now belongs to.
    public struct Linked: AnswerPayload, Hashable {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The person's public id.
        public var person = PersonID(high: 0, low: 0)
        public init() {}
        public init(re: UInt64, person: PersonID) { (self.re, self.person) = (re, person) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.id("personId", &person)
        }
    }

    /// The devices of this person.
    public struct Devices: AnswerPayload, Hashable {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The person's first device, if it was not unlinked, followed by the linked devices.
        public var devices: [DeviceInfo] = []
        public init() {}
        public init(re: UInt64, devices: [DeviceInfo]) { (self.re, self.devices) = (re, devices) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.list("devices", &devices)
        }
    }
}

/// Who may call a person. Other callers receive `call_not_allowed`.
public enum Ringable: String, Hashable, Sendable, CaseIterable {
    /// Everyone who knows the person's public id.
    case everyone
    /// The person's contacts.
    case contacts
    /// No one.
    case nobody
}

/// Changes to a person's name and settings. A nil member changes nothing. The server keeps the settings for all
/// devices until the person is deleted.
public struct Appearance: Payload, Hashable {
    /// The name, at most 40 characters and 160 bytes; a longer name fails with `invalid_name`. An empty name is replaced with a
    /// name generated from the id. A name from a user token takes precedence.
    public var name: String?
    /// Whether other people see the person in lists, and contacts see the person as online.
    public var visible: Bool?
    /// Whether callers always receive `busy`.
    public var doNotDisturb: Bool?
    /// Who may call this person.
    public var ringable: Ringable?
    public init() {}
    public init(name: String? = nil, visible: Bool? = nil, doNotDisturb: Bool? = nil, ringable: Ringable? = nil) {
        (self.name, self.visible, self.doNotDisturb, self.ringable) = (name, visible, doNotDisturb, ringable)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        // Only limit the length here. The name is checked later, because a bad name has its own error code.
        try coder.string("name", &name, max: Limits.message)
        try coder.bool("visible", &visible)
        try coder.bool("doNotDisturb", &doNotDisturb)
        try coder.choice("ringable", &ringable)
    }
}

/// The person that a message is about.
public struct PersonReference: Payload, Hashable {
    /// The person's public id.
    public var person = PersonID(high: 0, low: 0)
    public init() {}
    public init(person: PersonID) { self.person = person }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("personId", &person) }
}

/// A person, as other people see them.
public struct PersonInfo: Payload, Hashable {
    /// The person's public id.
    public var id = PersonID(high: 0, low: 0)
    /// The name that other people see.
    public var name = ""
    /// Whether the person is visible and online on at least one device.
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
    /// The device's id, for ``PresenceVerb/unlink(_:)``. It is the public id of the device's own identity.
    public var id = PersonID(high: 0, low: 0)
    /// The name that the person gave the device, or a default such as "First device".
    public var label = ""
    /// Whether this is the device that sent the request.
    public var current = false
    /// Whether the person is online on this device.
    public var present = false
    /// When the device was linked; nil for the person's first device.
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

/// A person's contacts, or the people that the person has blocked.
public struct PeopleList: AnswerPayload, Hashable {
    /// The `seq` of the request that this message answers.
    public var re: UInt64 = 0
    /// The people, at most 500.
    public var people: [PersonInfo] = []
    public init() {}
    public init(re: UInt64, people: [PersonInfo]) { (self.re, self.people) = (re, people) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.list("people", &people)
    }
}
