import Cluster
import Wire

/// A person's current calls: active, outgoing and incoming.
///
/// Invariant: at most one call is in the state `placed`, `entering` or `accepted`, and there are at most `maxCalls` calls in
/// all. Exception: if two people call each other at the same moment, both calls are kept until one of them is over.
struct CallState: Equatable, Sendable {
    /// Legal transitions: `asked` → `ringing`, `entering`; `ringing` → `entering`; `placed` → `accepted`; `entering` →
    /// `accepted`; `accepted` → `entering`. A call in any state can be removed.
    enum State: Equatable, Sendable {
        /// An incoming call that has requested to ring. No device has been notified yet.
        case asked
        /// An incoming call that is ringing on these devices.
        case ringing(Set<ConnectionID>)
        /// An outgoing call, placed by this device. Nil after a server restart, until a device rejoins the call.
        case placed(ConnectionID?)
        /// This device has accepted or is rejoining the call, and is waiting for a session token. The devices in `rung` were
        /// ringing.
        case entering(ConnectionID, re: UInt64?, rung: Set<ConnectionID>)
        /// An active call on this device. Nil after a server restart, until a device rejoins the call.
        case accepted(ConnectionID?, SessionID)
    }

    /// This person's part in one call.
    struct Part: Equatable, Sendable {
        var offer: CallOffer
        var direction: CallDirection
        var state: State
        /// The device that has requested to end the call; nil if none has. If set, further requests for the call are
        /// rejected.
        var ending: ConnectionID?
        /// The request with which a device is ending the call. It is answered when the call is over. Nil if there is
        /// no request to answer.
        var endingRequest: UInt64?
        var acceptedAt: Timestamp?
        /// Whether a push notification announced the call.
        var wasPushed = false

        var id: CallID { offer.call }

        /// The device on which the call takes place; nil while an incoming call is ringing, and after a server restart
        /// until a device rejoins the call.
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

    /// The request for a call that is being placed and has no id yet; nil if there is none.
    var asking: Request?
    var parts: [Part] = []
    var unseen: UnseenCalls
    /// The budget for placing calls; nil until it is first used.
    var placedBudget: Budget?
    /// The budget for incoming calls that ring; nil until it is first used.
    var rungBudget: Budget?
    var unanswered = UnansweredCalls()
    /// The latest calls that have ended for this person because their nodes were lost, at most ``maxCalls``. This node may be the heir that
    /// continues such a call for the caller, and must not let it ring here again.
    var endedByLoss: [CallID] = []

    init(_ record: PersonRecord) { unseen = UnseenCalls(record.unseenCalls) }

    var isEmpty: Bool { asking == nil && parts.isEmpty }

    /// Whether any state that limits calls (unanswered calls or used budgets) must be kept after the person
    /// disconnects.
    var hasStateToKeep: Bool { !unanswered.isEmpty || placedBudget != nil || rungBudget != nil }

    /// Whether the person is in a call or placing one. If so, the person cannot place another call or use the
    /// roulette.
    var isInCall: Bool { asking != nil || engaged != nil }

    var engaged: Part? { parts.first(where: \.isEngaged) }

    /// Returns the other person in a call, or nil if the call is unknown or not accepted yet.
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

extension CallState {
    /// The current call as the snapshot shows it, and the device on which it takes place; nil if no device holds a
    /// call.
    var heldCall: HeldCall? {
        guard let part = engaged, let client = part.holder else { return nil }
        let state = if case .placed = part.state { Snapshot.CallState.ringing } else { Snapshot.CallState.active }
        return HeldCall(client: client, call: Snapshot.Call(id: part.id, state: state))
    }

    /// A call and the device on which it takes place.
    struct HeldCall: Equatable, Sendable {
        var client: ConnectionID
        var call: Snapshot.Call
    }

    // MARK: Requests

    /// Handles a request of a device.
    ///
    /// - Parameter node: for `call.start`, the node of the cluster to which the caller should move; see `start`.
    mutating func perform(
        _ verb: CallVerb, at node: NodeTag?, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        switch verb {
        case .start(let start): self.start(start, at: node, request, snapshot, &context)
        case .accept: assertionFailure("Person handles call.accept, because it must leave the roulette first")
        case .decline(let verb): decline(verb.call, request, snapshot, &context)
        case .cancel(let verb): cancel(verb.call, request, snapshot, &context)
        case .end(let verb):
            guard let part = self[verb.call] else { return noCall(request, &context) }
            end(part, request, snapshot, &context)
        case .update(let update): self.update(update, request, snapshot, &context)
        case .rejoin(let verb):
            rejoin(verb.call, request, snapshot, &context)
        case .seen(let verb): seen(verb.call, request, snapshot, &context)
        case .log(let page):
            context.query(Question(identity: snapshot.id, client: request.client, re: request.re, .callLog(page)))
        case .forget(let forget):
            unseen.forget(forget.call)
            context.persist(.callsForgotten(forget.call, by: snapshot.id))
            context.ok(request)
        }
    }

    mutating func handle(_ event: PersonCallEvent, _ snapshot: PersonSnapshot, _ context: inout Context) {
        switch event {
        case .restored(let call):
            if !hasEnded(call.id) {
                restore(call, snapshot, context)
            } else if call.callee == snapshot.id, call.acceptedAt == nil {
                context.tell(.call(call.id, .missed))
            }
        case .located(let call, let home, let client, let re):
            located(call, home, Request(client, re), snapshot, &context)
        case .readmitted(let call, let client, let re):
            readmitted(call, Request(client, re), snapshot, &context)
        case .ring(let call): ring(call, snapshot, &context)
        case .placed(let offer, let client, let re):
            placed(offer, Request(client, re), snapshot, &context)
        case .notPlaced(let client, let re, let error):
            let request = Request(client, re)
            guard asking == request else { return }
            asking = nil
            context.fail(error, request)
        case .ringing(let call, let devices):
            guard case .placed(let client?)? = self[call]?.state else { return }
            context.send(.call(.ringing(.init(call: call, devices: devices))), to: client)
        case .accepted(let agreement): accepted(agreement, snapshot, &context)
        case .changed(let call, let video):
            guard let client = self[call]?.holder else { return }
            context.send(.call(.changed(.init(call: call, video: video))), to: client)
        case .partnerAway(let call, let isAway):
            guard let client = self[call]?.holder else { return }
            let state: PartnerState = isAway ? .reconnecting : .connected
            context.send(.call(.partner(.init(call: call, state: state))), to: client)
        case .asked, .over, .nodeLost:
            assertionFailure("Person handles these events, because they need the contacts")
        }
    }

    func noCall(_ request: Request, _ context: inout Context) {
        context.fail(WireError(.notFound, "Unknown call. It may have ended."), request)
    }

    func wrongCallState(_ request: Request, _ text: String, _ context: inout Context) {
        context.fail(WireError(.callState, text), request)
    }
}

extension CallState.Part {
    /// Returns a log record to show on one device while the call continues on another device.
    func record(_ outcome: CallOutcome) -> CallRecord {
        CallRecord(
            call: id, other: offer.other.identity, otherName: offer.other.name, direction: direction, outcome: outcome,
            video: offer.video, at: offer.placedAt, duration: nil, isSeen: true
        )
    }
}
