import Cluster
import Wire

/// One call, from the request to its end. Decides whether and how long the call rings, who may join, and how it ended.
///
/// Owns the pairing of the two people and the deadlines. The ringing devices, call log and other activities of each of
/// them belong to that person's state machine.
/// Invariants: tokens are made only after the call is accepted, and only for its two people. When the call ends,
/// storage is notified first, then the call's session, then the two people. Neither of them is notified of the end
/// more than once. A call is on the caller's node. The callee may be on another one.
struct Call: Machine, Equatable, Sendable {
    /// One of the two people in the call.
    struct Side: Equatable, Sendable {
        var party: Counterpart
        /// The person's node, if it is another node of the cluster; nil if it is this one.
        var node: NodeTag?
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
    /// When the call was placed: a time of the wall clock, because the call log shows it.
    private var placedAt = Timestamp(milliseconds: 0)
    private var ringsUntil = Timestamp(milliseconds: 0)
    /// Whether the call is in storage.
    private var isStored = false
    /// When the callee has missed a restored call; nil if the callee's devices ring, or may still ring. The call ends at this time, but not
    /// before the caller has reconnected, so that the caller learns how it ended. A callee whose list already has the call ignores its end.
    private var missedAt: Timestamp?
    /// The time by which absent devices must reconnect after a server restart; nil if none is absent, or if the server
    /// was not restarted during the call.
    private var backBy: Timestamp?

    init(id: CallID) { self.id = id }

    static func make(_ id: CallID, for event: CallEvent, _ context: inout Context) -> Call? {
        switch event {
        case .begin, .restore: return Call(id: id)
        case .returned(_, let client, let re):
            // Storage has the call, but this node has not restored it yet, or it has just ended.
            context.fail(.callMoves, Request(client, re))
            return nil
        default: return nil
        }
    }

    var isOver: Bool { state == .over }
    var isRinging: Bool { if case .ringing = state { true } else { false } }
    /// The callee and the callee's node, if it is another node; otherwise nil.
    var distantCallee: (identity: IdentityID, node: NodeTag)? { callee.node.map { (callee.party.identity, $0) } }

    // MARK: Timeouts

    private var people: [IdentityID] { [caller.party.identity, callee.party.identity] }

    var nextTimeout: Timestamp? {
        switch state {
        case .new, .over: nil
        case .asking: ringsUntil
        case .ringing: [ringsUntil, backBy, caller.isAway ? nil : missedAt].compactMap(\.self).min()
        case .joining(_, let until): backBy.map { min($0, until) } ?? until
        case .active: backBy
        }
    }

    mutating func handleTimeout(_ context: inout Context) {
        let isLate = backBy.map { $0 <= context.now } ?? false
        switch state {
        case .new, .over: return
        case .asking(let request):
            guard ringsUntil <= context.now else { return }
            let error = WireError(.internalError, "This person could not be reached. Try again.", retryable: true)
            giveUp(error, request, &context)
            // The callee may have reserved a place for the call, and the answer may be in transit.
            if callee.node != nil {
                tell(.incoming, .over(CallEnd(record: record(.incoming, .missed), into: nil)), &context)
            }
        case .ringing where ringsUntil <= context.now: end(.unanswered, .missed, &context)
        case .ringing where isLate: end(.cancelled, missedAt == nil ? .cancelled : .missed, &context)
        case .ringing where isMissed(context.now): end(.unreachable, .missed, &context)
        case .joining where isLate, .active where isLate:
            end(.connectionLost, .connectionLost, &context)
        case .joining(_, let until) where until <= context.now: end(.failed, .failed, &context)
        case .ringing, .joining, .active: return
        }
    }

    // MARK: Events

    mutating func handle(_ event: CallEvent, _ context: inout Context) {
        switch event {
        case .begin(let attempt): begin(attempt, &context)
        case .restore(let stored): restore(stored, &context)
        case .answered(let answer): answered(answer, &context)
        case .rings(let devices):
            guard isRinging else { return }
            state = .ringing(devices: devices)
            missedAt = nil
            tell(.outgoing, .ringing(id, devices: devices), &context)
        case .outOfReach:
            if isRinging { end(.unreachable, .missed, &context) }
        case .missed: missedAt = context.now
        case .calleeElsewhere: missedAt = context.now + context.rules.calleeWait
        case .accept(let identity, let video):
            guard isRinging, identity == callee.party.identity else { return }
            accept(video, &context)
        case .leave(let identity, let leaving): leave(identity, leaving, &context)
        case .away(let identity, let isAway): setAway(isAway, identity, &context)
        case .video(let identity, let video): setVideo(video, identity, &context)
        case .rejoin(let identity):
            guard let since, let place = place(of: identity) else { return }
            setAway(false, identity, &context)
            admit(place, since: since, &context)
            if self[place.other].isAway { tell(place, .partnerAway(id, true), &context) }
        case .returned(let identity, let client, let re): readmit(identity, Request(client, re), &context)
        case .joined(let identity): joined(identity)
        case .merge(let other):
            if isRinging { end(.merged, .merged, of: other, &context) }
        case .nodeLost(let node): nodeLost(node, &context)
        }
    }

    private func tell(_ place: CallDirection, _ event: PersonCallEvent, _ context: inout Context) {
        context.tell(self[place].party.identity, .call(event), at: self[place].node)
    }

    // MARK: Placing

    private mutating func begin(_ attempt: CallAttempt, _ context: inout Context) {
        guard state == .new else { return }
        caller = Side(party: attempt.caller, hasVideo: attempt.video)
        let person = context.project.personID(of: attempt.callee)
        let party = Counterpart(identity: attempt.callee, person: person, name: attempt.calleeName, isOnline: false)
        callee = Side(party: party, node: attempt.calleeNode, hasVideo: attempt.video)
        session = context.makeSessionID(mediaMode: context.rules.callSessionMode, isPrivate: true)
        (video, placedAt, ringsUntil) = (attempt.video, context.wallNow, context.now + context.rules.ringTimeout)
        state = .asking(Request(attempt.client, attempt.re))
        var offer = offer(from: caller)
        // Each node's timers have their own clock, so another node gets a wall-clock time.
        if callee.node != nil { offer.ringsUntil = context.moment.wall(at: ringsUntil) }
        tell(.incoming, .asked(offer), &context)
    }

    private mutating func answered(_ answer: CallAnswer, _ context: inout Context) {
        guard case .asking(let request) = state else { return }
        switch answer {
        case .notAllowed:
            let error = WireError(.callNotAllowed, "This person does not accept calls from you.")
            giveUp(error, request, &context)
        case .ready(let party):
            place(party, request, &context)
            tell(.incoming, .ring(id), &context)
        case .refused(let party, let outcome, let isMissed):
            place(party, request, isStored: false, &context)
            end(outcome, isMissed ? .missed : nil, &context)
        case .elsewhere:
            place(callee.party, request, isStored: false, &context)
            end(.unreachable, nil, &context)
        case .mutual(let party, let other) where id < other:
            // This call continues. The callee's own call to the caller ends, and then the callee joins this one.
            place(party, request, &context)
            context.tell(.call(other, .merge(into: id)))
        case .mutual(let party, let other):
            // The callee's call to the caller continues. The caller joins it after this call has ended.
            place(party, request, isStored: false, &context)
            end(.merged, nil, of: other, &context)
        }
    }

    private mutating func place(
        _ party: Counterpart, _ request: Request, isStored: Bool = true, _ context: inout Context
    ) {
        callee.party = party
        self.isStored = isStored
        if isStored { context.persist(.callPlaced(stored(context.moment))) }
        state = .ringing(devices: 0)
        tell(.outgoing, .placed(offer(from: callee), request.client, re: request.re), &context)
    }

    /// Ends a call that could not be placed. Only the caller is notified.
    private mutating func giveUp(_ error: WireError, _ request: Request, _ context: inout Context) {
        state = .over
        tell(.outgoing, .notPlaced(request.client, re: request.re, error), &context)
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

    private mutating func accept(_ video: Bool, _ context: inout Context) {
        callee.hasVideo = video
        state = .joining(since: context.now, until: context.now + context.rules.joinTimeout)
        context.persist(.callAccepted(id, at: context.wallNow, people: people))
        context.tell(.session(session, .matchOpened(id.binding, places: 2, of: id)))
        for place in [CallDirection.incoming, .outgoing] {
            admit(place, since: context.now, &context)
        }
        if caller.isAway { tell(.incoming, .partnerAway(id, true), &context) }
    }

    private func admit(_ place: CallDirection, since: Timestamp, _ context: inout Context) {
        let agreement = CallAgreement(
            call: id, withVideo: self[place.other].hasVideo, since: context.moment.wall(at: since),
            admission: context.admission(
                to: session, .publisher, match: id.binding, for: self[place].party.identity),
            mediaMode: context.project.mediaMode(of: session) ?? context.rules.callSessionMode
        )
        tell(place, .accepted(agreement), &context)
    }

    private mutating func joined(_ identity: IdentityID) {
        guard case .joining(let since, _) = state, let place = place(of: identity) else { return }
        self[place].hasJoined = true
        if caller.hasJoined, callee.hasJoined { state = .active(since: since) }
    }

    private mutating func setAway(_ isAway: Bool, _ identity: IdentityID, _ context: inout Context) {
        guard let place = place(of: identity), self[place].isAway != isAway else { return }
        self[place].isAway = isAway
        if !caller.isAway, !callee.isAway { backBy = nil }
        if case .ringing(let devices) = state {
            guard !isAway else { return }
            if isMissed(context.now) { return end(.unreachable, .missed, &context) }
            tell(place, .ringing(id, devices: devices), &context)
        } else if since != nil {
            tell(place.other, .partnerAway(id, isAway), &context)
        }
    }

    /// Whether the callee has missed the call, and the caller is back to learn it.
    private func isMissed(_ now: Timestamp) -> Bool { !caller.isAway && missedAt.map { $0 <= now } ?? false }

    private mutating func setVideo(_ video: Bool, _ identity: IdentityID, _ context: inout Context) {
        guard since != nil, let place = place(of: identity), self[place].hasVideo != video else { return }
        self[place].hasVideo = video
        tell(place.other, .changed(id, video: video), &context)
    }

    // MARK: Ending

    private mutating func leave(_ identity: IdentityID, _ leaving: CallLeaving, _ context: inout Context) {
        guard let place = place(of: identity) else { return }
        if leaving == .deleted { self[place].forgetPerson() }
        let isCaller = place == .outgoing
        switch (state, leaving) {
        case (.new, _), (.over, _): return
        case (.asking, _), (.ringing, _):
            let outcome: CallOutcome = isCaller ? .cancelled : .declined
            end(outcome, outcome, &context)
        case (.joining, .lost), (.active, .lost): end(.connectionLost, .connectionLost, &context)
        case (.joining, _), (.active, _):
            end(isCaller ? .ended : .hungUp, isCaller ? .hungUp : .ended, &context)
        }
    }

    /// Ends the call: storage is notified first, then the session, then the two people.
    ///
    /// - Parameters:
    ///   - toCallee: the outcome for the callee; nil if the callee must not be notified. `toCaller` is the outcome for
    ///     the caller.
    ///   - merged: the call in which both people continue, if they called each other; otherwise nil.
    private mutating func end(
        _ toCaller: CallOutcome, _ toCallee: CallOutcome?, of merged: CallID? = nil, _ context: inout Context
    ) {
        let duration = since.map { max(.zero, context.now - $0) }
        if isStored { context.persist(.callOver(id, people: people)) }
        if since != nil { context.tell(.session(session, .matchClosed(id.binding))) }
        state = .over
        for (place, outcome) in [(CallDirection.outgoing, Optional(toCaller)), (.incoming, toCallee)] {
            guard let outcome else { continue }
            tell(place, .over(CallEnd(record: record(place, outcome, duration: duration), into: merged)), &context)
        }
    }

    private func record(_ place: CallDirection, _ outcome: CallOutcome, duration: Duration? = nil) -> CallRecord {
        let other = self[place.other].party
        return CallRecord(
            call: id, other: other.identity, otherName: other.name, direction: place, outcome: outcome, video: video,
            at: placedAt, duration: duration, isSeen: false)
    }

    /// Handles the loss of the callee's node, or of letters between it and this one. A ringing call ends, and is reported as missed to
    /// the callee, whichever node they are on now. In an answered call, the callee must connect to this node in time, as after a restart.
    private mutating func nodeLost(_ node: NodeTag, _ context: inout Context) {
        guard callee.node == node else { return }
        switch state {
        case .new, .over: return
        case .asking: answered(.elsewhere, &context)
        case .ringing:
            callee.node = nil
            end(.unreachable, .missed, &context)
        case .joining, .active:
            callee.node = nil
            setAway(true, callee.party.identity, &context)
            backBy = context.now + context.rules.resumeGrace
        }
    }

    // MARK: Restart

    /// Restores a stored call after a server restart. No device is connected yet. `Context.restored` has already
    /// converted `ringsUntil` and `acceptedAt` to the timers' clock, and chosen the session.
    private mutating func restore(_ stored: StoredCall, _ context: inout Context) {
        guard state == .new else { return }
        func side(_ identity: IdentityID, _ name: String) -> Side {
            let person = context.project.personID(of: identity)
            let party = Counterpart(identity: identity, person: person, name: name, isOnline: false)
            return Side(party: party, hasVideo: stored.video)
        }
        caller = side(stored.caller, stored.callerName)
        callee = side(stored.callee, stored.calleeName)
        (session, video) = (stored.session, stored.video)
        (placedAt, ringsUntil) = (stored.placedAt, stored.ringsUntil)
        isStored = true
        caller.isAway = true
        backBy = context.now + context.rules.resumeGrace
        guard let acceptedAt = stored.acceptedAt else { return state = .ringing(devices: 0) }
        callee.isAway = true
        state = .joining(since: acceptedAt, until: context.now + context.rules.resumeGrace + context.rules.joinTimeout)
        context.tell(.session(session, .matchOpened(id.binding, places: 2, of: id)))
    }

    /// Gives a person who came to this node after the call their part in it.
    private mutating func readmit(_ identity: IdentityID, _ request: Request, _ context: inout Context) {
        var call = stored(context.moment)
        switch state {
        case .ringing: call.ringsUntil = ringsUntil
        case .joining(let since, _), .active(let since): call.acceptedAt = since
        case .new, .asking, .over: return context.fail(.callMoves, request)
        }
        guard let place = place(of: identity) else { return context.fail(.callMoves, request) }
        self[place].node = nil
        tell(place, .readmitted(call, request.client, re: request.re), &context)
    }

    // MARK: Sides

    /// The side for which the call has this direction: the caller for `outgoing`, the callee for `incoming`.
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

extension Context {
    /// Returns a stored call as it continues on this node: with `ringsUntil` and `acceptedAt` converted to the timers' clock. Stored times
    /// are times of the wall clock, which may be wrong when the server starts. Both results are therefore limited: the call never
    /// rings longer than a new call, and `acceptedAt` is never in the future.
    ///
    /// In a cluster, the call gets a new session. When the life that made the previous session's id ended, the place of that session became
    /// free, and a client with a token of an application may have claimed it on any node. Storage keeps the original session, because each
    /// node that continues the call makes a new one anyway.
    mutating func restored(_ stored: StoredCall) -> StoredCall {
        var call = stored
        call.ringsUntil = min(moment.time(atWall: stored.ringsUntil), now + rules.ringTimeout)
        call.acceptedAt = stored.acceptedAt.map { min(moment.time(atWall: $0), now) }
        if project.origin(of: stored.session) != tag {
            let mediaMode = project.mediaMode(of: stored.session) ?? rules.callSessionMode
            call.session = makeSessionID(mediaMode: mediaMode, isPrivate: true)
        }
        return call
    }
}
