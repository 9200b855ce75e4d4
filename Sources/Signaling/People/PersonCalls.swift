import Wire

/// The calls a person is in, places, or is rung by.
///
/// Invariant: at most one of them is engaged (being placed, on the way in, or accepted), and with those that ring there are
/// at most `most`; the call that two placed to each other at the same moment is there beside them until one of both is over.
struct PersonCalls: Equatable, Sendable {
    /// Asked for, and without an id yet.
    struct Asking: Equatable, Sendable {
        var client: ConnectionID
        var re: UInt64
    }

    /// Legal next states: `asked` → `ringing`, `entering`; `ringing` → `entering`; `placed` → `accepted`; `entering` →
    /// `accepted`; `accepted` → `entering`. Any of them ends by being forgotten.
    enum State: Equatable, Sendable {
        /// A place is kept for it; nobody was told.
        case asked
        /// It comes in, and these devices were told.
        case ringing(Set<ConnectionID>)
        /// It goes out, from this device; from none after a restart, until that is back.
        case placed(ConnectionID?)
        /// This device takes it, or asked to be let in again, and waits. These rang.
        case entering(ConnectionID, re: UInt64?, rung: Set<ConnectionID>)
        /// On this device; on none after a restart.
        case accepted(ConnectionID?, SessionID)
    }

    struct Part: Equatable, Sendable {
        var offer: CallOffer
        var direction: CallDirection
        var state: State
        /// The device that said the word by which it ends; nothing else is done with it any more.
        var ending: ConnectionID?
        /// Its request, which is answered when the call is over.
        var endingRequest: UInt64?
        var acceptedAt: Timestamp?
        /// Whether sleeping devices were told that it rings.
        var wasPushed = false

        var id: CallID { offer.call }

        /// The device it is on, unless it only rings.
        var holder: ConnectionID? {
            switch state {
            case .asked, .ringing: nil
            case .placed(let client), .accepted(let client, _): client
            case .entering(let client, _, _): client
            }
        }

        var isEngaged: Bool {
            switch state {
            case .asked, .ringing: false
            case .placed, .entering, .accepted: true
            }
        }

        var rung: Set<ConnectionID>? { if case .ringing(let clients) = state { clients } else { nil } }
    }

    /// One connected or calling, and one that waits.
    static let most = 2
    /// Of those a person may place in ten minutes there are some sixty.
    static let mostCalledInVain = 100

    var asking: Asking?
    var parts: [Part] = []
    var placed: Budget?
    var rung: Budget?
    /// Calls that came to nothing, by whom they were for.
    var inVain: [IdentityID: Vain] = [:]

    struct Vain: Equatable, Sendable {
        /// The newest last.
        var times: [Timestamp] = []
        /// There were too many: until then there may be no more.
        var until: Timestamp?
    }

    var isEmpty: Bool { asking == nil && parts.isEmpty }

    /// Whoever comes back must not find the limits gone.
    var isWorthRemembering: Bool { !inVain.isEmpty || placed != nil || rung != nil }

    /// In a call, or calling somebody: nothing else may begin.
    var isBusy: Bool { asking != nil || engaged != nil }

    var engaged: Part? { parts.first(where: \.isEngaged) }

    subscript(id: CallID) -> Part? {
        get { parts.first { $0.id == id } }
        set {
            guard let index = parts.firstIndex(where: { $0.id == id }) else { return }
            if let newValue { parts[index] = newValue } else { parts.remove(at: index) }
        }
    }
}

extension Person {
    /// As others know this person.
    var counterpart: Counterpart {
        Counterpart(identity: id, person: publicID, name: shownName, isOnline: isSeenOnline)
    }

    /// Whether others may know that a device of this person is here.
    var isSeenOnline: Bool { profile.isVisible && !presentDevices.isEmpty }

    /// Devices that can be rung now, in an order that is the same on every run.
    var presentDevices: [ConnectionID] {
        devices.filter { $0.value.isPresent && !$0.value.isDropped }.keys.sorted()
    }

    /// The call that a snapshot tells of, and its device.
    var heldCall: HeldCall? {
        guard let part = calls.engaged, let client = part.holder else { return nil }
        let state = if case .placed = part.state { Snapshot.CallState.ringing } else { Snapshot.CallState.active }
        return HeldCall(client: client, call: Snapshot.Call(id: part.id, state: state))
    }

    struct HeldCall: Equatable, Sendable {
        var client: ConnectionID
        var call: Snapshot.Call
    }

    func reportCall(_ before: HeldCall?, _ turn: inout Turn) {
        let after = heldCall
        guard before != after else { return }
        if let before, before.client != after?.client { turn.tell(.client(before.client, .call(nil))) }
        if let after { turn.tell(.client(after.client, .call(after.call))) }
    }

    // MARK: What is asked

    mutating func perform(_ verb: CallVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .start(let start): self.start(start, request, &turn)
        case .accept(let accept):
            self.accept(accept, request, &turn)
        case .decline(let verb): decline(verb.call, request, &turn)
        case .cancel(let verb): cancel(verb.call, request, &turn)
        case .end(let verb):
            guard let part = calls[verb.call] else { return noCall(request, &turn) }
            end(part, request, &turn)
        case .update(let update): self.update(update, request, &turn)
        case .rejoin(let verb):
            rejoin(verb.call, request, &turn)
        case .seen(let verb): seen(verb.call, request, &turn)
        case .log(let page):
            turn.inquire(Question(identity: id, client: request.client, re: request.re, .callLog(page)))
        case .forget(let forget):
            unseenCalls.removeAll { forget.call == nil || $0.call == forget.call }
            turn.persist(.callsForgotten(forget.call, by: id))
            turn.ok(request)
        }
    }

    mutating func handle(_ event: PersonCallEvent, _ turn: inout Turn) {
        switch event {
        case .restored(let call): restore(call, turn.project)
        case .asked(let offer): asked(offer, &turn)
        case .ring(let call): ring(call, &turn)
        case .placed(let offer, let client, let re):
            placed(offer, Request(client, re), &turn)
        case .notPlaced(let client, let re, let error):
            guard calls.asking == PersonCalls.Asking(client: client, re: re) else { return }
            calls.asking = nil
            turn.fail(error, re: re, to: client)
        case .ringing(let call, let devices):
            guard case .placed(let client?)? = calls[call]?.state else { return }
            turn.send(.call(.ringing(CallRinging(call: call, devices: devices))), to: client)
        case .accepted(let agreement): accepted(agreement, &turn)
        case .changed(let call, let video):
            guard let client = calls[call]?.holder else { return }
            turn.send(.call(.changed(AnswerCall(call: call, video: video))), to: client)
        case .partnerAway(let call, let isAway):
            guard let client = calls[call]?.holder else { return }
            let state: PartnerState.State = isAway ? .reconnecting : .connected
            turn.send(.call(.partner(CallPartner(call: call, state: state))), to: client)
        case .over(let end): over(end, &turn)
        }
    }

    func noCall(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.notFound, "There is no such call; it may be over."), request)
    }

    func wrongCallState(_ request: Request, _ text: String, _ turn: inout Turn) {
        turn.fail(WireError(.callState, text), request)
    }

    // MARK: Placing

    private mutating func start(_ start: StartCall, _ request: Request, _ turn: inout Turn) {
        if let error = banError(now: turn.now) ?? obstacle(now: turn.now) { return turn.fail(error, request) }
        guard start.person != publicID else { return callsItself(request, &turn) }
        guard devices[request.client]?.isPresent ?? false else {
            let error = WireError(.notPresent, "Appear first (presence.appear): the other is told who calls.")
            return turn.fail(error, request)
        }
        introduce(start.person, for: .call(.start(start)), request, &turn)
    }

    private func callsItself(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.callSelf, "This is you; call somebody else."), request)
    }

    /// Why this person cannot call anybody now.
    private func obstacle(now: Timestamp) -> WireError? {
        if calls.isBusy { return WireError(.elsewhere, "You are in a call already; end it first.") }
        if search != nil {
            return WireError(.elsewhere, "You are searching or chatting with strangers; stop there first.")
        }
        return nil
    }

    /// It is known now whom `call.start` named.
    mutating func introduced(to other: IdentityID, for start: StartCall, _ request: Request, _ turn: inout Turn) {
        // Storage may have taken its time.
        guard devices[request.client] != nil else { return }
        guard other != id else { return callsItself(request, &turn) }
        guard !blockedSet.contains(other) else {
            let error = WireError(.callNotAllowed, "You have blocked this person; unblock them first.")
            return turn.fail(error, request)
        }
        // Whoever calls the one who is calling is connected at once, however many ring.
        let isMutual = calls.parts.contains { $0.offer.other.identity == other }
        var error = banError(now: turn.now) ?? obstacle(now: turn.now)
        if error == nil, !isMutual, calls.parts.count >= PersonCalls.most {
            error = WireError(.elsewhere, "Two calls ring here; answer or decline one first.")
        }
        if let error = error ?? tooManyCalls(to: other, now: turn.now, turn.rules) {
            return turn.fail(error, request)
        }
        calls.asking = PersonCalls.Asking(client: request.client, re: request.re)
        let attempt = CallAttempt(
            caller: counterpart, client: request.client, re: request.re, callee: other, video: start.video)
        turn.tell(.newCall(attempt))
    }

    /// Takes from what this person may place, unless it has called in vain too often.
    private mutating func tooManyCalls(to other: IdentityID, now: Timestamp, _ rules: Rules) -> WireError? {
        if let until = calls.inVain[other]?.until, now < until {
            let wait = until - now
            return WireError(
                .rateLimited, "They did not take your calls; try again in \(wait.inWords).", retryable: true,
                retryAfter: wait
            )
        }
        return calls.placed.take(rules.callsPlaced, now: now).map {
            WireError(
                .rateLimited, "Too many calls; try again in \($0.inWords).", retryable: true, retryAfter: $0
            )
        }
    }

    private mutating func placed(_ offer: CallOffer, _ request: Request, _ turn: inout Turn) {
        guard calls.asking == PersonCalls.Asking(client: request.client, re: request.re) else {
            // The device left before the call had an id.
            return turn.tell(.call(offer.call, .leave(id, .willingly)))
        }
        calls.asking = nil
        calls.parts.append(PersonCalls.Part(offer: offer, direction: .outgoing, state: .placed(request.client)))
        tellPlaced(offer, request, &turn)
    }

    func tellPlaced(_ offer: CallOffer, _ request: Request, _ turn: inout Turn) {
        var placed = CallPlaced()
        (placed.re, placed.call, placed.video) = (request.re, offer.call, offer.video)
        placed.person = offer.other.info
        placed.expiresIn = max(.zero, offer.ringsUntil - turn.now)
        turn.send(.call(.placed(placed)), to: request.client)
    }

    // MARK: Being rung

    private mutating func asked(_ offer: CallOffer, _ turn: inout Turn) {
        let answer = answer(to: offer, now: turn.now, turn.rules)
        switch answer {
        case .ready: keepPlace(for: offer)
        case .mutual(_, let own) where offer.call < own: keepPlace(for: offer)
        case .mutual, .refused, .notAllowed: break
        }
        turn.tell(.call(offer.call, .answered(answer)))
    }

    private mutating func keepPlace(for offer: CallOffer) {
        calls.parts.append(PersonCalls.Part(offer: offer, direction: .incoming, state: .asked))
    }

    private mutating func answer(to offer: CallOffer, now: Timestamp, _ rules: Rules) -> CallAnswer {
        let caller = offer.other.identity
        guard !blockedSet.contains(caller), banError(now: now) == nil else { return absentAnswer(to: caller) }
        for part in calls.parts where part.direction == .outgoing && part.offer.other.identity == caller {
            if case .placed = part.state, part.ending == nil { return .mutual(counterpart, with: part.id) }
        }
        guard isRingable(by: caller) else { return .notAllowed }
        let isStorm = calls.rung.take(rules.ringsReceived, now: now) != nil
        // Before whether it is busy, so that somebody who is not there answers as to whom it has blocked. A storm must not
        // fill the log either.
        guard hasPush || !presentDevices.isEmpty else {
            return .refused(counterpart, .unreachable, isMissed: !isStorm)
        }
        if isStorm { return .refused(counterpart, .busy, isMissed: false) }
        if profile.doNotDisturb || calls.parts.count + (calls.asking == nil ? 0 : 1) >= PersonCalls.most {
            return .refused(counterpart, .busy, isMissed: true)
        }
        return .ready(counterpart)
    }

    /// What somebody blocked is told, whatever this person is doing: the answer of one with these settings who is not
    /// there. It neither counts as a ring nor leaves anything in the log.
    private func absentAnswer(to caller: IdentityID) -> CallAnswer {
        guard isRingable(by: caller) else { return .notAllowed }
        var party = counterpart
        party.isOnline = false
        return .refused(party, .unreachable, isMissed: false)
    }

    private func isRingable(by caller: IdentityID) -> Bool {
        switch profile.ringable {
        case .everyone: true
        case .contacts: contacts.contains { $0.identity == caller }
        case .nobody: false
        }
    }

    mutating func ring(_ call: CallID, _ turn: inout Turn) {
        guard var part = calls[call], part.state == .asked else { return }
        let clients = presentDevices
        part.state = .ringing(Set(clients))
        part.wasPushed = hasPush
        calls[call] = part
        for client in clients { tellIncoming(part, re: nil, to: client, &turn) }
        turn.tell(.call(call, .rings(devices: clients.count)))
        if hasPush {
            turn.push(id, PushNotice(call: call, kind: .incoming, expires: part.offer.ringsUntil))
        }
    }

    func tellIncoming(_ part: PersonCalls.Part, re: UInt64?, to client: ConnectionID, _ turn: inout Turn) {
        let offer = part.offer
        var incoming = CallIncoming()
        (incoming.re, incoming.call, incoming.video) = (re, offer.call, offer.video)
        incoming.person = offer.other.info
        incoming.waiting = calls.isBusy
        incoming.expiresIn = max(.zero, offer.ringsUntil - turn.now)
        turn.send(.call(.incoming(incoming)), to: client)
    }
}
