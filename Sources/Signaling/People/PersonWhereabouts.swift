import Wire

/// Where a person is, and who is told that it is there at all.
extension Person {
    mutating func perform(
        _ verb: NearbyVerb, by client: ConnectionID, re: UInt64, now: Timestamp, in surroundings: Surroundings,
        into effects: inout [Effect]
    ) {
        switch verb {
        case .move(let move): self.move(move, client, re, now: now, surroundings.rules, into: &effects)
        case .forget:
            let hadPosition = cell != nil
            cell = nil
            effects.send(.ok(Answer(re: re)), to: client)
            if hadPosition { tellOtherDevices(than: client, into: &effects) }
        case .watch(let watch): self.watch(watch, client, re, now: now, surroundings.rules, into: &effects)
        case .unwatch:
            if devices[client]?.isWatching ?? false { effects.tell(.directory(.unwatch(client))) }
            devices[client]?.isWatching = false
            effects.send(.ok(Answer(re: re)), to: client)
        }
    }

    private mutating func move(
        _ move: Move, _ client: ConnectionID, _ re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        guard isPresent(client, re, into: &effects) else { return }
        guard let cell = move.cell else {
            let error = WireError(
                .positionInvalid,
                "A position is a latitude from -90 to 90 and a longitude from -180 to 180, in decimal degrees.")
            return effects.fail(error, re: re, to: client)
        }
        var trail = trail ?? Trail(cell, now: now)
        if let wait = trail.follow(to: cell, now: now, fastest: rules.fastestKilometresPerHour) {
            let error = WireError(
                .positionTooFast, "Nobody travels that fast; say it again in \(wait.inWords).", retryable: true,
                retryAfter: wait)
            return effects.fail(error, re: re, to: client)
        }
        self.trail = trail
        let hadPosition = self.cell != nil
        self.cell = cell
        effects.send(.ok(Answer(re: re)), to: client)
        if !hadPosition { tellOtherDevices(than: client, into: &effects) }
    }

    private mutating func watch(
        _ watch: Watch, _ client: ConnectionID, _ re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        guard isPresent(client, re, into: &effects) else { return }
        guard let cell else {
            let error = WireError(
                .positionUnknown, "Say nearby.move first: without a position nobody is near or far.", retryable: true)
            return effects.fail(error, re: re, to: client)
        }
        if let wait = nearbyPages.take(rules.nearbyPages, now: now) {
            let error = WireError(
                .rateLimited, "Too many pages; the one you have is kept up to date. Wait \(wait.inWords).",
                retryable: true, retryAfter: wait)
            return effects.fail(error, re: re, to: client)
        }
        devices[client]?.isWatching = true
        effects.tell(.directory(.watch(client, re: re, viewer: id, blocked: blockedSet, at: cell, watch)))
    }

    // MARK: What others notice

    /// What anybody else is told of this person, and what its own pages depend on.
    struct Outward: Equatable {
        var listing: Listing?
        var name: String
        var isSeenOnline: Bool
        var cell: Cell?
        var blocked: Set<IdentityID>
    }

    /// `nil` for who never appeared: nobody notices anything.
    var outward: Outward? {
        guard isKnown || cell != nil else { return nil }
        return Outward(
            listing: listing, name: shownName, isSeenOnline: isSeenOnline, cell: cell, blocked: blockedSet
        )
    }

    /// As it is listed: present, with a position, and not hiding.
    private var listing: Listing? {
        guard let cell, isSeenOnline else { return nil }
        return Listing(
            identity: id, person: publicID, name: shownName, isBusy: isBusy, cell: cell, blocked: blockedSet
        )
    }

    /// After every event: whoever is left with no device that is there is nowhere, and everybody concerned is told of what is
    /// otherwise now.
    mutating func report(_ before: Outward?, into effects: inout [Effect]) {
        if cell != nil, !devices.values.contains(where: \.isPresent) { cell = nil }
        let after = outward
        if let listing = after?.listing, listing != before?.listing { effects.tell(.directory(.show(listing))) }
        if after?.listing == nil, before?.listing != nil { effects.tell(.directory(.hide(id))) }
        guard let after, before != after else { return }
        if before.map({ $0.name != after.name || $0.isSeenOnline != after.isSeenOnline }) ?? true {
            presenceChanged(into: &effects)
        }
        if after.cell != before?.cell || after.blocked != before?.blocked {
            for client in devices.keys.sorted() where devices[client]?.isWatching ?? false {
                effects.tell(.directory(.viewerChanged(client, blocked: after.blocked, at: after.cell)))
            }
        }
    }
}
