import Wire

// Messages from the server about calls.

extension CallsMachine {
    mutating func receive(_ notice: CallNotice, _ now: Timestamp) -> [Effect] {
        switch notice {
        case .placed(let placed): return self.placed(placed, now)
        case .ringing(let ringing): return change(ringing.call) { $0.devices = ringing.devices }
        case .incoming(let incoming): return self.incoming(incoming, now)
        case .accepted(let accepted): return self.accepted(accepted, now)
        case .changed(let video): return change(video.call) { $0.receivesVideo = video.video }
        case .partner(let partner):
            return change(partner.call) { $0.isPartnerConnected = partner.state == .connected }
        case .ended(let ended): return self.ended(ended, now)
        case .log: return []
        }
    }

    private mutating func placed(_ placed: CallNotice.Placed, _ now: Timestamp) -> [Effect] {
        let deadline = now + placed.expiresIn + Self.endingGrace
        guard call(placed.call) == nil else {
            return change(placed.call) { call in
                call.person = Person(placed.person)
                if call.state == .ringing { call.ringDeadline = deadline }
            }
        }
        guard let placing else { return [] }
        // The two people called each other, and the other call has already been accepted, so this one is over.
        guard !isOver(placed.call) else { return [] }
        self.placing = nil
        var call = Call(
            id: placed.call, isOutgoing: true, person: Person(placed.person), isVideo: placed.video, state: .ringing,
            sendsVideo: placing.video)
        (call.ringDeadline, call.reportedVideo) = (deadline, placing.video)
        calls.append(call)
        // Turn the local video on or off as this call requires. The local video may be on although the call has none.
        return [.perform(.sendVideo(call.id, placing.video)), .tell(.changed(call))]
    }

    private mutating func incoming(_ incoming: CallNotice.Incoming, _ now: Timestamp) -> [Effect] {
        let deadline = now + incoming.expiresIn + Self.endingGrace
        if call(incoming.call) != nil {
            rings(incoming.call)
            return change(incoming.call) { call in
                (call.person, call.isVideo, call.isWaiting) = (
                    Person(incoming.person), incoming.video, incoming.waiting
                )
                if call.state == .incoming { (call.ringDeadline, call.receivesVideo) = (deadline, incoming.video) }
            }
        }
        // The call has ended on this device, but the server had not been notified when it sent this message. End the
        // call on the server, too.
        if isOver(incoming.call) { return send(.end(.init(call: incoming.call))) }
        guard calls.count < Self.maxRinging else { return [] }
        var call = Call(
            id: incoming.call, isOutgoing: false, person: Person(incoming.person), isVideo: incoming.video,
            state: .incoming, sendsVideo: false)
        (call.isWaiting, call.receivesVideo, call.ringDeadline) = (incoming.waiting, incoming.video, deadline)
        calls.append(call)
        return [.tell(.incoming(call))]
    }

    /// Creates a record for a call that the application rejoins after it was restarted, if there is no record yet.
    mutating func adopt(_ id: CallID, _ notice: CallNotice) {
        guard call(id) == nil else { return }
        let (person, video): (PersonInfo, Bool)
        switch notice {
        case .placed(let placed): (person, video) = (placed.person, placed.video)
        case .accepted(let accepted): (person, video) = (accepted.person, accepted.video)
        default: return
        }
        forgetEnd(of: id)
        calls.append(
            Call(
                id: id, isOutgoing: true, person: Person(person), isVideo: video, state: .ringing, sendsVideo: video))
    }

    private mutating func accepted(_ accepted: CallNotice.Accepted, _ now: Timestamp) -> [Effect] {
        let id = accepted.call
        if isOver(id) { return send(.end(.init(call: id))) }
        var effects: [Effect] = []
        if call(id).map({ $0.state == .incoming }) ?? true {
            // This device did not answer this call. The two people called each other, and this is the call that
            // continues.
            guard let merged = merge(into: id, with: accepted.person.id, now) else { return [] }
            effects = merged
        } else if call(id)?.isOutgoing == true {
            // The two people called each other, and the outgoing call continues.
            let theirs = calls.filter { $0.state == .incoming && $0.person.id == accepted.person.id }
            effects = theirs.flatMap { end($0.id, .merged, now: now) }
        }
        effects += change(id) { call in
            (call.person, call.isVideo, call.receivesVideo) =
                (Person(accepted.person), accepted.video, accepted.withVideo)
            if call.state != .active { call.state = .joining }
            (call.isWaiting, call.isRejoining, call.ringDeadline, call.endDeadline) = (false, false, nil, nil)
            (call.lateOutcome, call.rejoinAt, call.rejoinUntil) = (.failed, nil, nil)
            call.acceptedAt = call.acceptedAt ?? now
        }
        return effects + endOthers(id, now) + join(id, accepted.admission)
    }

    /// Ends all other calls except those ringing on this device, which become waiting calls. Only one call can be
    /// active. The server ends the same calls.
    private mutating func endOthers(_ id: CallID, _ now: Timestamp) -> [Effect] {
        let others = calls.filter { $0.id != id && $0.state != .incoming }
        let ended = others.flatMap { end($0.id, .ended, now: now) }
        let ringing = calls.filter { $0.id != id }
        return ended + ringing.flatMap { call in change(call.id) { $0.isWaiting = true } }
    }

    private mutating func join(_ id: CallID, _ admission: Admission) -> [Effect] {
        // Ignore a repeated admission, which the server sends if this device accepted the call and then requested its
        // state.
        guard let call = call(id), call.session != admission.session else { return [] }
        let left: [Effect] = call.session == nil ? [] : [.perform(.leave(id, isLost: false))]
        _ = change(id) { ($0.session, $0.reportedVideo) = (admission.session, call.sendsVideo) }
        let joined: [Effect] = [.perform(.join(id, admission))]
        guard let reported = call.reportedVideo, reported != call.sendsVideo else { return left + joined }
        return left + joined + send(.update(.init(call: id, video: call.sendsVideo)))
    }

    /// Continues the outgoing call to a person under the id of that person's call to this device.
    ///
    /// - Returns: the effects; nil if there is no outgoing call.
    private mutating func merge(into id: CallID, with person: PersonID, _ now: Timestamp) -> [Effect]? {
        if let mine = calls.first(where: { $0.isOutgoing && $0.person.id == person && $0.state == .ringing }) {
            return merge(mine, into: id, now)
        }
        guard let placing, placing.person == person, let theirs = call(id) else { return nil }
        // The request for the outgoing call has not been answered, so that call has no id yet. The answer, or the
        // call's end with the reason `merged`, arrives later.
        self.placing = nil
        let effects = end(id, .merged, now: now)
        forgetEnd(of: id)
        var call = Call(
            id: id, isOutgoing: true, person: theirs.person, isVideo: theirs.isVideo, state: .joining,
            sendsVideo: placing.video)
        call.reportedVideo = placing.video
        calls.append(call)
        return effects
    }

    private mutating func merge(_ mine: Call, into id: CallID, _ now: Timestamp) -> [Effect] {
        guard mine.id != id else { return [] }
        let effects = end(id, .merged, now: now)
        forgetEnd(of: id)
        remember(mine.id)
        return effects + change(mine.id) { ($0.id, $0.formerID) = (id, mine.id) }
    }

    private mutating func ended(_ ended: CallNotice.Ended, _ now: Timestamp) -> [Effect] {
        guard !missed.contains(ended.call) else { return [] }
        if let call = call(ended.call) {
            let seen = send(.seen(.init(call: ended.call)))
            if ended.reason == .merged, let into = ended.into, call.isOutgoing, !isOver(into) {
                return seen + merge(call, into: into, now)
            }
            return seen + end(ended.call, .init(ended.reason), duration: ended.duration, now: now)
        }
        if isOver(ended.call) { return send(.seen(.init(call: ended.call))) }
        remember(ended.call)
        missed.insert(ended.call)
        let ending = CallEnding(
            id: ended.call, outcome: .init(ended.reason), person: Person(ended.person),
            isOutgoing: ended.direction == .outgoing, duration: ended.duration, error: nil)
        return [.tell(.ended(ending))]
    }

    /// Marks a call as active, because the other person has joined its session.
    mutating func partnerJoined(_ id: CallID) -> [Effect] {
        change(id) { ($0.state, $0.isPartnerConnected) = (.active, true) }
    }

    /// Handles an error that occurred while this device joined the call's session.
    mutating func mediaFailed(_ id: CallID, _ error: ConfabError, now: Timestamp) -> [Effect] {
        guard call(id)?.session != nil else { return [] }
        // After these errors, wait for the server to report the end of the call or for the client to reconnect. If
        // neither happens in time, `handleTimeout` ends the call.
        if Self.explainedLater.contains(error.code) {
            return change(id) { $0.endDeadline = now + Self.endingGrace }
        }
        return send(.end(.init(call: id))) + end(id, .failed, error: error, now: now)
    }
}
