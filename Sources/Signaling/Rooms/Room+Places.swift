import Wire

/// Decides for whom there is a place.
///
/// The capacity limits how many people come in. Hosts by their own right come in beyond it, up to the most that any room of its
/// kind may have, and one place of these is kept for them. So nobody can keep a host out of their room by filling it. One
/// address gets only a share of the places, so that it cannot fill the room either.
extension Room {
    /// Whether the person is a host by their own right: the creator, or the holder of a token for a host.
    private func hasOwnPlace(_ applicant: RoomApplicant) -> Bool {
        applicant.identity == creator || applicant.grant?.role == .host
    }

    private func hasOwnPlace(_ member: RoomRoster.Member) -> Bool {
        member.rights.lasting == .host && (member.identity == creator || member.token != nil)
    }

    /// Whether anyone could come who has a place of their own.
    private var mayHaveOwners: Bool { creator != nil || hasHostTokens }

    private var most: Int { options.media == .routed ? Limits.routedRoom : Limits.meshRoom }

    /// How many people may be in the room after this person has joined.
    private func places(for applicant: RoomApplicant) -> Int {
        let isIn = roster.members.contains { $0.identity == applicant.identity && !$0.isDropped }
        if hasOwnPlace(applicant), !isIn { return most }
        let isOwnerAway = mayHaveOwners && !roster.members.contains(where: hasOwnPlace)
        // Only a room that has the greatest capacity has no place beyond it.
        return min(options.capacity, isOwnerAway ? most - 1 : most)
    }

    func hasPlace(for applicant: RoomApplicant) -> Bool { roster.count < places(for: applicant) }

    /// How many places the people of one address may take. Two places are for others: a host and somebody whom they invited.
    /// In rooms for two or three, two people of one address may talk to each other.
    private func share(_ rules: Rules) -> Int {
        guard rules.roomAddressShare < 100 else { return .max }
        return max(2, min(options.capacity * rules.roomAddressShare / 100, options.capacity - 2))
    }

    /// Whether the share of this address limits the person. It does not limit those who are in one network with a host, such as
    /// a class with its teacher: that host can remove people.
    private func isShareLimited(_ applicant: RoomApplicant) -> Bool {
        if hasOwnPlace(applicant) || applicant.address == ownersAddress { return false }
        // Without a creator, somebody else is host.
        return mayHaveOwners || !roster.members.contains { $0.role == .host && $0.address == applicant.address }
    }

    /// Whether the share of the person's address has a place left.
    func isWithinShare(_ applicant: RoomApplicant, _ rules: Rules) -> Bool {
        !isShareLimited(applicant) || roster.members.count { $0.address == applicant.address } < share(rules)
    }

    /// Throws if there is no place.
    ///
    /// - Parameter isAdmitted: whether a host lets the person in, who may exceed the share of an address.
    /// - Returns: a connection of the same person that dropped and must give way, because the person is back but could not
    ///   resume it; nil if there is a free place.
    func takePlace(
        for applicant: RoomApplicant, isAdmitted: Bool, _ rules: Rules
    ) throws(WireError) -> ConnectionID? {
        let isFull = !hasPlace(for: applicant)
        let isOverShare = !isAdmitted && !isWithinShare(applicant, rules)
        guard isFull || isOverShare else { return nil }
        let former = roster.members.first { $0.isDropped && $0.identity == applicant.identity }
        guard let former else { throw isFull ? full : .addressFull }
        if isFull {
            // Those who already wait for a place come first. A room whose capacity was lowered shrinks first, but hosts with
            // places of their own do not count for that.
            let owners = roster.members.count(where: hasOwnPlace)
            guard options.lobby || lobby.waiting.isEmpty, roster.count <= options.capacity + owners else { throw full }
        }
        guard !isOverShare || former.address == applicant.address else { throw .addressFull }
        return former.client
    }

    var full: WireError {
        WireError(
            .roomFull, "This room is full: it already has \(options.capacity) people. Try again when someone has left.",
            retryable: true)
    }
}

extension WireError {
    static let addressFull = WireError(
        .roomFull,
        "The places in this room for people from your network are taken. Try again when "
            + "someone has left, or ask a host for a higher capacity.", retryable: true)
}
