import Wire

/// What is done with a call once it rings: taking it, being let in, changing it, coming back to it, ending it.
extension Person {
    // MARK: Taking it

    mutating func accept(
        _ verb: AnswerCall, by client: ConnectionID, re: UInt64, now: Timestamp, _ rules: Rules,
        into effects: inout [Effect]
    ) {
        guard let part = calls[verb.call] else { return noCall(re, client, into: &effects) }
        guard case .ringing(let rung) = part.state, part.ending == nil else {
            return wrongCallState(re, client, "This call does not ring here any more.", into: &effects)
        }
        guard calls.asking == nil else {
            return wrongCallState(re, client, "You are calling somebody this very moment; try again.", into: &effects)
        }
        // One person is in one call, and not in a chat besides.
        if let engaged = calls.engaged { leave(engaged.id, by: client, into: &effects) }
        leaveRoulette("You have taken a call; press Start when it is over.", now: now, rules, into: &effects)
        calls[part.id]?.state = .entering(client, re: re, rung: rung)
        effects.tell(.call(part.id, .accept(id, video: verb.video)))
    }

    /// Let in, for the first time or again.
    mutating func accepted(
        _ agreement: CallAgreement, into effects: inout [Effect]
    ) {
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
            effects.append(.push(id, PushNotice(call: part.id, kind: .over, expires: part.offer.ringsUntil)))
        }
        calls[part.id] = part
        calls.inVain[part.offer.other.identity] = nil
        for other in rung.sorted() where other != client && devices[other] != nil {
            let record = part.record(.answeredElsewhere)
            effects.send(.call(.ended(CallEnded(record, part.offer.other.person))), to: other)
        }
        guard let client else { return }
        var message = CallAccepted()
        (message.re, message.call, message.video) = (re, part.id, part.offer.video)
        message.person = part.offer.other.info
        (message.withVideo, message.since) = (agreement.withVideo, agreement.since)
        (message.admission, message.mediaMode) = (agreement.admission, agreement.mediaMode)
        effects.send(.call(.accepted(message)), to: client)
    }

    // MARK: In it

    func update(_ verb: AnswerCall, by client: ConnectionID, re: UInt64, into effects: inout [Effect]) {
        guard let part = calls[verb.call] else { return noCall(re, client, into: &effects) }
        guard case .accepted(let holder, _) = part.state, part.ending == nil else {
            return wrongCallState(re, client, "Nobody has taken this call yet.", into: &effects)
        }
        guard holder == client else { return onOtherDevice(re, client, into: &effects) }
        effects.send(.ok(Answer(re: re)), to: client)
        effects.tell(.call(part.id, .video(id, verb.video)))
    }

    private func onOtherDevice(_ re: UInt64, _ client: ConnectionID, into effects: inout [Effect]) {
        let error = WireError(.elsewhere, "This call is on another of your devices; end it there first.")
        effects.fail(error, re: re, to: client)
    }

    /// Asks how a call stands, after a restart or from another device than the one that dropped.
    mutating func rejoin(
        _ call: CallID, by client: ConnectionID, re: UInt64, now: Timestamp,
        into effects: inout [Effect]
    ) {
        guard var part = calls[call] else { return noCall(re, client, into: &effects) }
        guard part.ending == nil else {
            return wrongCallState(re, client, "This call is ending; call.ended says when it is over.", into: &effects)
        }
        if let holder = part.holder, holder != client, !(devices[holder]?.isDropped ?? true) {
            return onOtherDevice(re, client, into: &effects)
        }
        switch part.state {
        case .asked, .entering: wrongCallState(re, client, "This call is being connected.", into: &effects)
        case .ringing(let rung):
            part.state = .ringing(rung.union([client]))
            calls[call] = part
            tellIncoming(part, re: re, to: client, now: now, into: &effects)
            tellRinging(part, into: &effects)
        case .placed:
            part.state = .placed(client)
            calls[call] = part
            tellPlaced(part.offer, re: re, to: client, now: now, into: &effects)
            effects.tell(.call(call, .away(id, false)))
        case .accepted(let holder, let session):
            if let holder, holder != client {
                // Its place in the session would be in the way.
                effects.tell(.client(holder, .leftSession(session, .forceDisconnected)))
                effects.tell(.session(session, .gone(holder, .networkDisconnected)))
            }
            part.state = .entering(client, re: re, rung: [])
            calls[call] = part
            effects.tell(.call(call, .rejoin(id)))
        }
    }

    // MARK: Ending it

    mutating func decline(_ call: CallID, by client: ConnectionID, re: UInt64, into effects: inout [Effect]) {
        guard let part = calls[call] else { return noCall(re, client, into: &effects) }
        guard part.rung != nil else {
            return wrongCallState(re, client, "This call does not ring here; end it instead.", into: &effects)
        }
        end(part, by: client, re: re, into: &effects)
    }

    mutating func cancel(_ call: CallID, by client: ConnectionID, re: UInt64, into effects: inout [Effect]) {
        guard let part = calls[call] else { return noCall(re, client, into: &effects) }
        guard case .placed = part.state else {
            return wrongCallState(re, client, "This call does not ring there any more; end it instead.", into: &effects)
        }
        end(part, by: client, re: re, into: &effects)
    }

    mutating func end(
        _ part: PersonCalls.Part, by client: ConnectionID, re: UInt64, into effects: inout [Effect]
    ) {
        guard part.ending == nil else {
            return wrongCallState(re, client, "This call is ending; call.ended says when it is over.", into: &effects)
        }
        leave(part.id, by: client, re: re, into: &effects)
    }

    /// - Parameter re: the request that is answered when the call is over.
    private mutating func leave(
        _ call: CallID, by client: ConnectionID, re: UInt64? = nil, into effects: inout [Effect]
    ) {
        calls[call]?.ending = client
        calls[call]?.endingRequest = re
        effects.tell(.call(call, .leave(id, .willingly)))
    }

    // MARK: Devices

    /// A device is there to be rung: it appeared, or came back.
    mutating func appeared(_ client: ConnectionID, now: Timestamp, into effects: inout [Effect]) {
        for part in calls.parts {
            guard let rung = part.rung, part.ending == nil else { continue }
            var part = part
            if !rung.contains(client) {
                part.state = .ringing(rung.union([client]))
                calls[part.id] = part
                tellIncoming(part, re: nil, to: client, now: now, into: &effects)
            }
            tellRinging(part, into: &effects)
        }
    }

    /// To the caller.
    private func tellRinging(_ part: PersonCalls.Part, into effects: inout [Effect]) {
        let live = part.rung?.count { !(devices[$0]?.isDropped ?? true) } ?? 0
        effects.tell(.call(part.id, .rings(devices: live)))
    }

    mutating func callDeviceDropped(_ client: ConnectionID, into effects: inout [Effect]) {
        for part in calls.parts {
            if part.holder == client { effects.tell(.call(part.id, .away(id, true))) }
            if part.rung?.contains(client) ?? false { tellRinging(part, into: &effects) }
        }
    }

    mutating func callDeviceReturned(
        _ client: ConnectionID, now: Timestamp, into effects: inout [Effect]
    ) {
        for part in calls.parts where part.holder == client { effects.tell(.call(part.id, .away(id, false))) }
        if devices[client]?.isPresent ?? false { appeared(client, now: now, into: &effects) }
    }

    /// The device is not among `devices` any more.
    mutating func callDeviceDeparted(_ client: ConnectionID, wasDropped: Bool, into effects: inout [Effect]) {
        if calls.asking?.client == client { calls.asking = nil }
        for var part in calls.parts {
            if part.holder == client, part.ending == nil {
                if !wasDropped { part.ending = client }
                calls[part.id] = part
                effects.tell(.call(part.id, .leave(id, wasDropped ? .lost : .willingly)))
            } else if var rung = part.rung, rung.remove(client) != nil {
                part.state = .ringing(rung)
                calls[part.id] = part
                let isOutOfReach = !hasPush && !devices.values.contains(where: \.isPresent)
                if isOutOfReach { effects.tell(.call(part.id, .outOfReach)) } else { tellRinging(part, into: &effects) }
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
