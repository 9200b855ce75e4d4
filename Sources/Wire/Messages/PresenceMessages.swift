// Being there: under which name, for whom, on which devices. What the members mean is in protocol/README.md §10.

/// What a client asks about its person and its devices.
public enum PresenceVerb: Equatable, Sendable {
    case appear(Appearance)
    case set(Appearance)
    case leave
    case find(OfPerson)
    case link
    case useLink(UseLink)
    case devices
    case unlink(OfDevice)
    case delete
    case block(OfPerson)
    case unblock(OfPerson)
    case blocked

    var type: String {
        switch self {
        case .appear: "presence.appear"
        case .set: "presence.set"
        case .leave: "presence.leave"
        case .find: "presence.find"
        case .link: "presence.link"
        case .useLink: "presence.useLink"
        case .devices: "presence.devices"
        case .unlink: "presence.unlink"
        case .delete: "presence.delete"
        case .block: "presence.block"
        case .unblock: "presence.unblock"
        case .blocked: "presence.blocked"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "presence.appear": self = .appear(try Appearance(members: members))
        case "presence.set": self = .set(try Appearance(members: members))
        case "presence.leave": self = .leave
        case "presence.find": self = .find(try OfPerson(members: members))
        case "presence.link": self = .link
        case "presence.useLink": self = .useLink(try UseLink(members: members))
        case "presence.devices": self = .devices
        case "presence.unlink": self = .unlink(try OfDevice(members: members))
        case "presence.delete": self = .delete
        case "presence.block": self = .block(try OfPerson(members: members))
        case "presence.unblock": self = .unblock(try OfPerson(members: members))
        case "presence.blocked": self = .blocked
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .leave, .link, .devices, .delete, .blocked: break
        case .appear(var payload), .set(var payload): try payload.fields(&coder)
        case .find(var payload), .block(var payload), .unblock(var payload): try payload.fields(&coder)
        case .useLink(var payload): try payload.fields(&coder)
        case .unlink(var payload): try payload.fields(&coder)
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

public struct OfPerson: Payload, Hashable {
    public var person = PersonID(high: 0, low: 0)
    public init() {}
    public init(person: PersonID) { self.person = person }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("personId", &person) }
}

public struct OfDevice: Payload, Hashable {
    public var device = PersonID(high: 0, low: 0)
    public init() {}
    public init(device: PersonID) { self.device = device }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("deviceId", &device) }
}

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

/// What a client is told about its person and others.
public enum PresenceNews: Equatable, Sendable {
    case own(OwnPresence)
    case person(FoundPerson)
    case linkCode(LinkCode)
    case linked(Linked)
    case unlinked
    case deleted
    case devices(Devices)
    case blocked(PeopleList)

    var type: String {
        switch self {
        case .own: "presence.self"
        case .person: "presence.person"
        case .linkCode: "presence.linkCode"
        case .linked: "presence.linked"
        case .unlinked: "presence.unlinked"
        case .deleted: "presence.deleted"
        case .devices: "presence.devices"
        case .blocked: "presence.blocked"
        }
    }

    init?(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "presence.self": self = .own(try OwnPresence(members: members))
        case "presence.person": self = .person(try FoundPerson(members: members))
        case "presence.linkCode": self = .linkCode(try LinkCode(members: members))
        case "presence.linked": self = .linked(try Linked(members: members))
        case "presence.unlinked": self = .unlinked
        case "presence.deleted": self = .deleted
        case "presence.devices": self = .devices(try Devices(members: members))
        case "presence.blocked": self = .blocked(try PeopleList(members: members))
        default: return nil
        }
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .unlinked, .deleted: break
        case .own(var payload): try payload.fields(&coder)
        case .person(var payload): try payload.fields(&coder)
        case .linkCode(var payload): try payload.fields(&coder)
        case .linked(var payload): try payload.fields(&coder)
        case .devices(var payload): try payload.fields(&coder)
        case .blocked(var payload): try payload.fields(&coder)
        }
    }
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

/// How one's own person is there.
public struct OwnPresence: Payload, Hashable {
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

public struct FoundPerson: Payload, Hashable {
    public var re: UInt64 = 0
    public var person = PersonInfo()
    public init() {}
    public init(re: UInt64, person: PersonInfo) { (self.re, self.person) = (re, person) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.nested("person", &person)
    }
}

public struct LinkCode: Payload, Hashable {
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

public struct Linked: Payload, Hashable {
    public var re: UInt64 = 0
    public var person = PersonID(high: 0, low: 0)
    public init() {}
    public init(re: UInt64, person: PersonID) { (self.re, self.person) = (re, person) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.id("personId", &person)
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

public struct Devices: Payload, Hashable {
    public var re: UInt64 = 0
    public var devices: [DeviceInfo] = []
    public init() {}
    public init(re: UInt64, devices: [DeviceInfo]) { (self.re, self.devices) = (re, devices) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.list("devices", &devices)
    }
}

/// Contacts, or people one blocked.
public struct PeopleList: Payload, Hashable {
    public var re: UInt64 = 0
    public var people: [PersonInfo] = []
    public init() {}
    public init(re: UInt64, people: [PersonInfo]) { (self.re, self.people) = (re, people) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.list("people", &people)
    }
}
