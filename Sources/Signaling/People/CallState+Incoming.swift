import Wire

/// Decides how to answer an incoming call: it rings, or the caller receives `busy`, `unreachable` or
/// `call_not_allowed`. Also decides which of the person's devices ring, and reports how many do.
extension CallState {
    /// Maximum number of calls of one person at the same time: one active or outgoing call, and one waiting call.
    static let maxCalls = 2

    mutating func asked(_ offer: CallOffer, isContact: Bool, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let answer = answer(to: offer, isContact: isContact, snapshot, context)
        switch answer {
        case .ready: reservePlace(for: offer)
        case .mutual(_, let own) where offer.call < own: reservePlace(for: offer)
        case .mutual, .refused, .notAllowed, .elsewhere: break
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
        for client in clients { sendIncoming(part, re: nil, to: client, &context) }
        context.tell(.call(call, .rings(devices: clients.count)))
        if snapshot.devices.hasPush {
            context.push(snapshot.id, PushNotice(call: call, kind: .incoming, expires: part.offer.ringsUntil))
        }
    }

    /// Rings a device that went online or reconnected, for each incoming call that is still ringing.
    mutating func appeared(_ client: ConnectionID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        for part in parts {
            guard let rung = part.rung, part.ending == nil else { continue }
            var part = part
            if !rung.contains(client) {
                part.state = .ringing(rung.union([client]))
                self[part.id] = part
                sendIncoming(part, re: nil, to: client, &context)
            }
            reportRinging(part, snapshot, &context)
        }
    }

    /// Reports to the call how many connected devices are ringing. The call notifies the caller.
    func reportRinging(_ part: Part, _ snapshot: PersonSnapshot, _ context: inout Context) {
        let live = part.rung?.count { snapshot.devices.isLive($0) } ?? 0
        context.tell(.call(part.id, .rings(devices: live)))
    }

    func sendIncoming(_ part: Part, re: UInt64?, to client: ConnectionID, _ context: inout Context) {
        let offer = part.offer
        var incoming = CallNotice.Incoming()
        (incoming.re, incoming.call, incoming.video) = (re, offer.call, offer.video)
        incoming.person = offer.other.info
        incoming.waiting = isInCall
        incoming.expiresIn = max(.zero, offer.ringsUntil - context.now)
        context.send(.call(.incoming(incoming)), to: client)
    }
}
