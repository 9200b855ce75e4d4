import Wire

/// Handles the requests of people in the room, and checks what their role allows.
extension Room {
    mutating func perform(_ verb: RoomVerb, _ request: Request, _ turn: inout Turn) {
        if case .leave = verb {
            leave(request.client, &turn)
            return turn.ok(request)
        }
        guard let member = roster[request.client] else {
            let waiting = WireError(.notJoined, "You are not in the room yet. Wait until a host admits you.")
            return turn.fail(lobby.contains(request.client) ? waiting : .notInRoom, request)
        }
        do throws(WireError) {
            if case .file(let file) = verb { return try promiseFile(file, by: member, re: request.re, &turn) }
            try perform(verb, by: member, &turn)
        } catch {
            return turn.fail(error, request)
        }
        turn.ok(request)
    }

    private mutating func perform(_ verb: RoomVerb, by member: RoomRoster.Member, _ turn: inout Turn) throws(WireError)
    {
        switch verb {
        case .admit, .deny, .set, .mute, .stopShare, .remove, .role: try moderate(verb, by: member, &turn)
        case .say(let verb): try say(verb.text, by: member, &turn)
        case .hand(let verb):
            try takeGesture(member, turn)
            guard roster.setHand(verb.raised, member.client, now: turn.wallNow) else { return }
            guard let changed = roster[member.client] else { return }
            broadcast(.person(changed.person), &turn)
        case .react(let verb):
            try takeGesture(member, turn)
            broadcast(.reacted(.init(connection: member.client, reaction: verb.reaction)), &turn)
        case .removeFile(let verb): try removeFile(verb.id, by: member, &turn)
        // The client's state machine sends `join` to the registry. `leave` and `file` were handled earlier.
        case .join, .leave, .file: return
        }
    }

    private mutating func takeGesture(_ member: RoomRoster.Member, _ turn: Turn) throws(WireError) {
        let wait = gestures.take(member.identity, turn.rules.roomGestures, now: turn.now)
        if let wait { throw .tooFast(wait) }
        try charge(turn)
    }

    private mutating func say(_ text: String, by member: RoomRoster.Member, _ turn: inout Turn) throws(WireError) {
        guard options.chat else { throw .chatIsOff }
        let wait = talk.take(member.identity, turn.rules.roomTalk, now: turn.now)
        if let wait { throw .tooFast(wait) }
        let line = RoomLine(
            connection: member.client, displayName: member.person.displayName, text: text, at: turn.wallNow)
        try RoomChat.permit(line, turn.rules)
        // Charge the encoded size, because JSON encodes a control character in six bytes.
        try charge(textSize: line.encodedSize, turn)
        tell(line, &turn)
    }
}

extension WireError {
    static func tooFast(_ wait: Duration) -> WireError {
        WireError(
            .rateLimited, "Too many messages to this room. Try again in \(wait.roundedText).", retryable: true,
            retryAfter: wait)
    }
}
