import Wire

/// Where a person is, as others may know it, and how often it looks at who is near.
struct Whereabouts: Equatable, Sendable {
    /// What Person does after a request was answered.
    enum Consequence: Equatable, Sendable {
        /// Its other devices are told how it is there now.
        case presenceChanged
        /// The device looks at a page of people nearby, or no more.
        case watches(Bool)
    }

    private(set) var cell: Cell?
    /// Where it was, for the speed of what comes next; kept when the position is forgotten, and told to nobody.
    private var trail: Trail?
    /// Pages of people nearby that are left.
    private var pages: Budget?

    var isWorthRemembering: Bool { trail != nil }

    mutating func forget() { (cell, trail) = (nil, nil) }

    /// No device is present any more, so the person is nowhere.
    mutating func disappear() { cell = nil }

    mutating func perform(
        _ verb: NearbyVerb, _ request: Request, _ facts: Facts, _ turn: inout Turn
    ) -> Consequence? {
        do throws(WireError) {
            let consequence: Consequence?
            switch verb {
            case .move(let move): consequence = try self.move(move, request, facts, turn)
            case .watch(let watch): return try self.watch(watch, request, facts, &turn)
            case .forget:
                consequence = cell == nil ? nil : .presenceChanged
                cell = nil
            case .unwatch:
                if facts.devices.isWatching(request.client) { turn.tell(.directory(.unwatch(request.client))) }
                consequence = .watches(false)
            }
            turn.ok(request)
            return consequence
        } catch {
            turn.fail(error, request)
            return nil
        }
    }

    private mutating func move(
        _ move: NearbyVerb.Move, _ request: Request, _ facts: Facts, _ turn: Turn
    ) throws(WireError) -> Consequence? {
        try facts.devices.checkAppeared(request.client)
        guard let cell = move.cell else {
            throw WireError(
                .positionInvalid,
                "A position is a latitude from -90 to 90 and a longitude from -180 to 180, in decimal degrees.")
        }
        var trail = trail ?? Trail(cell, now: turn.now)
        if let wait = trail.follow(to: cell, now: turn.now, fastest: turn.rules.fastestKilometresPerHour) {
            throw WireError(
                .positionTooFast, "Nobody travels that fast; say it again in \(wait.inWords).", retryable: true,
                retryAfter: wait)
        }
        self.trail = trail
        defer { self.cell = cell }
        return self.cell == nil ? .presenceChanged : nil
    }

    private mutating func watch(
        _ watch: NearbyVerb.Watch, _ request: Request, _ facts: Facts, _ turn: inout Turn
    ) throws(WireError) -> Consequence? {
        try facts.devices.checkAppeared(request.client)
        guard let cell else {
            throw WireError(
                .positionUnknown, "Say nearby.move first: without a position nobody is near or far.", retryable: true)
        }
        if let wait = pages.take(turn.rules.nearbyPages, now: turn.now) {
            throw WireError(
                .rateLimited, "Too many pages; the one you have is kept up to date. Wait \(wait.inWords).",
                retryable: true, retryAfter: wait)
        }
        turn.tell(
            .directory(
                .watch(
                    request.client, re: request.re, viewer: facts.id, blocked: facts.blocks.all, at: cell, watch)))
        return .watches(true)
    }
}
