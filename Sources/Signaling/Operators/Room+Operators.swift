import Wire

/// Handles the requests of operators and applications, who are not in the room. No role restricts them.
extension Room {
    mutating func perform(_ request: OperatorRequest, _ context: inout Context) {
        let reply: OperatorReply
        do throws(WireError) { reply = try self.reply(to: request.action, &context) } catch { reply = .refused(error) }
        context.answer(request.socket, reply)
    }

    private mutating func reply(
        to action: OperatorRequest.Action, _ context: inout Context
    ) throws(WireError) -> OperatorReply {
        switch action {
        case .change(_, let changes): try change(changes, lasts: true, &context)
        case .token(_, let wish): return .token(try makeToken(wish, &context))
        case .file(_, let id, let action): return try perform(action, id, &context)
        case .close:
            end(&context)
            return .closed
        case .check(let application):
            try permit(application, &context)
            _ = try takePlace(for: application.applicant, isAdmitted: false, isReturning: false, context.rules)
            return .admissible
        // For `create`, the registry has already created the room. It also handles `list`, and sessions handle
        // `session`.
        case .create, .describe, .list, .session: break
        }
        return .room(description)
    }

    private mutating func makeToken(_ wish: RoomTokenRequest, _ context: inout Context) throws(WireError) -> RoomToken {
        guard let displayName = PersonName.normalized(wish.displayName) else { throw PersonName.invalid }
        if wish.role == .host { noteHostToken(&context) }
        let lifetime = wish.lifetime.map { Duration.seconds($0) } ?? context.rules.matchTokenLifetime
        let claims = RoomTokenClaims(
            room: name, id: id, role: wish.role, displayName: displayName, lifetime: lifetime)
        let token = context.project.makeRoomToken(claims, now: context.wallNow, using: &context.random)
        return RoomToken(
            token: token, expiresAt: context.wallNow + lifetime, path: "/room/\(name.pathComponent)#token=\(token)")
    }

    var summary: RoomSummary {
        var summary = RoomSummary()
        (summary.name, summary.id, summary.options, summary.createdAt) = (name, id, options, createdAt)
        (summary.peopleCount, summary.waitingCount) = (roster.count, lobby.waiting.count)
        return summary
    }

    private var description: RoomDescription {
        var description = RoomDescription()
        (description.summary, description.session, description.people) = (summary, session, roster.people)
        return description
    }
}
