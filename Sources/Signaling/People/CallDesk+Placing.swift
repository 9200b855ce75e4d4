import Wire

/// Places outgoing calls and answers incoming ones.
extension CallDesk {
    // MARK: Placing

    mutating func start(_ start: CallVerb.Start, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        if let error = facts.banError(turn.wallNow) ?? obstacle(facts) { return turn.fail(error, request) }
        guard start.person != facts.persona.id else { return callsItself(request, &turn) }
        guard facts.devices.hasAppeared(request.client) else {
            let error = WireError(.notPresent, "Send presence.appear first; the callee must see who is calling.")
            return turn.fail(error, request)
        }
        facts.introduce(start.person, for: .call(.start(start)), request, &turn)
    }

    private func callsItself(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.callSelf, "You cannot call yourself."), request)
    }

    /// Returns the reason why this person cannot place a call now, or nil if they can.
    private func obstacle(_ facts: Facts) -> WireError? {
        if isBusy { return WireError(.elsewhere, "You are already in a call. End it first.") }
        if facts.searchName != nil {
            return WireError(.elsewhere, "You are searching or chatting in the roulette. Stop there first.")
        }
        return nil
    }

    /// Places the call that `call.start` requested. The lookup has found the callee's identity.
    mutating func place(_ attempt: CallAttempt, _ facts: Facts, _ turn: inout Turn) {
        let (request, other) = (Request(attempt.client, attempt.re), attempt.callee)
        // The device may have disconnected during the lookup.
        guard facts.devices[request.client] != nil else { return }
        guard other != facts.id else { return callsItself(request, &turn) }
        guard !facts.blocks.contains(other) else {
            let error = WireError(.callNotAllowed, "You have blocked this person. Unblock them first.")
            return turn.fail(error, request)
        }
        // If two people call each other, connect them immediately, even if other calls are ringing.
        let isMutual = parts.contains { $0.offer.other.identity == other }
        var error = facts.banError(turn.wallNow) ?? obstacle(facts)
        if error == nil, !isMutual, parts.count >= Self.maxCalls {
            error = WireError(.elsewhere, "Two calls are already ringing. Answer or decline one first.")
        }
        if let error = error ?? tooManyCalls(to: other, turn) { return turn.fail(error, request) }
        asking = request
        turn.tell(.newCall(attempt))
    }

    /// Checks the limits on placing calls. Charges the budget, unless the caller must wait because of earlier unanswered calls.
    private mutating func tooManyCalls(to other: IdentityID, _ turn: Turn) -> WireError? {
        if let until = unanswered.waitEnd(for: other, turn.now) {
            let wait = until - turn.now
            return WireError(
                .rateLimited, "This person did not answer your calls. Try again in \(wait.roundedText).",
                retryable: true, retryAfter: wait
            )
        }
        return placedBudget.take(turn.rules.callsPlaced, now: turn.now).map {
            WireError(
                .rateLimited, "Too many calls. Try again in \($0.roundedText).", retryable: true, retryAfter: $0
            )
        }
    }

    mutating func placed(_ offer: CallOffer, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard asking == request else {
            // The device disconnected before the call had an id.
            return turn.tell(.call(offer.call, .leave(facts.id, .hungUp)))
        }
        asking = nil
        parts.append(Part(offer: offer, direction: .outgoing, state: .placed(request.client)))
        tellPlaced(offer, request, &turn)
    }

    func tellPlaced(_ offer: CallOffer, _ request: Request, _ turn: inout Turn) {
        var placed = CallNotice.Placed()
        (placed.re, placed.call, placed.video) = (request.re, offer.call, offer.video)
        placed.person = offer.other.info
        placed.expiresIn = max(.zero, offer.ringsUntil - turn.now)
        turn.send(.call(.placed(placed)), to: request.client)
    }

    // MARK: Incoming calls

    mutating func asked(_ offer: CallOffer, isContact: Bool, _ facts: Facts, _ turn: inout Turn) {
        let answer = answer(to: offer, isContact: isContact, facts, turn)
        switch answer {
        case .ready: reservePlace(for: offer)
        case .mutual(_, let own) where offer.call < own: reservePlace(for: offer)
        case .mutual, .refused, .notAllowed: break
        }
        turn.tell(.call(offer.call, .answered(answer)))
    }

    private mutating func reservePlace(for offer: CallOffer) {
        parts.append(Part(offer: offer, direction: .incoming, state: .asked))
    }

    private mutating func answer(
        to offer: CallOffer, isContact: Bool, _ facts: Facts, _ turn: Turn
    ) -> CallAnswer {
        let caller = offer.other.identity
        guard !facts.blocks.contains(caller), facts.banError(turn.wallNow) == nil else {
            return absentAnswer(isContact: isContact, facts)
        }
        for part in parts where part.direction == .outgoing && part.offer.other.identity == caller {
            if case .placed = part.state, part.ending == nil { return .mutual(facts.counterpart, with: part.id) }
        }
        guard isRingable(isContact: isContact, facts) else { return .notAllowed }
        let isStorm = rungBudget.take(turn.rules.ringsReceived, now: turn.now) != nil
        // Check whether the person is reachable before checking whether they are busy. An unreachable person thus gives the
        // same answer as a person who has blocked the caller. Calls beyond the ring limit are not logged as missed.
        guard facts.devices.hasPush || facts.devices.isThere else {
            return .refused(facts.counterpart, .unreachable, isMissed: !isStorm)
        }
        if isStorm { return .refused(facts.counterpart, .busy, isMissed: false) }
        if facts.persona.profile.doNotDisturb || parts.count + (asking == nil ? 0 : 1) >= Self.maxCalls {
            return .refused(facts.counterpart, .busy, isMissed: true)
        }
        return .ready(facts.counterpart)
    }

    /// The answer to a caller whom this person has blocked. It is always the same as if this person were offline, so it does
    /// not reveal the block. The call does not count toward the ring limit and is not logged.
    private func absentAnswer(isContact: Bool, _ facts: Facts) -> CallAnswer {
        guard isRingable(isContact: isContact, facts) else { return .notAllowed }
        var party = facts.counterpart
        party.isOnline = false
        return .refused(party, .unreachable, isMissed: false)
    }

    private func isRingable(isContact: Bool, _ facts: Facts) -> Bool {
        switch facts.persona.profile.ringable {
        case .everyone: true
        case .contacts: isContact
        case .nobody: false
        }
    }

    mutating func ring(_ call: CallID, _ facts: Facts, _ turn: inout Turn) {
        guard var part = self[call], part.state == .asked else { return }
        let clients = facts.devices.present
        part.state = .ringing(Set(clients))
        part.wasPushed = facts.devices.hasPush
        self[call] = part
        for client in clients { tellIncoming(part, re: nil, to: client, &turn) }
        turn.tell(.call(call, .rings(devices: clients.count)))
        if facts.devices.hasPush {
            turn.push(facts.id, PushNotice(call: call, kind: .incoming, expires: part.offer.ringsUntil))
        }
    }

    func tellIncoming(_ part: Part, re: UInt64?, to client: ConnectionID, _ turn: inout Turn) {
        let offer = part.offer
        var incoming = CallNotice.Incoming()
        (incoming.re, incoming.call, incoming.video) = (re, offer.call, offer.video)
        incoming.person = offer.other.info
        incoming.waiting = isBusy
        incoming.expiresIn = max(.zero, offer.ringsUntil - turn.now)
        turn.send(.call(.incoming(incoming)), to: client)
    }
}
