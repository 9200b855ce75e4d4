import Wire

// The members of the records in letters to sessions and rooms.

extension SessionGrant: LetterRecord {
    static var blank: SessionGrant { SessionGrant(session: .unset, mediaMode: .blank, role: .blank, data: "") }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("session", &session)
        try coder.choice("mediaMode", &mediaMode)
        try coder.bool("relayedOnly", &isRelayedOnly)
        try coder.choice("role", &role)
        try coder.string("data", &data, max: Limits.connectionData * 4)
        var classes: [String]? = layoutClasses
        try coder.strings("layoutClasses", &classes, max: Limits.name)
        layoutClasses = classes ?? []
        try coder.id("match", &match)
        try coder.string("holder", &holder, max: Limits.name)
        try coder.bytes("fingerprint", &fingerprint)
        try coder.timestamp("expiresAt", &expiresAt)
    }
}

extension RoomGrant: LetterRecord {
    static var blank: RoomGrant { RoomGrant(room: .unset, id: .blank, role: .blank, displayName: "", fingerprint: []) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("room", &room)
        try coder.id("id", &id)
        try coder.choice("role", &role)
        try coder.string("displayName", &displayName, max: Limits.name)
        try coder.bytes("fingerprint", &fingerprint)
    }
}

extension RoomApplication: LetterRecord {
    static var blank: RoomApplication {
        let applicant = RoomApplicant(client: .blank, identity: .blank, address: "", name: "")
        return RoomApplication(applicant: applicant, re: 0, join: RoomVerb.Join())
    }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("applicant", &applicant)
        re = try coder.re(re)
        try coder.member("join", &join)
    }
}

extension RoomApplicant: LetterRecord {
    static var blank: RoomApplicant { RoomApplicant(client: .blank, identity: .blank, address: "", name: "") }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("client", &client)
        try coder.id("identity", &identity)
        try coder.string("address", &address, max: Limits.name)
        try coder.string("name", &name, max: Limits.name)
        try coder.member("grant", &grant)
        try coder.bool("away", &isAway)
        var abilities = abilities.rawValue
        try coder.integer("abilities", &abilities, in: 0...UInt8.max)
        self.abilities = RoomAbilities(rawValue: abilities)
    }
}

extension RoomSeat: LetterRecord {
    static var blank: RoomSeat { RoomSeat(name: .unset) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("name", &name)
        try coder.member("place", &place)
    }
}

extension RoomSeat.Place: LetterRecord {
    static var blank: RoomSeat.Place { RoomSeat.Place(session: .unset, binding: .blank) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("session", &session)
        try coder.id("binding", &binding)
    }
}

extension RoomRights: LetterRecord {
    static var blank: RoomRights { RoomRights(.guest, hasToken: false) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        self = try RoomRights(coder("lasting", lasting), role: coder("role", role), hasToken: coder("token", hasToken))
    }
}

extension RoomTarget: LetterRecord {
    static var blank: RoomTarget { .one(.blank) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        var (one, except): (MatchID?, MatchID?)
        switch self {
        case .one(let binding): one = binding
        case .everyone(let binding): except = binding
        }
        try coder.id("one", &one)
        try coder.id("everyoneExcept", &except)
        guard let target = one.map(RoomTarget.one) ?? except.map(RoomTarget.everyone) else {
            throw WireError(.malformed, "The target must be \"one\" or \"everyoneExcept\".")
        }
        self = target
    }
}
