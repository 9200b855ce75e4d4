import Wire

extension ClientEvent: LetterEvent {
    static var blanks: [ClientEvent] {
        [
            .deliver(.blank), .joinRefused(re: 0, .blank, match: nil), .leftSession(.unset, .blank), .roulette(.blank),
            .call(nil), .room(nil), .expel(.blank, .blank), .perchSignal(.blank, .blank),
        ]
    }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .deliver(let message):
            try coder.event("deliver")
            self = try .deliver(coder("message", message))
        case .joinRefused(let re, let error, let match):
            try coder.event("joinRefused")
            self = try .joinRefused(re: coder.re(re), coder("error", error), match: coder("match", match))
        case .leftSession(let session, let reason, let moderator):
            try coder.event("leftSession")
            self = try .leftSession(coder("session", session), coder("reason", reason), by: coder("by", moderator))
        case .roulette(let state):
            try coder.event("roulette")
            self = try .roulette(coder("roulette", state))
        case .call(let call):
            try coder.event("call")
            self = try .call(coder("call", call))
        case .room(let seat):
            try coder.event("room")
            self = try .room(coder("seat", seat))
        case .expel(let error, let code, let re):
            try coder.event("expel")
            self = try .expel(coder("error", error), coder("code", code), re: coder.re(re))
        case .perchSignal(let member, let signal):
            try coder.event("perchSignal")
            self = try .perchSignal(coder("from", member), coder("signal", signal))
        // Events of the client's socket, which is on the client's node. `deliverBroadcast` goes to other nodes as `Letter.clients`.
        case .message, .unreadable, .asked, .suspended, .recovered, .perch, .closed, .moved, .resume,
            .deliverBroadcast, .connected, .requested:
            throw .staysHere
        }
    }
}

extension PerchSignal: LetterRecord {
    static var blank: PerchSignal { PerchSignal(connection: "", .bye) }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        var (offer, answer, candidate): (String?, String?, PerchCandidate?)
        switch content {
        case .offer(let sdp): offer = sdp
        case .answer(let sdp): answer = sdp
        case .candidate(let line): candidate = line
        case .bye: break
        }
        try coder.string("connection", &connection, max: Limits.negotiationID)
        try coder.string("offer", &offer, max: Limits.description)
        try coder.string("answer", &answer, max: Limits.description)
        try coder.member("candidate", &candidate)
        content = offer.map(Content.offer) ?? answer.map(Content.answer) ?? candidate.map(Content.candidate) ?? .bye
    }
}

extension PerchCandidate: LetterRecord {
    static var blank: PerchCandidate { PerchCandidate(label: 0, mid: "", candidate: "") }
    mutating func members(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("label", &label, in: 0...Self.maxLabel)
        try coder.string("mid", &mid, max: Limits.mid)
        try coder.string("candidate", &candidate, max: Self.maxSize)
    }
}
