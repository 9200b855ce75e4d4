import Wire

extension RoomEvent: LetterEvent {
    static var blanks: [RoomEvent] {
        [
            .join(.blank), .verb(.blank, re: 0, .blank), .away(.blank, false), .gone(.blank),
            .leftSession(.blank, by: nil),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .join(let application):
            try coder.event("join")
            self = try .join(coder("application", application))
        case .verb(let client, let re, let verb):
            try coder.event("verb")
            self = try .verb(coder("client", client), re: coder.re(re), coder("message", verb))
        case .away(let client, let isAway):
            try coder.event("away")
            self = try .away(coder("client", client), coder("away", isAway))
        case .gone(let client):
            try coder.event("gone")
            self = try .gone(coder("client", client))
        case .leftSession(let client, let moderator):
            try coder.event("leftSession")
            self = try .leftSession(coder("client", client), by: coder("by", moderator))
        // From this node's room registry, storage and operators.
        case .open, .restore, .operate, .list, .close, .personDeleted, .notStored, .placeLost: throw .staysHere
        }
    }
}

extension RoomRegistryEvent: LetterEvent {
    static var blanks: [RoomRegistryEvent] {
        [.join(.blank), .keep(.blank, re: 0, .unset, .blank), .personDeleted(.blank)]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .join(let application):
            try coder.event("join")
            self = try .join(coder("application", application))
        case .keep(let client, let re, let room, let change):
            try coder.event("keep")
            self = try .keep(coder("client", client), re: coder.re(re), coder("room", room), coder("change", change))
        case .personDeleted(let person):
            try coder.event("personDeleted")
            self = try .personDeleted(coder("person", person))
        // From this node's rooms, storage and operators.
        case .operate, .restore, .wrongPassword, .persistence, .ended, .notStored: throw .staysHere
        }
    }
}
