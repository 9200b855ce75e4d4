import Wire

/// Decides who gets a place in the room.
///
/// The capacity limits how many people can enter. Hosts in their own right can exceed it, up to the maximum for this
/// kind of room, and one place beyond the capacity is reserved for them. Nobody can therefore keep a host out of their
/// own room by filling it. Each address gets only a share of the places, so that no address can fill the room either.
extension Room {
    /// Returns whether the person is a host in their own right: the creator, or the holder of a token for a host.
    private func hasOwnPlace(_ applicant: RoomApplicant) -> Bool {
        applicant.identity == creator || applicant.grant?.role == .host
    }

    private func hasOwnPlace(_ member: RoomRoster.Member) -> Bool {
        member.rights.lasting == .host && (member.identity == creator || member.token != nil)
    }

    /// Whether anyone who has a reserved place could enter.
    private var mayHaveOwners: Bool { creator != nil || hasHostTokens }

    private var most: Int { options.media == .routed ? Limits.routedRoom : Limits.meshRoom }

    /// Returns how many people may be in the room after this person has joined.
    private func places(for applicant: RoomApplicant) -> Int {
        let isIn = roster.members.contains { $0.identity == applicant.identity && !$0.isDropped }
        if hasOwnPlace(applicant), !isIn { return most }
        let isOwnerAway = mayHaveOwners && !roster.members.contains(where: hasOwnPlace)
        // A room with the maximum capacity has no extra place, so reserve one within the capacity.
        return min(options.capacity, isOwnerAway ? most - 1 : most)
    }

    func hasPlace(for applicant: RoomApplicant) -> Bool { roster.count < places(for: applicant) }

    /// Returns how many places people from one address may take. Two places are for others: a host and someone they
    /// invited. In rooms for two or three people, two people from one address may talk to each other.
    private func share(_ rules: Rules) -> Int {
        guard rules.roomAddressShare < 100 else { return .max }
        return max(2, min(options.capacity * rules.roomAddressShare / 100, options.capacity - 2))
    }

    /// Returns whether the address's share limits this person. It does not if a host is at the same address, such as a
    /// teacher with a class: that host can remove people.
    private func isShareLimited(_ applicant: RoomApplicant) -> Bool {
        if hasOwnPlace(applicant) || applicant.address == ownersAddress { return false }
        // Another owner may have joined elsewhere since.
        if roster.members.contains(where: { hasOwnPlace($0) && $0.address == applicant.address }) { return false }
        // Without a creator, someone else is host.
        return mayHaveOwners || !roster.members.contains { $0.role == .host && $0.address == applicant.address }
    }

    /// Returns whether there is a place left in the share of the person's address.
    func isWithinShare(_ applicant: RoomApplicant, _ rules: Rules) -> Bool {
        !isShareLimited(applicant) || roster.members.count { $0.address == applicant.address } < share(rules)
    }

    /// Throws if there is no place.
    ///
    /// - Parameter isAdmitted: whether a host admitted the person, who may then exceed the share of an address.
    /// - Returns: a dropped connection of the same person that must give way, because the person returned but could not
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
            // People who are already waiting for a place come first. A room whose capacity was lowered shrinks first,
            // but hosts with places of their own do not count toward that. A person who returns without the rights of the
            // dropped connection takes an ordinary place.
            let owners = roster.members.count { hasOwnPlace($0) && $0.client != former.client }
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
