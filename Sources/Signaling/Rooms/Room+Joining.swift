import Wire

/// Decides who comes in.
extension Room {
    mutating func join(_ application: RoomApplication, _ turn: inout Turn) {
        let (applicant, request) = (application.applicant, application.request)
        do throws(WireError) {
            if applicant.isPerch {
                try permitPerch(applicant.identity, now: turn.now)
                return enter(applicant, re: request.re, &turn)
            }
            try permit(application, &turn)
            try makeRoom(for: applicant, &turn)
            guard mustWait(applicant) else { return enter(applicant, re: request.re, &turn) }
            try lobby.knock(applicant, turn)
        } catch {
            return turn.fail(error, request)
        }
        turn.tell(.client(applicant.client, .room(RoomSeat(name: name))))
        turn.send(.room(.waiting(.init(re: request.re, name: name))), to: applicant.client)
        tellKnock(of: applicant, waiting: true, &turn)
    }

    private func isCreator(_ applicant: RoomApplicant) -> Bool { applicant.identity == creator }

    private func permit(_ application: RoomApplication, _ turn: inout Turn) throws(WireError) {
        guard !bans.contains(application.applicant.identity) else { throw .roomBanned }
        guard !isCreator(application.applicant) else { return }
        guard !options.locked else {
            throw WireError(
                .roomLocked, "This room is locked. Ask a person who is in it to unlock it.", retryable: true)
        }
        guard !settings.accepts(application.join.password) else { return }
        guard application.join.password != nil else {
            throw WireError(.roomPassword, "This room has a password. Send it with room.join.", retryable: true)
        }
        turn.tell(.roomRegister(.wrongPassword(address: application.applicant.address)))
        throw WireError(.roomPassword, "This is not the room's password. Ask for it and try again.", retryable: true)
    }

    /// Throws if the room is full. A connection of the same person that dropped gives way: the person is back, but could not
    /// resume it.
    private mutating func makeRoom(for applicant: RoomApplicant, _ turn: inout Turn) throws(WireError) {
        guard roster.count >= options.capacity else { return }
        let former = roster.members.first { $0.isDropped && $0.identity == applicant.identity }
        // Those who already wait for a place come first.
        let isNext = options.lobby || lobby.waiting.isEmpty
        guard roster.count == options.capacity, isNext, let former else { throw full }
        remove(former.client, .replaced, &turn)
    }

    var full: WireError {
        WireError(
            .roomFull, "This room has its maximum of \(options.capacity) people. Try again when someone has left.",
            retryable: true)
    }

    /// Without a creator, nobody else could ever open an empty room that has a lobby.
    private func mustWait(_ applicant: RoomApplicant) -> Bool {
        options.lobby && !isCreator(applicant) && !(roster.isEmpty && creator == nil)
    }

    // MARK: Coming in

    /// - Parameter re: the request that this answers; nil after waiting.
    mutating func enter(_ applicant: RoomApplicant, re: UInt64?, _ turn: inout Turn) {
        let role: RoomRole = needsHost(applicant) || isCreator(applicant) ? .host : .guest
        let binding = MatchID.random(using: &turn.random)
        let member = roster.insert(applicant, as: role, binding, now: turn.now)
        updateState(turn)
        turn.tell(.session(session, .room(.place(binding, role))))
        turn.tell(.session(session, .room(.screens(onlyOfHosts: options.share == .hosts))))
        let place = RoomSeat.Place(session: session, binding: binding)
        turn.tell(.client(applicant.client, .room(RoomSeat(name: name, place: place))))
        var joined = RoomNotice.Joined()
        (joined.re, joined.name, joined.role, joined.options) = (re, name, role, options)
        joined.admission = turn.admission(
            to: session, role.sessionRole, match: binding, for: applicant.identity)
        (joined.people, joined.chat) = (roster.people, Array(chat.lines))
        turn.send(.room(.joined(joined)), to: applicant.client)
        broadcast(.person(member.person), except: applicant.client, &turn)
        if role.moderates { sendKnocks(to: applicant.client, &turn) }
    }

    /// Lets in those who wait for a room that no longer has a lobby, as many as it has places.
    mutating func admitWaiting(_ turn: inout Turn) {
        guard !options.lobby, state != .over else { return }
        while let next = lobby.waiting.first, roster.count < options.capacity { admit(next, &turn) }
    }

    mutating func admit(_ applicant: RoomApplicant, _ turn: inout Turn) {
        guard lobby.remove(applicant.client) != nil else { return }
        tellKnock(of: applicant, waiting: false, &turn)
        enter(applicant, re: nil, &turn)
    }

    /// Tells someone who waited that they are not let in. They must no longer be in the lobby.
    func refuse(_ applicant: RoomApplicant, _ error: WireError, _ turn: inout Turn) {
        turn.tell(.client(applicant.client, .room(nil)))
        turn.send(.room(.refused(.init(name: name, error))), to: applicant.client)
        tellKnock(of: applicant, waiting: false, &turn)
    }
}

extension WireError {
    static let noRoom = WireError(.roomNotFound, "There is no room with this name any longer. Join again to open it.")
    static let notInRoom = WireError(.notJoined, "Join a room first (room.join).")
    static let roomEnded = WireError(.roomNotFound, "The room ended while you were waiting. Join it again to open it.")
    static let roomBanned = WireError(.roomBanned, "A host banned you from this room. Use another room.")
}
