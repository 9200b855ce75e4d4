import Cluster
import Wire

/// Places outgoing calls.
extension CallState {
    // MARK: Placing

    /// Handles a request to place a call.
    ///
    /// - Parameter node: the node of the cluster to which the caller should move, because the callee is there; nil if the
    ///   call can be placed here.
    mutating func start(
        _ start: CallVerb.Start, at node: NodeTag?, _ request: Request, _ snapshot: PersonSnapshot,
        _ context: inout Context
    ) {
        if let error = snapshot.banError(context.wallNow) ?? obstacle(snapshot) { return context.fail(error, request) }
        guard start.person != snapshot.persona.id else { return callsItself(request, &context) }
        guard snapshot.devices.hasAppeared(request.client) else {
            let error = WireError(.notPresent, "Send presence.appear first; the callee must see who is calling.")
            return context.fail(error, request)
        }
        if let node { return context.fail(.calleeElsewhere(at: node), request) }
        snapshot.introduce(start.person, for: .call(.start(start)), request, &context)
    }

    private func callsItself(_ request: Request, _ context: inout Context) {
        context.fail(WireError(.callSelf, "You cannot call yourself."), request)
    }

    /// Returns the reason why this person cannot place or rejoin a call now, or nil if they can.
    func obstacle(_ snapshot: PersonSnapshot) -> WireError? {
        if isInCall { return WireError(.elsewhere, "You are already in a call. End it first.") }
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
        sendPlaced(offer, request, &context)
    }

    func sendPlaced(_ offer: CallOffer, _ request: Request, _ context: inout Context) {
        var placed = CallNotice.Placed()
        (placed.re, placed.call, placed.video) = (request.re, offer.call, offer.video)
        placed.person = offer.other.info
        placed.expiresIn = max(.zero, offer.ringsUntil - context.now)
        context.send(.call(.placed(placed)), to: request.client)
    }
}
