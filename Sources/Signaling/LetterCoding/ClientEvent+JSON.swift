import Wire

extension ClientEvent: LetterEvent {
    static var blanks: [ClientEvent] {
        [
            .deliver(.blank), .joinRefused(re: 0, .blank, match: nil), .leftSession(.unset, .blank), .roulette(.blank),
            .call(nil), .room(nil), .expel(.blank, .blank),
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
        // Events of the client's socket, which is on the client's node. `deliverBroadcast` goes to other nodes as `Letter.clients`.
        case .message, .unreadable, .asked, .suspended, .recovered, .perch, .perchSignal, .closed, .moved, .resume,
            .deliverBroadcast, .connected, .requested:
            throw .staysHere
        }
    }
}
