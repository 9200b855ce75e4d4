import Wire

/// Places outgoing calls and answers incoming ones.
extension CallState {
    // MARK: Placing

    mutating func start(
        _ start: CallVerb.Start, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        if let error = snapshot.banError(context.wallNow) ?? obstacle(snapshot) { return context.fail(error, request) }
        guard start.person != snapshot.persona.id else { return callsItself(request, &context) }
        guard snapshot.devices.hasAppeared(request.client) else {
            let error = WireError(.notPresent, "Send presence.appear first; the callee must see who is calling.")
            return context.fail(error, request)
        }
        snapshot.introduce(start.person, for: .call(.start(start)), request, &context)
    }

    private func callsItself(_ request: Request, _ context: inout Context) {
        context.fail(WireError(.callSelf, "You cannot call yourself."), request)
    }

    /// Returns the reason why this person cannot place a call now, or nil if they can.
    private func obstacle(_ snapshot: PersonSnapshot) -> WireError? {
        if isBusy { return WireError(.elsewhere, "You are already in a call. End it first.") }
        if snapshot.searchName != nil {
            return WireError(
                .elsewhere, "You are searching for or chatting with a stranger. Stop that first.")
        }
        return nil
    }

    /// Places the call that `call.start` requested. The lookup has found the callee's identity.
    mutating func place(_ attempt: CallAttempt, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let (request, other) = (Request(attempt.client, attempt.re), attempt.callee)
        // The device may have disconnected during the lookup.
        guard snapshot.devices[request.client] != nil else { return }
        guard other != snapshot.id else { return callsItself(request, &context) }
        guard !snapshot.blocks.contains(other) else {
            let error = WireError(.callNotAllowed, "You have blocked this person. Unblock them first.")
            return context.fail(error, request)
        }
        // If two people call each other, connect them immediately, even if other calls are ringing.
        let isMutual = parts.contains { $0.offer.other.identity == other }
        var error = snapshot.banError(context.wallNow) ?? obstacle(snapshot)
        if error == nil, !isMutual, parts.count >= Self.maxCalls {
            error = WireError(.elsewhere, "Two calls are already ringing. Answer or decline one first.")
        }
        if let error = error ?? tooManyCalls(to: other, context) { return context.fail(error, request) }
        asking = request
        context.tell(.newCall(attempt))
    }

    /// Returns an error if a limit on placing calls is reached, otherwise nil. Charges the budget, unless the caller
    /// must wait because of earlier unanswered calls.
    private mutating func tooManyCalls(to other: IdentityID, _ context: Context) -> WireError? {
        if let until = unanswered.waitEnd(for: other, context.now) {
            let wait = until - context.now
            return WireError(
                .rateLimited, "This person did not answer your calls. Try again in \(wait.roundedText).",
                retryable: true, retryAfter: wait
            )
        }
        return placedBudget.take(context.rules.callsPlaced, now: context.now).map {
            WireError(
                .rateLimited, "Too many calls. Try again in \($0.roundedText).", retryable: true, retryAfter: $0
            )
        }
    }

    mutating func placed(_ offer: CallOffer, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard asking == request else {
            // The device disconnected before the call had an id. End the call.
            return context.tell(.call(offer.call, .leave(snapshot.id, .hungUp)))
        }
        asking = nil
        parts.append(Part(offer: offer, direction: .outgoing, state: .placed(request.client)))
        tellPlaced(offer, request, &context)
    }

    func tellPlaced(_ offer: CallOffer, _ request: Request, _ context: inout Context) {
        var placed = CallNotice.Placed()
        (placed.re, placed.call, placed.video) = (request.re, offer.call, offer.video)
        placed.person = offer.other.info
        placed.expiresIn = max(.zero, offer.ringsUntil - context.now)
        context.send(.call(.placed(placed)), to: request.client)
    }

    // MARK: Incoming calls

    mutating func asked(_ offer: CallOffer, isContact: Bool, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let answer = answer(to: offer, isContact: isContact, snapshot, context)
        switch answer {
        case .ready: reservePlace(for: offer)
        case .mutual(_, let own) where offer.call < own: reservePlace(for: offer)
        case .mutual, .refused, .notAllowed: break
        }
        context.tell(.call(offer.call, .answered(answer)))
    }

    private mutating func reservePlace(for offer: CallOffer) {
        parts.append(Part(offer: offer, direction: .incoming, state: .asked))
    }

    private mutating func answer(
        to offer: CallOffer, isContact: Bool, _ snapshot: PersonSnapshot, _ context: Context
    ) -> CallAnswer {
        let caller = offer.other.identity
        guard !snapshot.blocks.contains(caller), snapshot.banError(context.wallNow) == nil else {
            return absentAnswer(isContact: isContact, snapshot)
        }
        for part in parts where part.direction == .outgoing && part.offer.other.identity == caller {
            if case .placed = part.state, part.ending == nil { return .mutual(snapshot.counterpart, with: part.id) }
        }
        guard isRingable(isContact: isContact, snapshot) else { return .notAllowed }
        let isStorm = rungBudget.take(context.rules.ringsReceived, now: context.now) != nil
        // Check whether the person is reachable before checking whether they are busy. An unreachable person thus gives the
        // same answer as a person who has blocked the caller. Calls beyond the ring limit are not logged as missed.
        guard snapshot.devices.hasPush || snapshot.devices.isThere else {
            return .refused(snapshot.counterpart, .unreachable, isMissed: !isStorm)
        }
        if isStorm { return .refused(snapshot.counterpart, .busy, isMissed: false) }
        if snapshot.persona.profile.doNotDisturb || parts.count + (asking == nil ? 0 : 1) >= Self.maxCalls {
            return .refused(snapshot.counterpart, .busy, isMissed: true)
        }
        return .ready(snapshot.counterpart)
    }

    /// The answer to a caller whom this person has blocked, and to every caller if this person is banned. It is always
    /// the same as if this person were offline, so it does not reveal the block. The call does not count toward the
    /// ring limit and is not logged.
    private func absentAnswer(isContact: Bool, _ snapshot: PersonSnapshot) -> CallAnswer {
        guard isRingable(isContact: isContact, snapshot) else { return .notAllowed }
        var party = snapshot.counterpart
        party.isOnline = false
        return .refused(party, .unreachable, isMissed: false)
    }

    private func isRingable(isContact: Bool, _ snapshot: PersonSnapshot) -> Bool {
        switch snapshot.persona.profile.ringable {
        case .everyone: true
        case .contacts: isContact
        case .nobody: false
        }
    }

    mutating func ring(_ call: CallID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard var part = self[call], part.state == .asked else { return }
        let clients = snapshot.devices.present
        part.state = .ringing(Set(clients))
        part.wasPushed = snapshot.devices.hasPush
        self[call] = part
        for client in clients { tellIncoming(part, re: nil, to: client, &context) }
        context.tell(.call(call, .rings(devices: clients.count)))
        if snapshot.devices.hasPush {
            context.push(snapshot.id, PushNotice(call: call, kind: .incoming, expires: part.offer.ringsUntil))
        }
    }

    func tellIncoming(_ part: Part, re: UInt64?, to client: ConnectionID, _ context: inout Context) {
        let offer = part.offer
        var incoming = CallNotice.Incoming()
        (incoming.re, incoming.call, incoming.video) = (re, offer.call, offer.video)
        incoming.person = offer.other.info
        incoming.waiting = isBusy
        incoming.expiresIn = max(.zero, offer.ringsUntil - context.now)
        context.send(.call(.incoming(incoming)), to: client)
    }
}
