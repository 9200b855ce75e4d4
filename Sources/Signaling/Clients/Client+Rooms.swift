import Wire

/// The room that a client is in. A client connection is in at most one room at a time, so its requests need not name
/// the room.
extension Client {
    /// The client's address and the name that its user token states.
    struct Origin: Equatable, Sendable {
        /// The remote address in canonical text, for per-address limits.
        var address: String
        /// The name in the user token, if any.
        var vouchedName: String?
    }

    mutating func perform(_ verb: RoomVerb, re: UInt64, _ context: inout Context) {
        if case .join(let join) = verb { return self.join(join, Request(id, re), &context) }
        if case .leave = verb, room == nil, entering != nil, leaving == nil {
            // Answered together with the join.
            leaving = re
            return
        }
        guard let room else { return fail(.notInRoom, re: re, &context) }
        if case .set(let change) = verb, change.options.persistent == true {
            return context.tell(.roomRegistry(.keep(id, re: re, room.name, change)))
        }
        context.tell(.room(room.name, .verb(id, re: re, verb)))
    }

    private mutating func join(_ join: RoomVerb.Join, _ request: Request, _ context: inout Context) {
        guard room == nil, entering == nil else {
            let error = WireError(
                .alreadyJoined, "You are in a room or waiting for one. Send room.leave, and wait for its answer.")
            return fail(error, re: request.re, &context)
        }
        var join = join
        let grant: RoomGrant?
        do throws(WireError) { grant = try self.grant(of: join, context) } catch {
            return refuseJoin(re: request.re, error, match: nil, &context)
        }
        if let grant { join.name = grant.room }
        guard let name = shownName(join.displayName, grant, context) else {
            return fail(PersonName.invalid, re: request.re, &context)
        }
        let applicant = RoomApplicant(
            client: id, identity: identity, address: origin.address, name: name, grant: grant)
        entering = request.re
        context.tell(.roomRegistry(.join(RoomApplication(applicant: applicant, re: request.re, join: join))))
    }

    /// Verifies the room token in a join request. Returns nil if the request has none. Throws if the token is invalid,
    /// or if the request names another room. The room checks whether the token was created for an earlier room with
    /// the same name, or was revoked.
    private func grant(of join: RoomVerb.Join, _ context: Context) throws(WireError) -> RoomGrant? {
        guard let token = join.token else { return nil }
        let grant = try context.project.verifyRoomToken(token, now: context.wallNow)
        guard join.name == nil || join.name == grant.room else {
            throw WireError(.tokenRoom, "The token is for another room. Join that room, or omit the room's name.")
        }
        return grant
    }

    /// Returns the name to show in a room: the name in the room token, else the name in the user token, else the
    /// requested one. An empty name is replaced by a generated one. Returns nil if the requested name would be shown
    /// but is invalid.
    private func shownName(_ requested: String, _ grant: RoomGrant?, _ context: Context) -> String? {
        let granted = grant.flatMap { $0.displayName.isEmpty ? nil : $0.displayName }
        let name = granted ?? origin.vouchedName.map(PersonName.vouched) ?? PersonName.normalized(requested)
        return name.map { $0.isEmpty ? PersonName.generated(context.project.personID(of: identity)) : $0 }
    }

    /// The request to join a room was answered; if the room admitted the client, `setRoom` was called before. If the client has requested
    /// to leave meanwhile, it leaves now.
    mutating func joinAnswered(_ context: inout Context) {
        entering = nil
        guard let re = leaving, presence != .gone else { return }
        leaving = nil
        guard let room else { return context.ok(Request(id, re)) }
        context.tell(.room(room.name, .verb(id, re: re, .leave)))
    }

    mutating func setRoom(_ seat: RoomSeat?) {
        room = seat
        // Remember the place: the client may send a join with the token of this place before it is notified that it
        // lost the place.
        if let place = seat?.place { recentlyEnded.remember(place.binding) }
    }

    /// Leaves the client's room if `session`, which the client is no longer in, is the room's session. `moderator` is
    /// the client that removed this one; nil if none did.
    func leaveRoom(of session: SessionID, by moderator: ConnectionID?, _ context: inout Context) {
        guard let room, room.place?.session == session else { return }
        context.tell(.room(room.name, .leftSession(id, by: moderator)))
    }
}
