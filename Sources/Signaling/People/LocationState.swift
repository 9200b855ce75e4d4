import Wire

/// A person's location as other people may see it, and the budget for requests for people nearby.
struct LocationState: Equatable, Sendable {
    /// What `Person` must still do after this type has answered a request about people nearby.
    enum Consequence: Equatable, Sendable {
        /// Send the new presence state to the other devices.
        case presenceChanged
        /// Record that the device now watches a page of people nearby (true) or has stopped (false).
        case watches(Bool)
    }

    private(set) var cell: Cell?
    /// The most recent location, used to check the speed of the next move; nil before the first location. It is kept
    /// even if the person deletes the location, and is never sent to anyone.
    private var trail: TravelLimiter?
    /// The budget for requesting pages of people nearby; nil until it is first used.
    private var pages: Budget?

    var hasStateToKeep: Bool { trail != nil }

    mutating func forget() { (cell, trail) = (nil, nil) }

    /// Removes the location after the person's last device has gone offline.
    mutating func disappear() { cell = nil }

    mutating func perform(
        _ verb: NearbyVerb, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) -> Consequence? {
        do throws(WireError) {
            let consequence: Consequence?
            switch verb {
            case .move(let move): consequence = try self.move(move, request, snapshot, context)
            case .watch(let watch): return try self.watch(watch, request, snapshot, &context)
            case .forget:
                consequence = cell == nil ? nil : .presenceChanged
                cell = nil
            case .unwatch:
                if snapshot.devices.isWatching(request.client) { context.tell(.directory(.unwatch(request.client))) }
                consequence = .watches(false)
            }
            context.ok(request)
            return consequence
        } catch {
            context.fail(error, request)
            return nil
        }
    }

    private mutating func move(
        _ move: NearbyVerb.Move, _ request: Request, _ snapshot: PersonSnapshot, _ context: Context
    ) throws(WireError) -> Consequence? {
        try snapshot.devices.checkAppeared(request.client)
        guard let cell = move.cell else {
            throw WireError(
                .positionInvalid,
                "Invalid location. Send a latitude from -90 to 90 and a longitude from -180 to 180, in degrees.")
        }
        var trail = trail ?? TravelLimiter(cell, now: context.now)
        if let wait = trail.follow(to: cell, now: context.now, fastest: context.rules.fastestKilometersPerHour) {
            throw WireError(
                .positionTooFast, "Your location changed too fast. Send it again in \(wait.roundedText).",
                retryable: true, retryAfter: wait)
        }
        self.trail = trail
        defer { self.cell = cell }
        return self.cell == nil ? .presenceChanged : nil
    }

    private mutating func watch(
        _ watch: NearbyVerb.Watch, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) throws(WireError) -> Consequence? {
        try snapshot.devices.checkAppeared(request.client)
        guard let cell else {
            throw WireError(
                .positionUnknown, "Send your location first (nearby.move).", retryable: true)
        }
        if let wait = pages.take(context.rules.nearbyPages, now: context.now) {
            throw WireError(
                .rateLimited,
                "Too many pages requested. The current page is still kept up to date. "
                    + "Request another in \(wait.roundedText).",
                retryable: true, retryAfter: wait)
        }
        context.tell(
            .directory(
                .watch(
                    request.client, re: request.re, viewer: snapshot.id, blocked: snapshot.blocks.all, at: cell, watch))
        )
        return .watches(true)
    }
}
