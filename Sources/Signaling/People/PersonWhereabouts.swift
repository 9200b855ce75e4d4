import Wire

/// Where a person is, and who is told that it is there at all.
extension Person {
    mutating func perform(_ verb: NearbyVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .move(let move): self.move(move, request, &turn)
        case .forget:
            let hadPosition = cell != nil
            cell = nil
            turn.ok(request)
            if hadPosition { tellOtherDevices(than: request.client, &turn) }
        case .watch(let watch): self.watch(watch, request, &turn)
        case .unwatch:
            if devices[request.client]?.isWatching ?? false { turn.tell(.directory(.unwatch(request.client))) }
            devices[request.client]?.isWatching = false
            turn.ok(request)
        }
    }

    private mutating func move(_ move: Move, _ request: Request, _ turn: inout Turn) {
        guard isPresent(request, &turn) else { return }
        guard let cell = move.cell else {
            let error = WireError(
                .positionInvalid,
                "A position is a latitude from -90 to 90 and a longitude from -180 to 180, in decimal degrees.")
            return turn.fail(error, request)
        }
        var trail = trail ?? Trail(cell, now: turn.now)
        if let wait = trail.follow(to: cell, now: turn.now, fastest: turn.rules.fastestKilometresPerHour) {
            let error = WireError(
                .positionTooFast, "Nobody travels that fast; say it again in \(wait.inWords).", retryable: true,
                retryAfter: wait)
            return turn.fail(error, request)
        }
        self.trail = trail
        let hadPosition = self.cell != nil
        self.cell = cell
        turn.ok(request)
        if !hadPosition { tellOtherDevices(than: request.client, &turn) }
    }

    private mutating func watch(_ watch: Watch, _ request: Request, _ turn: inout Turn) {
        guard isPresent(request, &turn) else { return }
        guard let cell else {
            let error = WireError(
                .positionUnknown, "Say nearby.move first: without a position nobody is near or far.", retryable: true)
            return turn.fail(error, request)
        }
        if let wait = nearbyPages.take(turn.rules.nearbyPages, now: turn.now) {
            let error = WireError(
                .rateLimited, "Too many pages; the one you have is kept up to date. Wait \(wait.inWords).",
                retryable: true, retryAfter: wait)
            return turn.fail(error, request)
        }
        devices[request.client]?.isWatching = true
        turn.tell(.directory(.watch(request.client, re: request.re, viewer: id, blocked: blockedSet, at: cell, watch)))
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
    mutating func report(_ before: Outward?, _ turn: inout Turn) {
        if cell != nil, !devices.values.contains(where: \.isPresent) { cell = nil }
        let after = outward
        if let listing = after?.listing, listing != before?.listing { turn.tell(.directory(.show(listing))) }
        if after?.listing == nil, before?.listing != nil { turn.tell(.directory(.hide(id))) }
        guard let after, before != after else { return }
        if before.map({ $0.name != after.name || $0.isSeenOnline != after.isSeenOnline }) ?? true {
            presenceChanged(&turn)
        }
        if after.cell != before?.cell || after.blocked != before?.blocked {
            for client in devices.keys.sorted() where devices[client]?.isWatching ?? false {
                turn.tell(.directory(.viewerChanged(client, blocked: after.blocked, at: after.cell)))
            }
        }
    }
}
