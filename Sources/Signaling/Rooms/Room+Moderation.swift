import Wire

/// Performs the actions that only hosts and cohosts may request.
extension Room {
    mutating func moderate(_ verb: RoomVerb, by member: RoomRoster.Member, _ context: inout Context) throws(WireError) {
        try member.rights.permit(.moderate)
        try chargeModeration(context)
        switch verb {
        case .admit(let verb):
            let applicant = try applicant(verb.connection)
            guard hasPlace(for: applicant) else { throw full }
            admit(applicant, &context)
        case .deny(let verb): sendAway(try applicant(verb.connection), .roomRefused, &context)
        case .set(let verb):
            try member.rights.permit(.change(verb.options, from: options))
            let lasts = member.rights.actsForOwners
            if lasts { try permitStoring(verb.options, context) }
            try change(verb.options, lasts: lasts, &context)
        case .mute(let verb): try mute(verb, by: member, &context)
        case .stopShare(let verb): try stopShare(verb, by: member, &context)
        case .remove(let verb): try remove(verb, by: member, &context)
        case .role(let verb): try setRole(verb, by: member, &context)
        case .join, .leave, .say, .hand, .react, .file, .removeFile: return
        }
    }

    private func applicant(_ client: ConnectionID) throws(WireError) -> RoomApplicant {
        guard let applicant = lobby.waiting.first(where: { $0.client == client }) else {
            throw WireError(.notFound, "This person is no longer waiting for the room.")
        }
        return applicant
    }

    func person(_ client: ConnectionID) throws(WireError) -> RoomRoster.Member {
        guard let member = roster[client] else {
            throw WireError(.notFound, "This person is no longer in the room.")
        }
        return member
    }

    private mutating func sendAway(_ applicant: RoomApplicant, _ error: WireError, _ context: inout Context) {
        _ = lobby.remove(applicant.client)
        lobby.sendAway(applicant.identity, context)
        refuse(applicant, error, &context)
    }

    // MARK: Options and roles

    /// Throws if these changes must be stored but currently cannot be. Changes to a persistent room count as essential,
    /// because its stored data protects the people in it. Making a room persistent counts as optional, because it can
    /// wait.
    private func permitStoring(_ changes: RoomChanges, _ context: Context) throws(WireError) {
        let becomesPersistent = changes.persistent == true && !options.persistent
        let use: StorageUse = becomesPersistent ? .optional : options.persistent ? .essential : .none
        if let error = context.permit.refusal(of: use) { throw error }
    }

    /// Changes options and the password, and notifies the people in the room of changed options.
    ///
    /// - Parameter lasts: whether the change stays in effect when the room is empty.
    mutating func change(_ changes: RoomChanges, lasts: Bool, _ context: inout Context) throws(WireError) {
        let former = settings
        let before = former.options
        try settings.apply(changes, password: context.password(in: changes), lasts: lasts)
        // Compare the settings and not only the options: the password may have changed even if the room already had
        // one.
        guard settings != former else { return }
        if lasts { optionsChanged(from: before, &context) }
        guard options != before else { return }
        broadcast(.changed(.init(options: options)), &context)
        if options.share != before.share {
            context.tell(.session(session, .room(.screens(onlyOfHosts: options.share == .hosts))))
        }
        admitWaiting(&context)
    }

    private mutating func setRole(_ verb: RoomVerb.Role, by member: RoomRoster.Member, _ context: inout Context)
        throws(WireError)
    {
        let former = try person(verb.connection)
        try member.rights.permit(.setRole(former.rights, of: subject(former, verb.role, by: member)))
        guard former.role != verb.role else { return }
        roster.giveRole(verb.role, to: former.client, by: member.rights)
        if verb.role != .host, former.identity == creator { setCreator(nil, &context) }
        if let changed = roster[verb.connection] { roleChanged(of: changed, &context) }
    }

    private func subject(
        _ target: RoomRoster.Member, _ role: RoomRole, by member: RoomRoster.Member
    ) -> RoomRights.Subject {
        if role != .host, roster.isLastHost(target.client) { return .lastHost }
        if target.client == member.client { return .themself }
        return role != .host && target.identity == creator && target.identity == member.identity ? .ownDevice : .other
    }

    // MARK: Removing

    private mutating func remove(_ verb: RoomVerb.Remove, by member: RoomRoster.Member, _ context: inout Context)
        throws(WireError)
    {
        let isBan = verb.ban ?? false
        if let applicant = lobby.waiting.first(where: { $0.client == verb.connection }) {
            guard applicant.identity != member.identity else { throw .removesItself }
            // A person in the lobby may also be in the room on another device, with any role. `ban` checks whether the
            // member may remove that device.
            if isBan {
                try ban(applicant.identity, by: member, &context)
            } else {
                sendAway(applicant, .roomRefused, &context)
            }
            return
        }
        let target = try person(verb.connection)
        guard target.client != member.client else { throw .removesItself }
        if isBan { return try ban(target.identity, by: member, &context) }
        try member.rights.permit(.remove(target.rights))
        remove(target.client, .removed, by: member, &context)
    }

    /// Bans a person, and removes all their connections from the room and its lobby.
    private mutating func ban(_ identity: IdentityID, by member: RoomRoster.Member, _ context: inout Context)
        throws(WireError)
    {
        guard identity != member.identity else { throw .removesItself }
        let targets = roster.members.filter { $0.identity == identity }
        for target in targets { try member.rights.permit(.remove(target.rights)) }
        let lasts = member.rights.actsForOwners
        if lasts, options.persistent, let error = context.permit.refusal(of: .essential) { throw error }
        ban(identity, by: member.rights, &context)
        for applicant in lobby.waiting where applicant.identity == identity {
            sendAway(applicant, .roomBanned, &context)
        }
        for target in targets { remove(target.client, .banned, by: member, &context) }
    }
}

extension WireError {
    fileprivate static let roomRefused = WireError(
        .roomRefused, "A host did not let you in. Contact the host if you think this is a mistake.")
    fileprivate static let removesItself = WireError(.notPermitted, "You cannot remove yourself. Send room.leave.")
}
