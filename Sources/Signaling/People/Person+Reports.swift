import Wire

/// What others are told of a person after every event, by comparing it with what it was before.
extension Person {
    /// A person before an event.
    struct Appearances {
        fileprivate let roulette: (client: ConnectionID, roulette: Snapshot.Roulette)?
        fileprivate let call: CallDesk.HeldCall?
        fileprivate let outward: Outward?
    }

    var appearances: Appearances {
        Appearances(roulette: roulette.state, call: calls.heldCall, outward: outward)
    }

    mutating func report(_ before: Appearances, _ turn: inout Turn) {
        reportRoulette(before, &turn)
        reportCall(before, &turn)
        reportOutward(before, &turn)
    }

    // MARK: To the person's devices

    private func reportRoulette(_ before: Appearances, _ turn: inout Turn) {
        let (before, after) = (before.roulette, roulette.state)
        if let before, before.client != after?.client {
            turn.tell(.client(before.client, .roulette(Snapshot.Roulette())))
        }
        if let after, before?.client != after.client || before?.roulette != after.roulette {
            turn.tell(.client(after.client, .roulette(after.roulette)))
        }
    }

    private func reportCall(_ before: Appearances, _ turn: inout Turn) {
        let (before, after) = (before.call, calls.heldCall)
        guard before != after else { return }
        if let before, before.client != after?.client { turn.tell(.client(before.client, .call(nil))) }
        if let after { turn.tell(.client(after.client, .call(after.call))) }
    }

    // MARK: To others

    /// What others may know of this person; its own pages depend on it too.
    struct Outward: Equatable {
        var listing: Listing?
        var name: String
        var isSeenOnline: Bool
        var cell: Cell?
        var blocked: Set<IdentityID>
    }

    /// `nil` for who never appeared: nobody notices anything.
    private var outward: Outward? {
        guard persona.isKnown || whereabouts.cell != nil else { return nil }
        return Outward(
            listing: listing, name: persona.shownName, isSeenOnline: isSeenOnline, cell: whereabouts.cell,
            blocked: blocks.all
        )
    }

    private var isSeenOnline: Bool { persona.isSeenOnline(with: devices) }

    /// As it is listed: present, with a position, and not hiding.
    private var listing: Listing? {
        guard let cell = whereabouts.cell, isSeenOnline else { return nil }
        let isBusy = roulette.isChatting || calls.isBusy || persona.profile.doNotDisturb
        return Listing(
            identity: id, person: persona.id, name: persona.shownName, isBusy: isBusy, cell: cell, blocked: blocks.all
        )
    }

    /// Removes a person without a device from the directory, and tells the directory and contacts what has changed.
    private mutating func reportOutward(_ before: Appearances, _ turn: inout Turn) {
        if whereabouts.cell != nil, !devices.hasAppeared { whereabouts.disappear() }
        let (before, after) = (before.outward, outward)
        if let listing = after?.listing, listing != before?.listing { turn.tell(.directory(.show(listing))) }
        if after?.listing == nil, before?.listing != nil { turn.tell(.directory(.hide(id))) }
        guard let after, before != after else { return }
        if before.map({ $0.name != after.name || $0.isSeenOnline != after.isSeenOnline }) ?? true {
            contacts.tellPresence(facts, &turn)
        }
        if after.cell != before?.cell || after.blocked != before?.blocked {
            for client in devices.watching {
                turn.tell(.directory(.viewerChanged(client, blocked: after.blocked, at: after.cell)))
            }
        }
    }
}
