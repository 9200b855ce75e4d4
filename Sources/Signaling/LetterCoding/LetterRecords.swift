import Wire

// The members of the records in letters to people, the roulette, calls and the directory.

extension Counterpart: LetterRecord {
    static var blank: Counterpart { Counterpart(identity: .blank, person: .blank, name: "", isOnline: false) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("identity", &identity)
        try coder.id("person", &person)
        try coder.string("name", &name, max: Limits.name)
        try coder.bool("online", &isOnline)
    }
}

extension DeviceName: LetterRecord {
    static var blank: DeviceName { .none }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        var (vouched, chosen): (String?, String?)
        switch self {
        case .vouched(let name): vouched = name
        case .chosen(let name): chosen = name
        case .none: break
        }
        try coder.string("vouched", &vouched, max: Limits.name)
        try coder.string("chosen", &chosen, max: Limits.name)
        self = vouched.map(DeviceName.vouched) ?? chosen.map(DeviceName.chosen) ?? .none
    }
}

extension LinkedDevice: LetterRecord {
    static var blank: LinkedDevice { LinkedDevice(identity: .blank, label: "", linkedAt: .blank) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("identity", &identity)
        try coder.string("label", &label, max: Limits.name)
        try coder.timestamp("linkedAt", &linkedAt)
    }
}

extension Introduction: LetterRecord {
    static var blank: Introduction { Introduction(identity: .blank, client: .blank, re: 0, .blank) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("identity", &identity)
        try coder.id("client", &client)
        re = try coder.re(re)
        try coder.member("message", &message)
    }
}

extension FoundPerson: LetterRecord {
    static var blank: FoundPerson { FoundPerson(identity: .blank, name: "") }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("identity", &identity)
        try coder.string("name", &name, max: Limits.name)
    }
}

// MARK: - Roulette and people nearby

extension PoolEntry: LetterRecord {
    static var blank: PoolEntry { PoolEntry(identity: .blank) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("identity", &identity)
        try coder.choice("mode", &mode)
        var interests: [String]? = interests
        // `roulette.maxInterests` is at most 100.
        try coder.strings("interests", &interests, max: Limits.name, count: 100)
        self.interests = interests ?? []
        try coder.string("name", &name, max: Limits.name)
        try coder.string("address", &address, max: Limits.name)
        excluded = try coder.identities("excluded", excluded)
        try coder.id("lastPartner", &lastPartner)
        try coder.member("home", &home)
        node = try coder.node("node", node)
    }
}

extension Listing: LetterRecord {
    static var blank: Listing { Listing(identity: .blank, person: .blank, name: "", isBusy: false, cell: .blank) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("identity", &identity)
        try coder.id("person", &person)
        try coder.string("name", &name, max: Limits.name)
        try coder.bool("busy", &isBusy)
        try coder.member("cell", &cell)
        blocked = try coder.identities("blocked", blocked)
    }
}

extension Cell: LetterRecord {
    static var blank: Cell { Cell(row: 0, column: 0) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("row", &row, in: 0...(Self.rows - 1))
        try coder.integer("column", &column, in: 0...(Self.columns(inRow: row) - 1))
    }
}

extension Report: LetterRecord {
    static var blank: Report {
        Report(match: .blank, by: .blank, against: .blank, reason: "", lines: [], createdAt: .blank)
    }
    /// The lines of the text chat are left out, because the session that receives the report adds them.
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("match", &match)
        try coder.id("by", &by)
        try coder.id("against", &against)
        try coder.string("reason", &reason, max: Limits.reason)
        try coder.timestamp("createdAt", &createdAt)
        try coder.string("byAddress", &byAddress, max: Limits.name)
        try coder.string("againstAddress", &againstAddress, max: Limits.name)
    }
}

// MARK: - Calls

extension CallAttempt: LetterRecord {
    static var blank: CallAttempt {
        CallAttempt(
            caller: .blank, client: .blank, re: 0, callee: .blank, calleeName: "", calleeNode: nil, video: false)
    }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("caller", &caller)
        try coder.id("client", &client)
        re = try coder.re(re)
        try coder.id("callee", &callee)
        try coder.string("calleeName", &calleeName, max: Limits.name)
        calleeNode = try coder.node("calleeNode", calleeNode)
        try coder.bool("video", &video)
    }
}

extension CallOffer: LetterRecord {
    static var blank: CallOffer {
        CallOffer(call: .blank, other: .blank, video: false, placedAt: .blank, ringsUntil: .blank)
    }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("call", &call)
        try coder.member("other", &other)
        try coder.bool("video", &video)
        try coder.timestamp("placedAt", &placedAt)
        try coder.timestamp("ringsUntil", &ringsUntil)
    }
}

extension CallAgreement: LetterRecord {
    static var blank: CallAgreement {
        CallAgreement(call: .blank, withVideo: false, since: .blank, admission: .blank, mediaMode: .blank)
    }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("call", &call)
        try coder.bool("withVideo", &withVideo)
        try coder.timestamp("since", &since)
        try coder.member("admission", &admission)
        try coder.choice("mediaMode", &mediaMode)
    }
}

extension CallEnd: LetterRecord {
    static var blank: CallEnd { CallEnd(record: .blank, into: nil) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.member("record", &record)
        try coder.id("into", &into)
    }
}

extension CallRecord: LetterRecord {
    static var blank: CallRecord {
        CallRecord(
            call: .blank, other: .blank, otherName: "", direction: .blank, outcome: .blank, video: false, at: .blank,
            duration: nil, isSeen: false)
    }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("call", &call)
        try coder.id("other", &other)
        try coder.string("otherName", &otherName, max: Limits.name)
        try coder.choice("direction", &direction)
        try coder.choice("outcome", &outcome)
        try coder.bool("video", &video)
        try coder.timestamp("at", &at)
        try coder.milliseconds("durationMs", &duration)
        try coder.bool("seen", &isSeen)
    }
}
