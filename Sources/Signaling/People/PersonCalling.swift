import Wire

/// What is done with a call once it rings: taking it, being let in, changing it, coming back to it, ending it.
extension Person {
    // MARK: Taking it

    mutating func accept(_ verb: AnswerCall, _ request: Request, _ turn: inout Turn) {
        guard let part = calls[verb.call] else { return noCall(request, &turn) }
        guard case .ringing(let rung) = part.state, part.ending == nil else {
            return wrongCallState(request, "This call does not ring here any more.", &turn)
        }
        guard calls.asking == nil else {
            return wrongCallState(request, "You are calling somebody this very moment; try again.", &turn)
        }
        // One person is in one call, and not in a chat besides.
        if let engaged = calls.engaged { leave(engaged.id, by: request.client, &turn) }
        leaveRoulette("You have taken a call; press Start when it is over.", &turn)
        calls[part.id]?.state = .entering(request.client, re: request.re, rung: rung)
        turn.tell(.call(part.id, .accept(id, video: verb.video)))
    }

    /// Let in, for the first time or again.
    mutating func accepted(_ agreement: CallAgreement, _ turn: inout Turn) {
        guard var part = calls[agreement.call] else { return }
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
            turn.push(id, PushNotice(call: part.id, kind: .over, expires: part.offer.ringsUntil))
        }
        calls[part.id] = part
        calls.inVain[part.offer.other.identity] = nil
        for other in rung.sorted() where other != client && devices[other] != nil {
            let record = part.record(.answeredElsewhere)
            turn.send(.call(.ended(CallEnded(record, part.offer.other.person))), to: other)
        }
        guard let client else { return }
        var message = CallAccepted()
        (message.re, message.call, message.video) = (re, part.id, part.offer.video)
        message.person = part.offer.other.info
        (message.withVideo, message.since) = (agreement.withVideo, agreement.since)
        (message.admission, message.mediaMode) = (agreement.admission, agreement.mediaMode)
        turn.send(.call(.accepted(message)), to: client)
    }

    // MARK: In it

    func update(_ verb: AnswerCall, _ request: Request, _ turn: inout Turn) {
        guard let part = calls[verb.call] else { return noCall(request, &turn) }
        guard case .accepted(let holder, _) = part.state, part.ending == nil else {
            return wrongCallState(request, "Nobody has taken this call yet.", &turn)
        }
        guard holder == request.client else { return onOtherDevice(request, &turn) }
        turn.ok(request)
        turn.tell(.call(part.id, .video(id, verb.video)))
    }

    private func onOtherDevice(_ request: Request, _ turn: inout Turn) {
        let error = WireError(.elsewhere, "This call is on another of your devices; end it there first.")
        turn.fail(error, request)
    }

    /// Asks how a call stands, after a restart or from another device than the one that dropped.
    mutating func rejoin(_ call: CallID, _ request: Request, _ turn: inout Turn) {
        guard var part = calls[call] else { return noCall(request, &turn) }
        guard part.ending == nil else {
            return wrongCallState(request, "This call is ending; call.ended says when it is over.", &turn)
        }
        if let holder = part.holder, holder != request.client, !(devices[holder]?.isDropped ?? true) {
            return onOtherDevice(request, &turn)
        }
        switch part.state {
        case .asked, .entering: wrongCallState(request, "This call is being connected.", &turn)
        case .ringing(let rung):
            part.state = .ringing(rung.union([request.client]))
            calls[call] = part
            tellIncoming(part, re: request.re, to: request.client, &turn)
            tellRinging(part, &turn)
        case .placed:
            part.state = .placed(request.client)
            calls[call] = part
            tellPlaced(part.offer, request, &turn)
            turn.tell(.call(call, .away(id, false)))
        case .accepted(let holder, let session):
            if let holder, holder != request.client {
                // Its place in the session would be in the way.
                turn.tell(.client(holder, .leftSession(session, .forceDisconnected)))
                turn.tell(.session(session, .gone(holder, .networkDisconnected)))
            }
            part.state = .entering(request.client, re: request.re, rung: [])
            calls[call] = part
            turn.tell(.call(call, .rejoin(id)))
        }
    }

    // MARK: Ending it

    mutating func decline(_ call: CallID, _ request: Request, _ turn: inout Turn) {
        guard let part = calls[call] else { return noCall(request, &turn) }
        guard part.rung != nil else {
            return wrongCallState(request, "This call does not ring here; end it instead.", &turn)
        }
        end(part, request, &turn)
    }

    mutating func cancel(_ call: CallID, _ request: Request, _ turn: inout Turn) {
        guard let part = calls[call] else { return noCall(request, &turn) }
        guard case .placed = part.state else {
            return wrongCallState(request, "This call does not ring there any more; end it instead.", &turn)
        }
        end(part, request, &turn)
    }

    mutating func end(_ part: PersonCalls.Part, _ request: Request, _ turn: inout Turn) {
        guard part.ending == nil else {
            return wrongCallState(request, "This call is ending; call.ended says when it is over.", &turn)
        }
        leave(part.id, by: request.client, re: request.re, &turn)
    }

    /// - Parameter re: the request that is answered when the call is over.
    private mutating func leave(_ call: CallID, by client: ConnectionID, re: UInt64? = nil, _ turn: inout Turn) {
        calls[call]?.ending = client
        calls[call]?.endingRequest = re
        turn.tell(.call(call, .leave(id, .willingly)))
    }

    // MARK: Devices

    /// A device is there to be rung: it appeared, or came back.
    mutating func appeared(_ client: ConnectionID, _ turn: inout Turn) {
        for part in calls.parts {
            guard let rung = part.rung, part.ending == nil else { continue }
            var part = part
            if !rung.contains(client) {
                part.state = .ringing(rung.union([client]))
                calls[part.id] = part
                tellIncoming(part, re: nil, to: client, &turn)
            }
            tellRinging(part, &turn)
        }
    }

    /// To the caller.
    private func tellRinging(_ part: PersonCalls.Part, _ turn: inout Turn) {
        let live = part.rung?.count { !(devices[$0]?.isDropped ?? true) } ?? 0
        turn.tell(.call(part.id, .rings(devices: live)))
    }

    mutating func callDeviceDropped(_ client: ConnectionID, _ turn: inout Turn) {
        for part in calls.parts {
            if part.holder == client { turn.tell(.call(part.id, .away(id, true))) }
            if part.rung?.contains(client) ?? false { tellRinging(part, &turn) }
        }
    }

    mutating func callDeviceReturned(_ client: ConnectionID, _ turn: inout Turn) {
        for part in calls.parts where part.holder == client { turn.tell(.call(part.id, .away(id, false))) }
        if devices[client]?.isPresent ?? false { appeared(client, &turn) }
    }

    /// The device is not among `devices` any more.
    mutating func callDeviceDeparted(_ client: ConnectionID, wasDropped: Bool, _ turn: inout Turn) {
        if calls.asking?.client == client { calls.asking = nil }
        for var part in calls.parts {
            if part.holder == client, part.ending == nil {
                if !wasDropped { part.ending = client }
                calls[part.id] = part
                turn.tell(.call(part.id, .leave(id, wasDropped ? .lost : .willingly)))
            } else if var rung = part.rung, rung.remove(client) != nil {
                part.state = .ringing(rung)
                calls[part.id] = part
                let isOutOfReach = !hasPush && !devices.values.contains(where: \.isPresent)
                if isOutOfReach { turn.tell(.call(part.id, .outOfReach)) } else { tellRinging(part, &turn) }
            }
        }
    }

    // MARK: After a restart

    /// What this person had to do with it; its devices will say that they are back.
    mutating func restore(_ call: StoredCall, _ project: Project) {
        let isCaller = call.caller == id
        let identity = isCaller ? call.callee : call.caller
        let other = Counterpart(
            identity: identity, person: project.personID(of: identity),
            name: isCaller ? call.calleeName : call.callerName, isOnline: false
        )
        let offer = CallOffer(
            call: call.id, other: other, video: call.video, placedAt: call.placedAt, ringsUntil: call.ringsUntil
        )
        let state: PersonCalls.State =
            call.acceptedAt != nil ? .accepted(nil, call.session) : isCaller ? .placed(nil) : .ringing([])
        var part = PersonCalls.Part(offer: offer, direction: isCaller ? .outgoing : .incoming, state: state)
        part.acceptedAt = call.acceptedAt
        part.wasPushed = part.rung != nil && hasPush
        calls.parts.append(part)
    }
}
