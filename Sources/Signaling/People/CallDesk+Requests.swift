import Wire

/// Handles ringing and active calls: accepting, updating, rejoining and ending them.
extension CallDesk {
    // MARK: Accepting

    /// - Returns: true if the device may accept the call. `Person` must then leave the roulette before it notifies the call's
    ///   state machine.
    mutating func accept(_ verb: CallVideo, _ request: Request, _ facts: Facts, _ turn: inout Turn) -> Bool {
        guard let part = self[verb.call] else {
            noCall(request, &turn)
            return false
        }
        guard case .ringing(let rung) = part.state, part.ending == nil else {
            wrongCallState(request, "This call is no longer ringing here.", &turn)
            return false
        }
        guard asking == nil else {
            wrongCallState(request, "Your own call is still being placed. Try again in a moment.", &turn)
            return false
        }
        if let engaged = engaged {
            // The end of the current call must not answer any request: neither the request to accept this call nor an earlier
            // `call.end` from another device.
            self[engaged.id]?.endingRequest = nil
            leave(engaged.id, by: request.client, facts, &turn)
        }
        self[part.id]?.state = .entering(request.client, re: request.re, rung: rung)
        return true
    }

    /// Handles a call that both people have agreed to. The device that accepted, placed or rejoined the call may now join its
    /// session.
    mutating func accepted(_ agreement: CallAgreement, _ facts: Facts, _ turn: inout Turn) {
        guard var part = self[agreement.call] else { return }
        let (client, re, rung): (ConnectionID?, UInt64?, Set<ConnectionID>) =
            switch part.state {
            case .entering(let client, let re, let rung): (client, re, rung)
            case .placed(let client), .accepted(let client, _): (client, nil, [])
            case .asked, .ringing: (nil, nil, [])
            }
        part.state = .accepted(client, agreement.admission.session)
        part.acceptedAt = agreement.since
        if part.wasPushed {
            part.wasPushed = false
            turn.push(facts.id, PushNotice(call: part.id, kind: .over, expires: part.offer.ringsUntil))
        }
        self[part.id] = part
        unanswered.forget(part.offer.other.identity)
        for other in rung.sorted() where other != client && facts.devices[other] != nil {
            let record = part.record(.answeredElsewhere)
            turn.send(.call(.ended(.init(record, part.offer.other.person))), to: other)
        }
        guard let client else { return }
        var message = CallNotice.Accepted()
        (message.re, message.call, message.video) = (re, part.id, part.offer.video)
        message.person = part.offer.other.info
        (message.withVideo, message.since) = (agreement.withVideo, agreement.since)
        (message.admission, message.mediaMode) = (agreement.admission, agreement.mediaMode)
        turn.send(.call(.accepted(message)), to: client)
    }

    // MARK: During a call

    func update(_ verb: CallVideo, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard let part = self[verb.call] else { return noCall(request, &turn) }
        guard case .accepted(let holder, _) = part.state, part.ending == nil else {
            return wrongCallState(request, "This call has not been accepted yet.", &turn)
        }
        guard holder == request.client else { return onOtherDevice(request, &turn) }
        turn.ok(request)
        turn.tell(.call(part.id, .video(facts.id, verb.video)))
    }

    private func onOtherDevice(_ request: Request, _ turn: inout Turn) {
        let error = WireError(.elsewhere, "This call is active on your other device. End it there first.")
        turn.fail(error, request)
    }

    /// Handles a device's request to rejoin a call after a server restart, or instead of another device that has lost its
    /// connection.
    mutating func rejoin(_ call: CallID, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard var part = self[call] else { return noCall(request, &turn) }
        guard part.ending == nil else {
            return wrongCallState(request, "This call is already ending. Wait for call.ended.", &turn)
        }
        if let holder = part.holder, holder != request.client, facts.devices.isLive(holder) {
            return onOtherDevice(request, &turn)
        }
        switch part.state {
        case .asked, .entering: wrongCallState(request, "This call is still connecting. Try again in a moment.", &turn)
        case .ringing(let rung):
            part.state = .ringing(rung.union([request.client]))
            self[call] = part
            tellIncoming(part, re: request.re, to: request.client, &turn)
            tellRinging(part, facts, &turn)
        case .placed:
            part.state = .placed(request.client)
            self[call] = part
            tellPlaced(part.offer, request, &turn)
            turn.tell(.call(call, .away(facts.id, false)))
        case .accepted(let holder, let session):
            if let holder, holder != request.client {
                // First free the place that the old device has in the session.
                turn.tell(.client(holder, .leftSession(session, .forceDisconnected)))
                turn.tell(.session(session, .gone(holder, .networkDisconnected)))
            }
            part.state = .entering(request.client, re: request.re, rung: [])
            self[call] = part
            turn.tell(.call(call, .rejoin(facts.id)))
        }
    }

    // MARK: Ending

    mutating func decline(_ call: CallID, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard let part = self[call] else { return noCall(request, &turn) }
        guard part.rung != nil else {
            return wrongCallState(request, "This call is not ringing here. Use call.end instead.", &turn)
        }
        end(part, request, facts, &turn)
    }

    mutating func cancel(_ call: CallID, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard let part = self[call] else { return noCall(request, &turn) }
        guard case .placed = part.state else {
            return wrongCallState(request, "This call can no longer be canceled. Use call.end instead.", &turn)
        }
        end(part, request, facts, &turn)
    }

    mutating func end(_ part: Part, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        guard part.ending == nil else {
            return wrongCallState(request, "This call is already ending. Wait for call.ended.", &turn)
        }
        self[part.id]?.endingRequest = request.re
        leave(part.id, by: request.client, facts, &turn)
    }

    private mutating func leave(_ call: CallID, by client: ConnectionID, _ facts: Facts, _ turn: inout Turn) {
        self[call]?.ending = client
        turn.tell(.call(call, .leave(facts.id, .hungUp)))
    }

    // MARK: Devices

    /// Rings a device that went online or reconnected.
    mutating func appeared(_ client: ConnectionID, _ facts: Facts, _ turn: inout Turn) {
        for part in parts {
            guard let rung = part.rung, part.ending == nil else { continue }
            var part = part
            if !rung.contains(client) {
                part.state = .ringing(rung.union([client]))
                self[part.id] = part
                tellIncoming(part, re: nil, to: client, &turn)
            }
            tellRinging(part, facts, &turn)
        }
    }

    /// Notifies the caller of how many devices are ringing.
    private func tellRinging(_ part: Part, _ facts: Facts, _ turn: inout Turn) {
        let live = part.rung?.count { facts.devices.isLive($0) } ?? 0
        turn.tell(.call(part.id, .rings(devices: live)))
    }

    func dropped(_ client: ConnectionID, _ facts: Facts, _ turn: inout Turn) {
        for part in parts {
            if part.holder == client { turn.tell(.call(part.id, .away(facts.id, true))) }
            if part.rung?.contains(client) ?? false { tellRinging(part, facts, &turn) }
        }
    }

    mutating func returned(_ client: ConnectionID, _ facts: Facts, _ turn: inout Turn) {
        for part in parts where part.holder == client { turn.tell(.call(part.id, .away(facts.id, false))) }
        if facts.devices.hasAppeared(client) { appeared(client, facts, &turn) }
    }

    /// Handles the departure of a device. The device is already removed from `devices`.
    mutating func departed(_ client: ConnectionID, wasDropped: Bool, _ facts: Facts, _ turn: inout Turn) {
        if asking?.client == client { asking = nil }
        for var part in parts {
            if part.holder == client, part.ending == nil {
                if !wasDropped { part.ending = client }
                self[part.id] = part
                turn.tell(.call(part.id, .leave(facts.id, wasDropped ? .lost : .hungUp)))
            } else if var rung = part.rung, rung.remove(client) != nil {
                part.state = .ringing(rung)
                self[part.id] = part
                let isOutOfReach = !facts.devices.hasPush && !facts.devices.hasAppeared
                if isOutOfReach { turn.tell(.call(part.id, .outOfReach)) } else { tellRinging(part, facts, &turn) }
            }
        }
    }

    // MARK: Restart

    /// Restores this person's side of a call after a restart. The person's devices rejoin the call when they reconnect.
    mutating func restore(_ call: StoredCall, _ facts: Facts, _ turn: Turn) {
        let isCaller = call.caller == facts.id
        let identity = isCaller ? call.callee : call.caller
        let other = Counterpart(
            identity: identity, person: turn.project.personID(of: identity),
            name: isCaller ? call.calleeName : call.callerName, isOnline: false
        )
        let offer = CallOffer(
            call: call.id, other: other, video: call.video, placedAt: call.placedAt, ringsUntil: call.ringsUntil
        )
        let state: State =
            call.acceptedAt != nil ? .accepted(nil, call.session) : isCaller ? .placed(nil) : .ringing([])
        var part = Part(offer: offer, direction: isCaller ? .outgoing : .incoming, state: state)
        part.acceptedAt = call.acceptedAt
        part.wasPushed = part.rung != nil && facts.devices.hasPush
        parts.append(part)
    }
}
