import Wire

/// Handles requests from people in the room, and checks what their role allows.
extension Room {
    mutating func perform(_ verb: RoomVerb, _ request: Request, _ context: inout Context) {
        if case .leave = verb {
            leave(request.client, &context)
            return context.ok(request)
        }
        guard let member = roster[request.client] else {
            let waiting = WireError(.notJoined, "You are not in the room yet. Wait until a host admits you.")
            return context.fail(lobby.contains(request.client) ? waiting : .notInRoom, request)
        }
        do throws(WireError) {
            if case .file(let file) = verb { return try promiseFile(file, by: member, re: request.re, &context) }
            try perform(verb, by: member, &context)
        } catch {
            return context.fail(error, request)
        }
        context.ok(request)
    }

    private mutating func perform(_ verb: RoomVerb, by member: RoomRoster.Member, _ context: inout Context)
        throws(WireError)
    {
        switch verb {
        case .admit, .deny, .set, .mute, .stopShare, .remove, .role: try moderate(verb, by: member, &context)
        case .say(let verb): try say(verb.text, by: member, &context)
        case .hand(let verb):
            try takeGesture(member, context)
            guard roster.setHand(verb.raised, member.client, now: context.wallNow) else { return }
            guard let changed = roster[member.client] else { return }
            broadcast(.person(changed.person), &context)
        case .react(let verb):
            try takeGesture(member, context)
            broadcast(.reacted(.init(connection: member.client, reaction: verb.reaction)), &context)
        case .removeFile(let verb): try removeFile(verb.id, by: member, &context)
        // The client's state machine sends `join` to the registry. `leave` and `file` were handled earlier.
        case .join, .leave, .file: return
        }
    }

    private mutating func takeGesture(_ member: RoomRoster.Member, _ context: Context) throws(WireError) {
        let wait = gestures.take(member.identity, context.rules.roomGestures, now: context.now)
        if let wait { throw .tooFast(wait) }
        try charge(context)
    }

    private mutating func say(_ text: String, by member: RoomRoster.Member, _ context: inout Context) throws(WireError)
    {
        guard options.chat else { throw .chatIsOff }
        let wait = talk.take(member.identity, context.rules.roomTalk, now: context.now)
        if let wait { throw .tooFast(wait) }
        let line = RoomLine(
            connection: member.client, displayName: member.person.displayName, text: text, at: context.wallNow)
        try RoomChat.permit(line, context.rules)
        // Charge the encoded size, which can be larger than the text: JSON encodes a control character in six bytes.
        try charge(textSize: line.encodedSize, context)
        tell(line, &context)
    }
}

extension WireError {
    static func tooFast(_ wait: Duration) -> WireError {
        WireError(
            .rateLimited, "Too many messages to this room. Try again in \(wait.roundedText).", retryable: true,
            retryAfter: wait)
    }
}
