import Wire

extension PoolEvent: LetterEvent {
    static var blanks: [PoolEvent] {
        [
            .enter(.blank), .withdraw(.blank), .reserved(.blank, .blank), .refused(.blank, .blank),
            .exclude(.blank, .blank), .count(.blank, re: 0, ClientCounts()),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .enter(let entry):
            try coder.event("enter")
            self = try .enter(coder("entry", entry))
        case .withdraw(let person):
            try coder.event("withdraw")
            self = try .withdraw(coder("person", person))
        case .reserved(let match, let person):
            try coder.event("reserved")
            self = try .reserved(coder("match", match), coder("person", person))
        case .refused(let match, let person):
            try coder.event("refused")
            self = try .refused(coder("match", match), coder("person", person))
        case .exclude(let person, let other):
            try coder.event("exclude")
            self = try .exclude(coder("person", person), coder("other", other))
        case .count(let client, let re, let counts):
            try coder.event("count")
            self = try .count(
                coder("client", client), re: coder.re(re),
                ClientCounts(
                    clients: coder.count("online", counts.clients), waiting: coder.count("waiting", counts.waiting)))
        }
    }
}

extension MatchEvent: LetterEvent {
    static var blanks: [MatchEvent] {
        [.begin(.blank, .blank, .blank), .leave(.blank, .blank), .away(.blank, false), .moved(.blank, address: "")]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .begin(let mode, let one, let other):
            try coder.event("begin")
            self = try .begin(coder("mode", mode), coder("one", one), coder("other", other))
        case .leave(let person, let reason):
            try coder.event("leave")
            self = try .leave(coder("person", person), coder("reason", reason))
        case .away(let person, let isAway):
            try coder.event("away")
            self = try .away(coder("person", person), coder("away", isAway))
        case .moved(let person, let address):
            try coder.event("moved")
            self = try .moved(coder("person", person), address: coder.text("address", address))
        }
    }
}
