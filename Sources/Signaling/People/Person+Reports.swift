import Wire

/// Compares a person before and after each event, and notifies clients, contacts and the directory of what changed.
extension Person {
    /// A person's state before an event: the parts whose changes are reported to clients, contacts and the directory.
    struct ReportedState {
        fileprivate let roulette: (client: ConnectionID, roulette: Snapshot.Roulette)?
        fileprivate let call: CallState.HeldCall?
        fileprivate let publicState: PublicState?
    }

    var reportedState: ReportedState {
        ReportedState(roulette: roulette.state, call: calls.heldCall, publicState: publicState)
    }

    mutating func report(_ before: ReportedState, _ context: inout Context) {
        reportRoulette(before, &context)
        reportCall(before, &context)
        reportPublicState(before, &context)
    }

    // MARK: Own devices

    private func reportRoulette(_ before: ReportedState, _ context: inout Context) {
        let (before, after) = (before.roulette, roulette.state)
        if let before, before.client != after?.client {
            context.tell(.client(before.client, .roulette(Snapshot.Roulette())))
        }
        if let after, before?.client != after.client || before?.roulette != after.roulette {
            context.tell(.client(after.client, .roulette(after.roulette)))
        }
    }

    private func reportCall(_ before: ReportedState, _ context: inout Context) {
        let (before, after) = (before.call, calls.heldCall)
        guard before != after else { return }
        if let before, before.client != after?.client { context.tell(.client(before.client, .call(nil))) }
        if let after { context.tell(.client(after.client, .call(after.call))) }
    }

    // MARK: Others

    /// What other people may see of this person. It also contains the values that determine which people this person sees
    /// nearby.
    struct PublicState: Equatable {
        var listing: Listing?
        var name: String
        var isSeenOnline: Bool
        var cell: Cell?
        var blocked: Set<IdentityID>
    }

    /// The current public state; `nil` for a person who has neither a stored profile nor a location, because no one
    /// else sees such a person.
    private var publicState: PublicState? {
        guard persona.isKnown || locationState.cell != nil else { return nil }
        return PublicState(
            listing: listing, name: persona.shownName, isSeenOnline: isSeenOnline, cell: locationState.cell,
            blocked: blocks.all
        )
    }

    private var isSeenOnline: Bool { persona.isSeenOnline(isThere: devices.isThere) }

    /// The directory entry; nil unless the person is online, visible and has a location.
    private var listing: Listing? {
        guard let cell = locationState.cell, isSeenOnline else { return nil }
        let isBusy = roulette.isChatting || calls.isInCall || persona.profile.doNotDisturb
        return Listing(
            identity: id, person: persona.id, name: persona.shownName, isBusy: isBusy, cell: cell, blocked: blocks.all
        )
    }

    /// Notifies the directory and the contacts of changes. If the person has gone offline on all devices, first
    /// removes the location, which also removes the person from the directory.
    private mutating func reportPublicState(_ before: ReportedState, _ context: inout Context) {
        if locationState.cell != nil, !devices.hasAppeared { locationState.disappear() }
        let (before, after) = (before.publicState, publicState)
        if let listing = after?.listing, listing != before?.listing { context.tell(.directory(.show(listing))) }
        if after?.listing == nil, before?.listing != nil { context.tell(.directory(.hide(id))) }
        guard let after, before != after else { return }
        if before.map({ $0.name != after.name || $0.isSeenOnline != after.isSeenOnline }) ?? true {
            contacts.reportPresence(snapshot, &context)
        }
        if after.cell != before?.cell || after.blocked != before?.blocked {
            for client in devices.watching {
                context.tell(.directory(.viewerChanged(client, blocked: after.blocked, at: after.cell)))
            }
        }
    }
}
