import Wire

// Messages from the other peer, and reports about the steps.
extension RelayedPeer {
    static let answerDelay = Duration.seconds(4)
    static let maxAnswerDelay = Duration.seconds(16)
    /// How long media may take to connect after the exchange of descriptions; the polite peer waits twice as long. The
    /// limit is needed because ICE never fails without candidates.
    static let connectTimeout = Duration.seconds(15)
    /// How long to wait in the state `disconnected`, which often ends without a restart; the polite peer waits twice
    /// as long.
    static let disconnectedDelay = Duration.seconds(3)
    static let failedDelay = Duration.milliseconds(250)
    /// The minimum pause between restarts.
    static let restartPause = Duration.seconds(10)

    // MARK: Messages

    mutating func take(_ message: Message, _ now: Timestamp, _ effects: inout [Effect]) {
        for (id, name) in message.names where names.count < Self.maxWaiting { names[id] = name }
        switch message.content {
        case .candidate(let candidate):
            if origin != nil, negotiation.concerns(message.label) {
                // Limit the candidates, because the other peer may send them faster than the engine handles them.
                guard candidates < Self.maxCandidates else { return }
                candidates += 1
                effects.append(.step(.candidate(candidate)))
            } else {
                early.append(message)
                // Drop the oldest message, which may belong to a connection that was never established.
                if early.count > Self.maxWaiting { early.removeFirst() }
            }
        case .description(let description):
            switch description.kind {
            case .offer: takeOffer(message, description.sdp, now, &effects)
            case .answer:
                // Ignore an answer if its offer has been withdrawn or its peer connection is gone.
                guard negotiation.isAnswer(message.label) else { return }
                timers[.answer] = nil
                phase = .accepting
                accepting = message
                effects.append(.step(.accept(answer: description.sdp)))
            }
        }
    }

    private mutating func takeOffer(_ message: Message, _ sdp: String, _ now: Timestamp, _ effects: inout [Effect]) {
        let isOther = origin != nil && Self.origin(of: sdp) != origin
        let isRenewedWithoutLabel = message.label.id == nil && isOther
        switch isRenewedWithoutLabel ? .renew : negotiation.decide(message.label) {
        case .accept: answer(message, sdp, isRepeated: message == retried, &effects)
        case .renew:
            inbox.insert(message, at: 0)
            renew(&effects)
        case .repeat:
            if let sent, sent.kind == .answer { post(sent, negotiation.answerLabel, &effects) }
        case .ignore: break
        case .refuse:
            // Make a first offer instead. The other peer will accept it.
            guard !negotiation.isOffering, canOffer else { return }
            (needsOffer, firstOfferAt) = (true, now)
        }
    }

    private mutating func answer(_ message: Message, _ sdp: String, isRepeated: Bool, _ effects: inout [Effect]) {
        timers[.answer] = nil
        let isRollingBack = negotiation.isOffering
        if isRollingBack {
            negotiation.withdraw()
            // The changes in the local offer still have to be offered.
            needsOffer = true
        }
        phase = .answering(message, isRepeated: isRepeated)
        effects.append(.step(.answer(offer: sdp, rollingBack: isRollingBack)))
    }

    private func post(_ description: PeerDescription, _ label: Negotiation.Label, _ effects: inout [Effect]) {
        effects.append(.post(Message(content: .description(description), label: label)))
    }

    /// Returns the session id of a description's `o=` line (RFC 8866 §5.2); nil if there is none.
    static func origin(of sdp: String) -> String? {
        for line in sdp.utf8.split(whereSeparator: { $0 == 10 || $0 == 13 }).prefix(8)
        where line.starts(with: "o=".utf8) {
            let parts = line.split(separator: UInt8(ascii: " "))
            return parts.count > 1 ? String(parts[1]) : nil
        }
        return nil
    }

    // MARK: Reports

    mutating func handle(_ report: PeerReport, _ now: Timestamp, _ effects: inout [Effect]) {
        switch (report, phase) {
        case (.opened, .opening): phase = .idle
        case (.offered(let sdp, _), .offering(let label)):
            phase = .idle
            sent = PeerDescription(.offer, sdp: sdp)
            post(PeerDescription(.offer, sdp: sdp), label, &effects)
            timers[.answer] = now + Self.answerDelay
        case (.answered(let sdp), .answering(let message, _)):
            (phase, retried) = (.idle, nil)
            negotiation.accepted(message.label)
            sent = PeerDescription(.answer, sdp: sdp)
            post(PeerDescription(.answer, sdp: sdp), negotiation.answerLabel, &effects)
            // The other peer is already restarting, so postpone this peer's restart.
            if timers[.restart] != nil { restart(after: Self.restartPause, now) }
            learn(from: message, now, &effects)
        case (.accepted, .accepting):
            phase = .idle
            negotiation.completed()
            if let accepting { learn(from: accepting, now, &effects) }
            accepting = nil
        case (.failed(let error), _): fail(error, now, &effects)
        case (.notAdded(let id, let error), _):
            plans.removeAll { $0.id == id }
            effects.append(.failed(error))
        case (.notReplaced(let source, let error), _):
            for index in plans.indices where plans[index].source == source { plans[index].source = nil }
            effects.append(.notSent(source, error))
        case (.found(let mid, let track), _):
            guard let stream = arrivals[mid] else { return }
            effects.append(.arrived(stream, mid: mid, track))
            found.insert(mid)
            if earlyFrames.remove(mid) != nil { effects.append(.firstFrame(mid: mid)) }
        case (.event(let event), _): happen(event, now, &effects)
        default: break
        }
    }

    /// Stores the origin of the description that was applied, and adds the candidates that arrived before that
    /// description.
    private mutating func learn(from message: Message, _ now: Timestamp, _ effects: inout [Effect]) {
        guard case .description(let description) = message.content else { return }
        origin = Self.origin(of: description.sdp) ?? ""
        timers[.firstOffer] = nil
        candidates = 0
        for message in early where negotiation.concerns(message.label) {
            if case .candidate(let candidate) = message.content { effects.append(.step(.candidate(candidate))) }
        }
        early.removeAll { negotiation.concerns($0.label) }
        if state != .connected {
            timers[.connect] = now + (isPolite ? Self.connectTimeout * 2 : Self.connectTimeout)
        }
    }

    private mutating func fail(_ error: ConfabError, _ now: Timestamp, _ effects: inout [Effect]) {
        switch phase {
        case .closed, .idle: return
        case .opening: phase = .closed
        case .offering:
            phase = .idle
            negotiation.withdraw()
            isBroken = true
        case .answering(let message, isRepeated: false):
            // Replace the connection, because a new one may be able to apply this offer.
            renew(&effects)
            retried = message
            inbox.insert(message, at: 0)
            return
        case .answering:
            phase = .idle
            retried = nil
        case .accepting:
            phase = .idle
            negotiation.withdraw()
            (accepting, isBroken) = (nil, true)
        }
        effects.append(.failed(error))
        timers[.restart] = now + Self.restartPause
    }

    // MARK: The connection

    private mutating func happen(_ event: PeerEvent, _ now: Timestamp, _ effects: inout [Effect]) {
        switch event {
        case .state(let next):
            changeState(next, &effects)
            switch next {
            case .connected:
                (timers[.restart], timers[.connect], restarts) = (nil, nil, 0)
            case .disconnected: restart(after: Self.disconnectedDelay, now)
            case .failed: restart(after: Self.failedDelay, now)
            case .new, .connecting, .closed: break
            }
        case .candidate(let candidate):
            effects.append(.post(Message(content: .candidate(candidate), label: negotiation.label)))
        case .track(let mid, _, let streamID):
            guard let streamID else { return }
            arrivals[mid] = names[streamID] ?? streamID
            effects.append(.step(.find(mid: mid)))
        case .firstFrame(let mid):
            if found.contains(mid) { effects.append(.firstFrame(mid: mid)) } else { earlyFrames.insert(mid) }
        case .negotiationNeeded, .firstPacket: break
        }
    }

    mutating func changeState(_ next: PeerState, _ effects: inout [Effect]) {
        guard next != state, next != .closed else { return }
        state = next
        effects.append(.state(next))
    }

    /// Schedules a restart, at least `restartPause` after the previous one, so that a flapping connection does not
    /// restart on every state change.
    mutating func restart(after delay: Duration, _ now: Timestamp) {
        let earliest = restartedAt.map { $0 + Self.restartPause } ?? now
        // Both peers notice the same failure. The polite peer waits longer, so that usually only one restarts.
        timers[.restart] = max(now + (isPolite ? delay * 2 : delay), earliest)
    }

    mutating func attempt(_ now: Timestamp, _ effects: inout [Effect]) {
        guard phase != .closed else { return }
        if isBroken {
            (isBroken, needsRenewal) = (false, canOffer)
            return
        }
        guard state != .connected else { return }
        restartedAt = now
        restarts += 1
        restart(after: Self.restartPause, now)
        if restarts > 1, canOffer { needsRenewal = true } else { needsRestart = true }
    }

    // MARK: Resends

    mutating func repeatOffer(_ now: Timestamp, _ effects: inout [Effect]) {
        guard let sent, sent.kind == .offer, let label = negotiation.pendingLabel else { return }
        // If an offer on an existing connection was resent and is still not answered, replace the connection: the
        // other peer may have lost it.
        if (label.number ?? 1) > 1, repeats > 0, canOffer {
            needsRenewal = true
            return
        }
        post(sent, label, &effects)
        repeats += 1
        timers[.answer] = now + min(Self.answerDelay * (1 << min(repeats, 8)), Self.maxAnswerDelay)
    }

    /// Schedules a resend if the message was rate-limited. After any other error the message is not resent, because
    /// the other peer has left or does not expect this peer yet.
    mutating func refuse(_ message: Message, _ error: ConfabError, _ now: Timestamp) {
        guard error.code == .rateLimited, refused.count < Self.maxWaiting else { return }
        refusals += 1
        refused[refusals] = message
        timers[.post(refusals)] = now + (error.retryAfter ?? .seconds(1))
    }

    /// Whether a rejected message is still worth sending.
    func isCurrent(_ message: Message) -> Bool {
        switch message.content {
        case .candidate: negotiation.concerns(message.label)
        case .description(let description):
            description.kind == .offer
                ? negotiation.isPending(message.label) : message.label == negotiation.answerLabel
        }
    }
}
