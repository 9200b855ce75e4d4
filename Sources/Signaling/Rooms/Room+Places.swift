import Wire

/// Decides who gets a place in the room.
///
/// The capacity limits how many people can enter. Hosts in their own right (the creator, and holders of a token for a
/// host) can exceed it, up to the maximum for this kind of room, and one place beyond the capacity is reserved for
/// them. Nobody can therefore keep a host out of their own room by filling it. Each address gets only a share of the
/// places, so that no address can fill the room either.
extension Room {
    /// Returns whether the person is a host in their own right: the creator, or the holder of a token for a host.
    private func hasOwnPlace(_ applicant: RoomApplicant) -> Bool {
        applicant.identity == creator || applicant.grant?.role == .host
    }

    private func hasOwnPlace(_ member: RoomRoster.Member) -> Bool {
        member.rights.lasting == .host && (member.identity == creator || member.token != nil)
    }

    /// Whether there is anyone who could enter as a host in their own right, and for whom a place must be reserved.
    private var mayHaveOwners: Bool { creator != nil || hasHostTokens }

    /// Returns how many people may be in the room after this person has joined.
    private func places(for applicant: RoomApplicant) -> Int {
        let isIn = roster.members.contains { $0.identity == applicant.identity && !$0.isDropped }
        let most = options.maxCapacity
        if hasOwnPlace(applicant), !isIn { return most }
        let isOwnerAway = mayHaveOwners && !roster.members.contains(where: hasOwnPlace)
        // A room with the maximum capacity has no extra place, so reserve one within the capacity.
        return min(options.capacity, isOwnerAway ? most - 1 : most)
    }

    func hasPlace(for applicant: RoomApplicant) -> Bool { roster.count < places(for: applicant) }

    /// Returns how many places people from one address may take. At least two places are left for others: a host and
    /// someone they invited. In rooms for two or three people, though, two people from one address may talk to each
    /// other.
    private func share(_ rules: Rules) -> Int {
        guard rules.roomAddressShare < 100 else { return .max }
        return max(2, min(options.capacity * rules.roomAddressShare / 100, options.capacity - 2))
    }

    /// Returns whether the address's share limits this person. Owners are exempt, and so is everyone at an owner's
    /// address, such as a class with its teacher, because the owner can remove people. In a room that cannot have
    /// owners, any host at the address counts as one.
    ///
    /// After a restart, no owner's address is known. The class must be able to return before the teacher, so until an owner
    /// has joined, the share does not limit people who were in the room.
    private func isShareLimited(_ applicant: RoomApplicant, isReturning: Bool) -> Bool {
        if hasOwnPlace(applicant) || applicant.address == ownersAddress { return false }
        if isReturning, isOwnersAddressLost { return false }
        // Check all owners in the room, because `ownersAddress` is only that of the last one who joined.
        if roster.members.contains(where: { hasOwnPlace($0) && $0.address == applicant.address }) { return false }
        // In a room that cannot have owners, people at the same address as a host are not limited either.
        return mayHaveOwners || !roster.members.contains { $0.role == .host && $0.address == applicant.address }
    }

    /// Returns whether the share of the person's address has a place left, or does not limit this person.
    func isWithinShare(_ applicant: RoomApplicant, isReturning: Bool = false, _ rules: Rules) -> Bool {
        !isShareLimited(applicant, isReturning: isReturning)
            || roster.members.count { $0.address == applicant.address } < share(rules)
    }

    /// Checks whether there is a place for this person. Throws if there is none.
    ///
    /// - Parameters:
    ///   - isAdmitted: whether a host has admitted the person, or will decide about it. If so, the limit on the places
    ///     for one address does not apply.
    ///   - isReturning: whether the person presented the room's ID.
    /// - Returns: a dropped connection of the same person that must give way, because the person returned but could not
    ///   resume it; nil if there is a free place.
    func takePlace(
        for applicant: RoomApplicant, isAdmitted: Bool, isReturning: Bool, _ rules: Rules
    ) throws(WireError) -> ConnectionID? {
        let isFull = !hasPlace(for: applicant)
        let isOverShare = !isAdmitted && !isWithinShare(applicant, isReturning: isReturning, rules)
        guard isFull || isOverShare else { return nil }
        let dropped = roster.members.filter { $0.isDropped && $0.identity == applicant.identity }
        // Prefer a connection from the same address. A connection from another address can give way in a full room,
        // but frees no place in this address's share.
        let previous = dropped.first { $0.address == applicant.address } ?? dropped.first
        guard let previous else { throw isFull ? full : .addressFull }
        if isFull {
            // People who are already waiting for a place take precedence. If the capacity was lowered below the number
            // of people, nobody returns until there are fewer. Hosts in their own right do not count toward the
            // capacity here. For the person who returns, the new rights count, not those of the connection that gives
            // way: someone who held a host's token may return without it.
            let others = roster.members.count { hasOwnPlace($0) && $0.client != previous.client }
            let owners = others + (hasOwnPlace(applicant) ? 1 : 0)
            guard options.lobby || lobby.waiting.isEmpty, roster.count <= options.capacity + owners else { throw full }
        }
        guard !isOverShare || previous.address == applicant.address else { throw .addressFull }
        return previous.client
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
        "Too many people from your network are already in this room. Try again when someone has left, or ask a host to "
            + "raise the capacity.", retryable: true)
}
