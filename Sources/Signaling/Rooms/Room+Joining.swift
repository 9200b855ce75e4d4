import Wire

/// Decides who may enter the room.
extension Room {
    mutating func join(_ application: RoomApplication, _ context: inout Context) {
        let (applicant, request) = (application.applicant, application.request)
        let former: ConnectionID?
        let formerKnock: RoomApplicant?
        do throws(WireError) {
            try permit(application, &context)
            let waits = mustWait(applicant)
            former = try takePlace(
                for: applicant, isAdmitted: waits, isReturning: application.join.room != nil, context.rules)
            guard waits else {
                // Check `routedOnly` only now, so that only people who could otherwise enter the room get the error for
                // it.
                try application.permitMesh(options)
                try chargeArrival(of: applicant, replacing: former, context)
                if let former { remove(former, .replaced, &context) }
                return enter(applicant, re: request.re, &context)
            }
            // Knock in a copy of the lobby. If a later check throws, the person receives the error immediately,
            // without having knocked.
            var lobby = lobby
            formerKnock = try lobby.knock(applicant, context)
            try application.permitMesh(options)
            try arrivals.chargeKnock(to: roster.moderators.count, context)
            self.lobby = lobby
        } catch {
            return context.refuse(application, error)
        }
        if let formerKnock { refuse(formerKnock, .waitsElsewhere, &context) }
        context.figures.rooms.joins["waiting", default: 0] += 1
        context.tell(.client(applicant.client, .room(RoomSeat(name: name))))
        context.send(.room(.waiting(.init(re: request.re, name: name))), to: applicant.client)
        sendKnock(of: applicant, waiting: true, &context)
        // Remove the old connection only now: if the knock had failed, the person would have kept their place.
        if let former { remove(former, .replaced, &context) }
    }

    private func isCreator(_ applicant: RoomApplicant) -> Bool { applicant.identity == creator }

    /// Returns whether this person always becomes host when entering.
    private func isOwner(_ applicant: RoomApplicant) -> Bool {
        isCreator(applicant) || applicant.grant?.role == .host
    }

    func permit(_ application: RoomApplication, _ context: inout Context) throws(WireError) {
        let applicant = application.applicant
        // Check first whether this is the room that the person wants. If it is not, no other error is relevant.
        try permitReturn(application.join)
        guard !isBanned(applicant) else { throw .roomBanned }
        guard applicant.abilities.contains(.routing) || options.media == .mesh else { throw .roomRouted }
        // Check this even for an existing room: the server's settings may have changed with a restart.
        guard context.rules.routesMedia || options.media == .mesh else { throw .roomWithoutMedia }
        if let grant = applicant.grant { try check(grant, of: applicant) }
        let isReturning = application.join.room != nil
        // The creator, and people with a token for a host or cohost, need no password or approval and can enter a
        // locked room.
        guard !passes(applicant) else { return }
        guard !options.locked else {
            throw WireError(
                .roomLocked, "This room is locked. Ask someone in the room to unlock it.", retryable: true)
        }
        guard applicant.grant == nil else { return }
        guard applicant.abilities.contains(.prompts) else {
            return try permitWithoutPrompts(applicant.identity, now: context.now)
        }
        // People who return are exempt: they may still have a password that a host has since removed.
        guard isReturning || settings.password != nil || !application.join.expectsPassword else {
            throw .roomNoPassword
        }
        guard !settings.accepts(application.join.password, context.project.serverKey) else { return }
        guard application.join.password != nil else {
            throw WireError(.roomPassword, "This room has a password. Send it with room.join.", retryable: true)
        }
        context.tell(.roomRegistry(.wrongPassword(address: application.applicant.address)))
        throw WireError(.roomPassword, "Wrong password. Ask for the room's password and try again.", retryable: true)
    }

    /// Checks a person whose client cannot ask its user anything. Throws if the room has a password or a lobby, or if
    /// a host recently removed the person.
    private func permitWithoutPrompts(_ identity: IdentityID, now: Timestamp) throws(WireError) {
        guard settings.password == nil else { throw .roomAsksPassword }
        guard !options.lobby else { throw .roomAsksHost }
        try lobby.permit(identity, now: now)
    }

    /// Returns whether this person may enter regardless of locks, passwords and decisions by stand-ins.
    private func passes(_ applicant: RoomApplicant) -> Bool {
        isCreator(applicant) || applicant.grant?.role.moderates == true
    }

    /// Returns whether a ban keeps the person out. No ban applies to the current creator: someone who bans the creator
    /// for good also ends the creator status. Bans by stand-ins do not apply to anyone who may always enter (`passes`).
    private func isBanned(_ applicant: RoomApplicant) -> Bool {
        if bans.lasting.people.contains(applicant.identity) { return !isCreator(applicant) }
        return bans.temporary.people.contains(applicant.identity) && !passes(applicant)
    }

    private func isRevoked(_ grant: RoomGrant, of applicant: RoomApplicant) -> Bool {
        if bans.lasting.tokens.contains(grant.fingerprint) { return true }
        return bans.temporary.tokens.contains(grant.fingerprint) && !passes(applicant)
    }

    private func check(_ grant: RoomGrant, of applicant: RoomApplicant) throws(WireError) {
        guard grant.id == id else {
            throw WireError(.roomNotFound, "The room that this token was created for has ended. Ask for a new link.")
        }
        guard !isRevoked(grant, of: applicant) else {
            throw WireError(.tokenRevoked, "This token was revoked: its holder was removed from the room.")
        }
    }

    /// Throws if the client wants to return to an earlier room with this name. Does not throw if people from that room
    /// opened this one (`formerID`).
    private func permitReturn(_ join: RoomVerb.Join) throws(WireError) {
        guard let wanted = join.room, wanted != id, wanted != formerID else { return }
        throw WireError(
            .roomOther,
            "The room that you were in has ended, and a different room now has its name. Get the user's consent before "
                + "you join it.")
    }

    private mutating func chargeArrival(
        of applicant: RoomApplicant, replacing former: ConnectionID?, _ context: Context
    ) throws(WireError) {
        try arrivals.charge(applicant, to: roster.count, isReplacing: former != nil, context)
    }

    private func mustWait(_ applicant: RoomApplicant) -> Bool {
        guard options.lobby, !isCreator(applicant), applicant.grant == nil else { return false }
        // If a room with a lobby has no creator and nobody in it can admit people, let the person in. Otherwise nobody
        // could ever enter. If tokens for hosts exist, a host is expected.
        return roster.canHost || creator != nil || hasHostTokens
    }

    // MARK: Entering

    /// Lets a person into the room, and notifies them, the others, and the session.
    ///
    /// - Parameter re: the number of the join request to answer; nil for a person who waited in the lobby, because
    ///   that request was already answered.
    mutating func enter(_ applicant: RoomApplicant, re: UInt64?, _ context: inout Context) {
        let isOwner = isOwner(applicant)
        if isOwner { (ownersAddress, isOwnersAddressLost) = (applicant.address, false) }
        var rights = RoomRights(isOwner ? .host : applicant.grant?.role ?? .guest, hasToken: applicant.grant != nil)
        // Someone must always be host, so the first person in an empty room becomes host. If no client in the room can
        // moderate and the new one can, the new person becomes host too.
        if roster.isEmpty || applicant.abilities.contains(.hosting) && !roster.canHost { rights.standIn() }
        let role = rights.role
        // End the roles of stand-ins before inserting the new person, so that the new person's role cannot be ended
        // too.
        let former = isOwner ? roster.endStandIns() : []
        context.figures.rooms.joins["joined", default: 0] += 1
        let binding: MatchID = context.newID()
        let member = roster.insert(applicant, with: rights, binding, &context)
        updateState(&context)
        context.tell(.session(session, .room(.place(binding, rights))))
        context.tell(.session(session, .room(.screens(onlyOfHosts: options.share == .hosts))))
        let place = RoomSeat.Place(session: session, binding: binding)
        context.tell(.client(applicant.client, .room(RoomSeat(name: name, place: place))))
        var joined = RoomNotice.Joined()
        (joined.re, joined.name, joined.role, joined.options) = (re, name, role, options)
        joined.room = returnID
        joined.admission = context.admission(
            to: session, role.sessionRole, match: binding, for: applicant.identity)
        (joined.people, joined.chat) = (roster.people, Array(chat.lines))
        joined.files = fileAccess(of: member, context.rules)
        context.send(.room(.joined(joined)), to: applicant.client)
        broadcast(.person(member.person), except: applicant.client, &context)
        if role.moderates { sendKnocks(to: applicant.client, &context) }
        for member in former { roleChanged(of: member, &context) }
    }

    /// Admits the people who wait for a room that no longer has a lobby, until the room is full. If the room has a
    /// lobby, but nobody in it can admit people and it cannot have an owner, admits the people waiting, in order,
    /// until one of them can admit the rest. `mustWait` has the same exception for people who arrive.
    mutating func admitWaiting(_ context: inout Context) {
        guard state != .over, !options.locked else { return }
        let rules = context.rules
        while let next = lobby.waiting.first(where: { hasPlace(for: $0) && isWithinShare($0, rules) }) {
            guard !options.lobby || !roster.canHost && creator == nil && !hasHostTokens else { return }
            admit(next, &context)
        }
    }

    mutating func admit(_ applicant: RoomApplicant, _ context: inout Context) {
        guard lobby.remove(applicant.client) != nil else { return }
        sendKnock(of: applicant, waiting: false, &context)
        enter(applicant, re: nil, &context)
    }

    /// Notifies a person who waited that they are not admitted. The caller has already removed them from the lobby.
    func refuse(_ applicant: RoomApplicant, _ error: WireError, _ context: inout Context) {
        context.tell(.client(applicant.client, .room(nil)))
        context.send(.room(.refused(.init(name: name, error))), to: applicant.client)
        sendKnock(of: applicant, waiting: false, &context)
    }
}

extension RoomApplication {
    /// Throws if the room is a mesh room, in which members see each other's addresses, and the client does not accept
    /// that (`routedOnly`).
    func permitMesh(_ options: RoomOptions) throws(WireError) {
        if join.routedOnly == true, options.media == .mesh { throw .roomMesh }
    }
}

extension RoomVerb.Join {
    /// Whether the person expects the room to have a password, because they sent one or want to create a room with one.
    var expectsPassword: Bool { !(password ?? "").isEmpty || !(options?.password ?? "").isEmpty }
}

extension WireError {
    static let noRoom = WireError(.roomNotFound, "This room no longer exists. Join again to create it.")
    static let notInRoom = WireError(.notJoined, "Join a room first (room.join).")
    static let waitsElsewhere = WireError(
        .alreadyJoined, "You are waiting for this room on another connection. Use that one.")
    static let roomEnded = WireError(
        .roomNotFound, "The room ended while you were waiting. Join again to create it.")
    static let roomWithoutMedia = WireError(
        .mediaUnavailable, "This room requires a server that routes media. This server does not. Use a mesh room.")
    fileprivate static let roomRouted = WireError(
        .mediaUnavailable, "This room sends media through the server. Join it with a browser.")
    fileprivate static let roomAsksPassword = WireError(
        .roomPassword, "This room has a password. Join it with a browser.")
    fileprivate static let roomAsksHost = WireError(
        .roomRefused, "A host must admit people to this room. Join it with a browser.")
    static let roomMesh = WireError(
        .roomMesh, "Members of this mesh room see each other's IP addresses. To accept that, join without routedOnly.")
    static let roomNoPassword = WireError(
        .roomNoPassword,
        "This room has no password, so it may not be the one you want. To join it anyway, omit the password.")
    static let roomBanned = WireError(.roomBanned, "A host banned you from this room. Join another room.")
}
