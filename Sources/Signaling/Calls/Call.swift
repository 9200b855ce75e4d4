import Wire

/// One call, from the request to its end. Decides whether and how long the call rings, who may join, and how it ended.
///
/// Owns the pairing of the two people and the deadlines. Each person's own state machine owns their ringing devices, call log
/// and other activities.
/// Invariants: tokens are made only after the call is accepted, and only for its two people. When the call ends, storage is
/// notified first, then the call's session, then everyone else. Each person is notified of the end exactly once.
struct Call: Machine, Equatable, Sendable {
    struct Side: Equatable, Sendable {
        var party: Counterpart
        /// Whether this side sends video.
        var hasVideo: Bool
        /// Whether this side's device has lost its connection, or has not reconnected after a server restart.
        var isAway = false
        /// Whether this side has joined the session.
        var hasJoined = false
    }

    /// Legal transitions: `new` → `asking`, or after a restart `ringing`, `joining`; `asking` → `ringing`, `over`; `ringing` →
    /// `joining`, `over`; `joining` → `active`, `over`; `active` → `over`.
    private enum State: Equatable, Sendable {
        case new
        /// Waiting for the callee's state machine to decide whether the call may ring. The caller's request is still
        /// unanswered.
        case asking(Request)
        case ringing(devices: Int)
        /// Accepted; both people are joining the session.
        case joining(since: Timestamp, until: Timestamp)
        case active(since: Timestamp)
        case over
    }

    let id: CallID
    private var state = State.new
    private var caller = Side.nobody
    private var callee = Side.nobody
    private var session = SessionID.unset
    private var video = true
    /// By the wall clock, because the call log shows it.
    private var placedAt = Timestamp(milliseconds: 0)
    private var ringsUntil = Timestamp(milliseconds: 0)
    /// Whether the call is in storage.
    private var isStored = false
    /// The time by which absent devices must reconnect after a server restart.
    private var backBy: Timestamp?

    init(id: CallID) { self.id = id }

    static func make(_ id: CallID, for event: CallEvent, _ turn: inout Turn) -> Call? {
        switch event {
        case .begin, .restore: Call(id: id)
        default: nil
        }
    }

    var isOver: Bool { state == .over }
    var isRinging: Bool { if case .ringing = state { true } else { false } }

    // MARK: Timeouts

    private var people: [IdentityID] { [caller.party.identity, callee.party.identity] }

    var nextTimeout: Timestamp? {
        switch state {
        case .new, .over: nil
        case .asking, .ringing: backBy.map { min($0, ringsUntil) } ?? ringsUntil
        case .joining(_, let until): backBy.map { min($0, until) } ?? until
        case .active: backBy
        }
    }

    mutating func handleTimeout(_ turn: inout Turn) {
        let isLate = backBy.map { $0 <= turn.now } ?? false
        switch state {
        case .new, .over: return
        case .asking(let request):
            guard ringsUntil <= turn.now else { return }
            let error = WireError(.internalError, "The callee could not be reached. Try again.", retryable: true)
            giveUp(error, request, &turn)
        case .ringing where ringsUntil <= turn.now: end(.unanswered, .missed, &turn)
        case .ringing where isLate: end(.cancelled, .cancelled, &turn)
        case .joining where isLate, .active where isLate:
            end(.connectionLost, .connectionLost, &turn)
        case .joining(_, let until) where until <= turn.now: end(.failed, .failed, &turn)
        case .ringing, .joining, .active: return
        }
    }

    // MARK: Events

    mutating func handle(_ event: CallEvent, _ turn: inout Turn) {
        switch event {
        case .begin(let attempt): begin(attempt, &turn)
        case .restore(let stored): restore(stored, &turn)
        case .answered(let answer): answered(answer, &turn)
        case .rings(let devices):
            guard isRinging else { return }
            state = .ringing(devices: devices)
            turn.tell(.person(caller.party.identity, .call(.ringing(id, devices: devices))))
        case .outOfReach:
            if isRinging { end(.unreachable, .missed, &turn) }
        case .accept(let identity, let video):
            guard isRinging, identity == callee.party.identity else { return }
            accept(video, &turn)
        case .leave(let identity, let leaving): leave(identity, leaving, &turn)
        case .away(let identity, let isAway): setAway(isAway, identity, &turn)
        case .video(let identity, let video): setVideo(video, identity, &turn)
        case .rejoin(let identity):
            guard let since, let place = place(of: identity) else { return }
            setAway(false, identity, &turn)
            admit(place, since: since, &turn)
            if self[place.other].isAway { turn.tell(.person(identity, .call(.partnerAway(id, true)))) }
        case .joined(let identity): joined(identity)
        case .merge(let other):
            if isRinging { end(.merged, .merged, of: other, &turn) }
        }
    }

    // MARK: Placing

    private mutating func begin(_ attempt: CallAttempt, _ turn: inout Turn) {
        guard state == .new else { return }
        caller = Side(party: attempt.caller, hasVideo: attempt.video)
        let person = turn.project.personID(of: attempt.callee)
        let party = Counterpart(identity: attempt.callee, person: person, name: "", isOnline: false)
        callee = Side(party: party, hasVideo: attempt.video)
        session = turn.project.makeSessionID(
            mediaMode: turn.rules.callSessionMode, now: turn.wallNow, using: &turn.random)
        (video, placedAt, ringsUntil) = (attempt.video, turn.wallNow, turn.now + turn.rules.ringTimeout)
        state = .asking(Request(attempt.client, attempt.re))
        turn.tell(.person(attempt.callee, .call(.asked(offer(from: caller)))))
    }

    private mutating func answered(_ answer: CallAnswer, _ turn: inout Turn) {
        guard case .asking(let request) = state else { return }
        switch answer {
        case .notAllowed:
            let error = WireError(.callNotAllowed, "This person does not accept calls from you.")
            giveUp(error, request, &turn)
        case .ready(let party):
            place(party, request, &turn)
            turn.tell(.person(party.identity, .call(.ring(id))))
        case .refused(let party, let outcome, let isMissed):
            place(party, request, isStored: false, &turn)
            end(outcome, isMissed ? .missed : nil, &turn)
        case .mutual(let party, let other) where id < other:
            // This call continues. The callee joins it after the call that they placed has ended.
            place(party, request, &turn)
            turn.tell(.call(other, .merge(into: id)))
        case .mutual(let party, let other):
            // The other call continues. The caller joins it after this call has ended.
            place(party, request, isStored: false, &turn)
            end(.merged, nil, of: other, &turn)
        }
    }

    private mutating func place(_ party: Counterpart, _ request: Request, isStored: Bool = true, _ turn: inout Turn) {
        callee.party = party
        self.isStored = isStored
        if isStored { turn.persist(.callPlaced(stored(turn.moment))) }
        state = .ringing(devices: 0)
        turn.tell(.person(caller.party.identity, .call(.placed(offer(from: callee), request.client, re: request.re))))
    }

    /// Ends a call that could not be placed. Only the caller is notified.
    private mutating func giveUp(_ error: WireError, _ request: Request, _ turn: inout Turn) {
        state = .over
        turn.tell(.person(caller.party.identity, .call(.notPlaced(request.client, re: request.re, error))))
    }

    private func stored(_ moment: Moment) -> StoredCall {
        StoredCall(
            id: id, session: session, caller: caller.party.identity, callee: callee.party.identity,
            callerName: caller.party.name, calleeName: callee.party.name, video: video, placedAt: placedAt,
            ringsUntil: moment.wall(at: ringsUntil)
        )
    }

    private func offer(from side: Side) -> CallOffer {
        CallOffer(call: id, other: side.party, video: video, placedAt: placedAt, ringsUntil: ringsUntil)
    }

    // MARK: Joining

    private var since: Timestamp? {
        switch state {
        case .joining(let since, _), .active(let since): since
        case .new, .asking, .ringing, .over: nil
        }
    }

    private mutating func accept(_ video: Bool, _ turn: inout Turn) {
        callee.hasVideo = video
        state = .joining(since: turn.now, until: turn.now + turn.rules.joinTimeout)
        turn.persist(.callAccepted(id, at: turn.wallNow, people: people))
        turn.tell(.session(session, .matchOpened(id.binding, places: 2, of: id)))
        for place in [CallDirection.incoming, .outgoing] {
            admit(place, since: turn.now, &turn)
        }
        if caller.isAway { turn.tell(.person(callee.party.identity, .call(.partnerAway(id, true)))) }
    }

    private func admit(_ place: CallDirection, since: Timestamp, _ turn: inout Turn) {
        let agreement = CallAgreement(
            call: id, withVideo: self[place.other].hasVideo, since: turn.moment.wall(at: since),
            admission: turn.admission(
                to: session, .publisher, match: id.binding, for: self[place].party.identity),
            mediaMode: turn.project.mediaMode(of: session) ?? turn.rules.callSessionMode
        )
        turn.tell(.person(self[place].party.identity, .call(.accepted(agreement))))
    }

    private mutating func joined(_ identity: IdentityID) {
        guard case .joining(let since, _) = state, let place = place(of: identity) else { return }
        self[place].hasJoined = true
        if caller.hasJoined, callee.hasJoined { state = .active(since: since) }
    }

    private mutating func setAway(_ isAway: Bool, _ identity: IdentityID, _ turn: inout Turn) {
        guard let place = place(of: identity), self[place].isAway != isAway else { return }
        self[place].isAway = isAway
        if !caller.isAway, !callee.isAway { backBy = nil }
        if case .ringing(let devices) = state {
            if !isAway { turn.tell(.person(identity, .call(.ringing(id, devices: devices)))) }
        } else if since != nil {
            let other = self[place.other].party.identity
            turn.tell(.person(other, .call(.partnerAway(id, isAway))))
        }
    }

    private mutating func setVideo(_ video: Bool, _ identity: IdentityID, _ turn: inout Turn) {
        guard since != nil, let place = place(of: identity), self[place].hasVideo != video else { return }
        self[place].hasVideo = video
        turn.tell(.person(self[place.other].party.identity, .call(.changed(id, video: video))))
    }

    // MARK: Ending

    private mutating func leave(_ identity: IdentityID, _ leaving: CallLeaving, _ turn: inout Turn) {
        guard let place = place(of: identity) else { return }
        if leaving == .deleted { self[place].party.name = "" }
        let isCaller = place == .outgoing
        switch (state, leaving) {
        case (.new, _), (.over, _): return
        case (.asking, _), (.ringing, _):
            let outcome: CallOutcome = isCaller ? .cancelled : .declined
            end(outcome, outcome, &turn)
        case (.joining, .lost), (.active, .lost): end(.connectionLost, .connectionLost, &turn)
        case (.joining, _), (.active, _):
            end(isCaller ? .ended : .hungUp, isCaller ? .hungUp : .ended, &turn)
        }
    }

    /// - Parameters:
    ///   - toCallee: the outcome for the callee; nil if the callee must not be notified.
    ///   - merged: the call in which both people continue, if they called each other.
    private mutating func end(
        _ toCaller: CallOutcome, _ toCallee: CallOutcome?, of merged: CallID? = nil, _ turn: inout Turn
    ) {
        let duration = since.map { max(.zero, turn.now - $0) }
        if isStored { turn.persist(.callOver(id, people: people)) }
        if since != nil { turn.tell(.session(session, .matchClosed(id.binding))) }
        state = .over
        for (place, outcome) in [(CallDirection.outgoing, Optional(toCaller)), (.incoming, toCallee)] {
            guard let outcome else { continue }
            let other = self[place.other].party
            let record = CallRecord(
                call: id, other: other.identity, otherName: other.name, direction: place, outcome: outcome,
                video: video, at: placedAt, duration: duration, isSeen: false
            )
            let end = CallEnd(record: record, into: merged)
            turn.tell(.person(self[place].party.identity, .call(.over(end))))
        }
    }

    // MARK: Restart

    /// Restores a stored call after a server restart. No device is connected yet. Its deadline and the time since which it is
    /// active have been converted to this server's clock (`StoredCall.restored`).
    private mutating func restore(_ stored: StoredCall, _ turn: inout Turn) {
        guard state == .new else { return }
        func side(_ identity: IdentityID, _ name: String) -> Side {
            let person = turn.project.personID(of: identity)
            let party = Counterpart(identity: identity, person: person, name: name, isOnline: false)
            return Side(party: party, hasVideo: stored.video)
        }
        caller = side(stored.caller, stored.callerName)
        callee = side(stored.callee, stored.calleeName)
        (session, video) = (stored.session, stored.video)
        (placedAt, ringsUntil) = (stored.placedAt, stored.ringsUntil)
        isStored = true
        caller.isAway = true
        backBy = turn.now + turn.rules.resumeGrace
        guard let acceptedAt = stored.acceptedAt else { return state = .ringing(devices: 0) }
        callee.isAway = true
        state = .joining(since: acceptedAt, until: turn.now + turn.rules.resumeGrace + turn.rules.joinTimeout)
        turn.tell(.session(session, .matchOpened(id.binding, places: 2, of: id)))
    }

    // MARK: Sides

    /// Returns the caller for `outgoing` and the callee for `incoming`.
    private subscript(place: CallDirection) -> Side {
        get { place == .outgoing ? caller : callee }
        set { if place == .outgoing { caller = newValue } else { callee = newValue } }
    }

    private func place(of identity: IdentityID) -> CallDirection? {
        identity == caller.party.identity ? .outgoing : identity == callee.party.identity ? .incoming : nil
    }
}

extension CallDirection {
    fileprivate var other: CallDirection { self == .outgoing ? .incoming : .outgoing }
}

extension Call.Side {
    fileprivate static let nobody = Call.Side(
        party: Counterpart(
            identity: IdentityID(high: 0, low: 0), person: PersonID(high: 0, low: 0), name: "", isOnline: false),
        hasVideo: false
    )
}
