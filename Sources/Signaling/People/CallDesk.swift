import Wire

/// The calls a person is in, places, or is rung by.
///
/// Invariant: at most one of them is engaged (being placed, on the way in, or accepted), and with those that ring there are
/// at most `maxCalls`; the call that two placed to each other at the same moment is there beside them until one of both is over.
struct CallDesk: Equatable, Sendable {
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
    static let maxCalls = 2

    /// A call that is asked for, and has no id yet.
    var asking: Request?
    var parts: [Part] = []
    var unseen: UnseenCalls
    /// Calls that this person may still place, and rings that it may still get.
    var placedBudget: Budget?
    var rungBudget: Budget?
    var vain = VainCalls()

    init(_ record: PersonRecord) { unseen = UnseenCalls(record.unseenCalls) }

    var isEmpty: Bool { asking == nil && parts.isEmpty }

    /// True while limits on calls must outlive the connection.
    var isWorthRemembering: Bool { !vain.isEmpty || placedBudget != nil || rungBudget != nil }

    /// In a call, or calling somebody: nothing else may begin.
    var isBusy: Bool { asking != nil || engaged != nil }

    var engaged: Part? { parts.first(where: \.isEngaged) }

    /// The other person of a call that was accepted.
    func partner(in call: CallID) -> IdentityID? {
        self[call].flatMap { $0.acceptedAt == nil ? nil : $0.offer.other.identity }
    }

    subscript(id: CallID) -> Part? {
        get { parts.first { $0.id == id } }
        set {
            guard let index = parts.firstIndex(where: { $0.id == id }) else { return }
            if let newValue { parts[index] = newValue } else { parts.remove(at: index) }
        }
    }
}

extension CallDesk {
    /// The call that a snapshot tells of, and its device.
    var heldCall: HeldCall? {
        guard let part = engaged, let client = part.holder else { return nil }
        let state = if case .placed = part.state { Snapshot.CallState.ringing } else { Snapshot.CallState.active }
        return HeldCall(client: client, call: Snapshot.Call(id: part.id, state: state))
    }

    struct HeldCall: Equatable, Sendable {
        var client: ConnectionID
        var call: Snapshot.Call
    }

    // MARK: What is asked

    mutating func perform(_ verb: CallVerb, _ request: Request, _ facts: Facts, _ turn: inout Turn) {
        switch verb {
        case .start(let start): self.start(start, request, facts, &turn)
        case .accept: assertionFailure("Person handles this one: the roulette is left first")
        case .decline(let verb): decline(verb.call, request, facts, &turn)
        case .cancel(let verb): cancel(verb.call, request, facts, &turn)
        case .end(let verb):
            guard let part = self[verb.call] else { return noCall(request, &turn) }
            end(part, request, facts, &turn)
        case .update(let update): self.update(update, request, facts, &turn)
        case .rejoin(let verb):
            rejoin(verb.call, request, facts, &turn)
        case .seen(let verb): seen(verb.call, request, facts, &turn)
        case .log(let page):
            turn.inquire(Question(identity: facts.id, client: request.client, re: request.re, .callLog(page)))
        case .forget(let forget):
            unseen.forget(forget.call)
            turn.persist(.callsForgotten(forget.call, by: facts.id))
            turn.ok(request)
        }
    }

    mutating func handle(_ event: PersonCallEvent, _ facts: Facts, _ turn: inout Turn) {
        switch event {
        case .restored(let call): restore(call, facts, turn)
        case .ring(let call): ring(call, facts, &turn)
        case .placed(let offer, let client, let re):
            placed(offer, Request(client, re), facts, &turn)
        case .notPlaced(let client, let re, let error):
            let request = Request(client, re)
            guard asking == request else { return }
            asking = nil
            turn.fail(error, request)
        case .ringing(let call, let devices):
            guard case .placed(let client?)? = self[call]?.state else { return }
            turn.send(.call(.ringing(.init(call: call, devices: devices))), to: client)
        case .accepted(let agreement): accepted(agreement, facts, &turn)
        case .changed(let call, let video):
            guard let client = self[call]?.holder else { return }
            turn.send(.call(.changed(.init(call: call, video: video))), to: client)
        case .partnerAway(let call, let isAway):
            guard let client = self[call]?.holder else { return }
            let state: PartnerState = isAway ? .reconnecting : .connected
            turn.send(.call(.partner(.init(call: call, state: state))), to: client)
        case .asked, .over: assertionFailure("Person handles these: they need its contacts")
        }
    }

    func noCall(_ request: Request, _ turn: inout Turn) {
        turn.fail(WireError(.notFound, "There is no such call; it may be over."), request)
    }

    func wrongCallState(_ request: Request, _ text: String, _ turn: inout Turn) {
        turn.fail(WireError(.callState, text), request)
    }
}

extension CallDesk.Part {
    /// What one of the person's devices is told while the call goes on.
    func record(_ outcome: CallOutcome) -> CallRecord {
        CallRecord(
            call: id, other: offer.other.identity, otherName: offer.other.name, direction: direction, outcome: outcome,
            video: offer.video, at: offer.placedAt, duration: nil, isSeen: true
        )
    }
}
