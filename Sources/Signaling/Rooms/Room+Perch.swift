import Wire

/// Clients of PerchRTC's protocol (`protocol/perchrtc.md`). The protocol has no passwords, lobbies or host requests.
extension Room {
    /// Throws if this client of PerchRTC's protocol may not enter.
    func permitPerch(_ applicant: RoomApplicant, _ rules: Rules, now: Timestamp) throws(WireError) {
        let identity = applicant.identity
        guard !bans.lasting.people.contains(identity), !bans.temporary.people.contains(identity) else {
            throw .roomBanned
        }
        guard options.media == .mesh else {
            throw WireError(.mediaUnavailable, "This room sends media through the server. Join it with a browser.")
        }
        guard !options.locked else {
            throw WireError(.roomLocked, "This room is locked. Ask someone in the room to unlock it.", retryable: true)
        }
        guard settings.password == nil else {
            throw WireError(.roomPassword, "This room has a password. Join it with a browser.")
        }
        guard !options.lobby else {
            throw WireError(.roomRefused, "A host must admit people to this room. Join it with a browser.")
        }
        try lobby.permit(applicant.identity, now: now)
        // Require a free place: these clients cannot resume, so none of their connections gives way to a new one.
        guard hasPlace(for: applicant) else { throw full }
        guard isWithinShare(applicant, rules) else { throw .addressFull }
    }

    /// Returns whether this person must become host, because nobody in the room can moderate it. While only clients
    /// of PerchRTC's protocol are in the room, one of them is host but cannot moderate.
    func needsHost(_ applicant: RoomApplicant) -> Bool {
        roster.isEmpty || !applicant.isPerch && !hasPeople
    }

    /// Whether anyone in the room could moderate it.
    var hasPeople: Bool { roster.members.contains { !$0.isPerch } }
}

extension Hub {
    /// Returns the reason why a client of PerchRTC's protocol could not join this room now; nil if it could.
    public func perchRefusal(
        room text: String, user: String, address: String, now: Timestamp
    ) -> WireError? {
        guard let name = RoomName(text) else { return .perchRoomName }
        let identity = context.project.perchIdentity(user: user, address: address)
        let applicant = RoomApplicant(
            client: ConnectionID(high: 0, low: 0), identity: identity, address: address, name: user, isPerch: true)
        let rules = context.rules
        let refusal = rooms.read(name) { room -> WireError? in
            do throws(WireError) {
                try room.permitPerch(applicant, rules, now: now)
                return nil
            } catch {
                return error
            }
        }
        guard let refusal else {
            return context.rules.roomCreation == .everyone
                ? nil : WireError(.roomNotFound, "There is no room with this name. Check the name.")
        }
        return refusal
    }

    /// The STUN and TURN servers for a client of PerchRTC's protocol.
    public func perchServers(now: Timestamp) -> ICEConfiguration {
        context.ice.configuration(for: ConnectionID(high: .max, low: 0), now: now)
    }
}
