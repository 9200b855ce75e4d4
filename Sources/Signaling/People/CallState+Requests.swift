import Wire

/// Handles ringing and active calls: accepting, updating, rejoining and ending them.
extension CallState {
    // MARK: Accepting

    /// Prepares this device to accept a ringing call, and ends the person's current call, if any. If the device may not
    /// accept the call, answers the request with an error. Otherwise, `accepted` answers it later.
    ///
    /// - Returns: true if the device may accept the call. `Person` must then leave the roulette before it notifies the
    ///   call's state machine.
    mutating func accept(_ verb: CallVideo, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context)
        -> Bool
    {
        guard let part = self[verb.call] else {
            noCall(request, &context)
            return false
        }
        guard case .ringing(let rung) = part.state, part.ending == nil else {
            wrongCallState(request, "This call is no longer ringing here.", &context)
            return false
        }
        guard asking == nil else {
            wrongCallState(request, "Your own call is still being placed. Try again in a moment.", &context)
            return false
        }
        if let engaged = engaged {
            // The end of the current call must not answer any request: neither the request to accept this call nor an earlier
            // `call.end` from another device.
            self[engaged.id]?.endingRequest = nil
            leave(engaged.id, by: request.client, snapshot, &context)
        }
        self[part.id]?.state = .entering(request.client, re: request.re, rung: rung)
        return true
    }

    /// Handles a call that both people have agreed to. The device that accepted, placed or rejoined the call may now join its
    /// session.
    mutating func accepted(_ agreement: CallAgreement, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard var part = self[agreement.call] else { return }
        let (client, re): (ConnectionID?, UInt64?) =
            switch part.state {
            case .entering(let client, let re, _): (client, re)
            case .placed(let client), .accepted(let client, _): (client, nil)
            case .asked, .ringing: (nil, nil)
            }
        stopRinging(part, snapshot, &context)
        part.state = .accepted(client, agreement.admission.session)
        part.acceptedAt = agreement.since
        part.wasPushed = false
        self[part.id] = part
        unanswered.forget(part.offer.other.identity)
        guard let client else { return }
        var message = CallNotice.Accepted()
        (message.re, message.call, message.video) = (re, part.id, part.offer.video)
        message.person = part.offer.other.info
        (message.withVideo, message.since) = (agreement.withVideo, agreement.since)
        (message.admission, message.mediaMode) = (agreement.admission, agreement.mediaMode)
        context.send(.call(.accepted(message)), to: client)
    }

    /// Withdraws the push notification of a call that one device has accepted, and lets the other devices know.
    func stopRinging(_ part: Part, _ snapshot: PersonSnapshot, _ context: inout Context) {
        if part.wasPushed {
            context.push(snapshot.id, PushNotice(call: part.id, kind: .over, expires: part.offer.ringsUntil))
        }
        guard case .entering(let client, _, let rung) = part.state else { return }
        for other in rung.sorted() where other != client && snapshot.devices[other] != nil {
            let record = part.record(.answeredElsewhere)
            context.send(.call(.ended(.init(record, part.offer.other.person))), to: other)
        }
    }

    // MARK: During a call

    func update(_ verb: CallVideo, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let part = self[verb.call] else { return noCall(request, &context) }
        guard case .accepted(let holder, _) = part.state, part.ending == nil else {
            return wrongCallState(
                request, "This call is not active: it has not been accepted yet, or is ending.", &context)
        }
        guard holder == request.client else { return onOtherDevice(request, &context) }
        context.ok(request)
        context.tell(.call(part.id, .video(snapshot.id, verb.video)))
    }

    private func onOtherDevice(_ request: Request, _ context: inout Context) {
        let error = WireError(.elsewhere, "This call is active on your other device. End it there first.")
        context.fail(error, request)
    }

    /// Handles a device's request to rejoin a call after a server restart, or instead of another device that has lost its
    /// connection.
    mutating func rejoin(_ call: CallID, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard var part = self[call] else { return locate(call, request, snapshot, &context) }
        guard part.ending == nil else {
            return wrongCallState(request, "This call is already ending. Wait for call.ended.", &context)
        }
        if let holder = part.holder, holder != request.client, snapshot.devices.isLive(holder) {
            return onOtherDevice(request, &context)
        }
        switch part.state {
        // A client that was redirected repeats the request, and may ask again when it restores its calls.
        case .entering(request.client, _, _): context.ok(request)
        case .asked, .entering:
            wrongCallState(request, "This call is still connecting. Try again in a moment.", &context)
        case .ringing(let rung):
            part.state = .ringing(rung.union([request.client]))
            self[call] = part
            sendIncoming(part, re: request.re, to: request.client, &context)
            reportRinging(part, snapshot, &context)
        case .placed:
            part.state = .placed(request.client)
            self[call] = part
            sendPlaced(part.offer, request, &context)
            context.tell(.call(call, .away(snapshot.id, false)))
        case .accepted(let holder, let session):
            if let holder, holder != request.client {
                // First free the place that the old device has in the session.
                context.tell(.client(holder, .leftSession(session, .forceDisconnected)))
                context.tell(.session(session, .gone(holder, .networkDisconnected)))
            }
            part.state = .entering(request.client, re: request.re, rung: [])
            self[call] = part
            context.tell(.call(call, .rejoin(snapshot.id)))
        }
    }

    /// Asks storage which node has a call that this node does not know. When a node dies, another one continues its calls, and
    /// the two people can come back to any nodes.
    private func locate(_ call: CallID, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard context.tag != nil else { return noCall(request, &context) }
        context.query(Question(identity: snapshot.id, client: request.client, re: request.re, .callHome(call)))
    }

    mutating func located(
        _ call: CallID, _ home: CallHome?, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        // The call may have been restored here meanwhile.
        if self[call] != nil { return rejoin(call, request, snapshot, &context) }
        switch home {
        case nil: noCall(request, &context)
        case .changing: context.fail(.callMoves, request)
        case .node(let tag) where tag == context.tag:
            context.tell(.call(call, .returned(snapshot.id, request.client, re: request.re)))
        case .node(let tag): context.fail(.callElsewhere(at: tag), request)
        }
    }

    mutating func readmitted(
        _ call: StoredCall, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        if self[call.id] == nil {
            guard !hasEnded(call.id) else { return noCall(request, &context) }
            if let error = obstacle(snapshot) { return context.fail(error, request) }
            restore(call, snapshot, context)
        }
        rejoin(call.id, request, snapshot, &context)
    }

    // MARK: Ending

    mutating func decline(_ call: CallID, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let part = self[call] else { return noCall(request, &context) }
        guard part.rung != nil else {
            return wrongCallState(request, "This call is not ringing here. Use call.end instead.", &context)
        }
        end(part, request, snapshot, &context)
    }

    mutating func cancel(_ call: CallID, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let part = self[call] else { return noCall(request, &context) }
        guard case .placed = part.state else {
            return wrongCallState(request, "This call can no longer be canceled. Use call.end instead.", &context)
        }
        end(part, request, snapshot, &context)
    }

    mutating func end(_ part: Part, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard part.ending == nil else {
            return wrongCallState(request, "This call is already ending. Wait for call.ended.", &context)
        }
        self[part.id]?.endingRequest = request.re
        leave(part.id, by: request.client, snapshot, &context)
    }

    private mutating func leave(
        _ call: CallID, by client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        self[call]?.ending = client
        context.tell(.call(call, .leave(snapshot.id, .hungUp)))
    }

    // MARK: Restart

    /// Restores this person's side of a call after a restart. The person's devices rejoin the call when they reconnect.
    mutating func restore(_ call: StoredCall, _ snapshot: PersonSnapshot, _ context: Context) {
        let isCaller = call.caller == snapshot.id
        let identity = isCaller ? call.callee : call.caller
        let other = Counterpart(
            identity: identity, person: context.project.personID(of: identity),
            name: isCaller ? call.calleeName : call.callerName, isOnline: false
        )
        let offer = CallOffer(
            call: call.id, other: other, video: call.video, placedAt: call.placedAt, ringsUntil: call.ringsUntil
        )
        let state: State =
            call.acceptedAt != nil ? .accepted(nil, call.session) : isCaller ? .placed(nil) : .ringing([])
        var part = Part(offer: offer, direction: isCaller ? .outgoing : .incoming, state: state)
        part.acceptedAt = call.acceptedAt
        part.wasPushed = part.rung != nil && snapshot.devices.hasPush
        parts.append(part)
    }
}
