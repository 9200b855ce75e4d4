import Wire

/// The state machine for joining a room, and for rejoining it after the server has lost this connection.
///
/// Invariants: there is at most one room, and at most one attempt to join or rejoin. Each `enter` is followed by
/// exactly one `exit` before the next `enter`.
struct RoomsMachine: FeatureMachine, Sendable {
    /// An event to report to the application.
    enum Event: Equatable, Sendable {
        case joined(RoomName)
        /// A host must admit this person.
        case waiting
        case reconnecting
        case reconnected
        case settings(RoomOptions)
        case person(RoomMember)
        case role(RoomRole)
        case said(RoomLine)
        case fileRemoved(RoomFileID)
        case reacted(ConnectionID, String)
        case knock(RoomKnock, waiting: Bool)
        case ended(RoomEnding, ConfabError?)
    }

    /// An action that `RoomMedia` carries out.
    enum Action: Equatable, Sendable {
        /// Join the session of the room. Session memberships are numbered, because their events may arrive late.
        case enter(Admission, membership: Int)
        /// Leave the session. `isLost` is false if the application left the room or another `enter` follows. It is
        /// true if the session was lost or could not be joined, or if the server ended the room.
        case exit(isLost: Bool)
    }

    /// A request from the application.
    enum Command: Equatable, Sendable {
        case join(RoomVerb.Join)
        case leave
        /// A request that requires being in the room.
        case verb(RoomVerb)
    }

    /// Determines how the answer to a request is handled.
    enum Purpose: Equatable, Sendable {
        case join(attempt: Int)
        case leave(FeatureCaller?)
        case verb(FeatureCaller, RoomVerb)
        case quiet
    }

    /// The progress of an attempt: `idle` → `asking` → `answered`; the last two can return to `idle`, to send the
    /// request again.
    enum Phase: Equatable, Sendable {
        case idle
        case asking
        /// The server has answered: this person is in the lobby, or is joining the session.
        case answered
    }

    /// An attempt to join a room or to rejoin it.
    struct Attempt: Equatable, Sendable {
        var number: Int
        var request: RoomVerb.Join
        /// The `join` call that waits for the result; nil when rejoining.
        var caller: FeatureCaller?
        var phase = Phase.idle
        var backoff = Backoff(longest: .seconds(5))
        /// When to give up rejoining; nil for a `join` call, for which the first rejection is final.
        var until: Timestamp?
        /// When to send the request; nil unless the phase is `idle`. A time in the past means as soon as possible.
        var askAt: Timestamp?
    }

    /// How long to keep trying to rejoin, if the room rejects the request for a reason that may pass.
    private static let rejoinTime = Duration.seconds(120)
    /// The maximum time that a person who is not the host waits before rejoining; the minimum is half of it. After a
    /// restart of the server, the first person to rejoin becomes host, and that should be the previous host.
    private static let guestsPause = Duration.milliseconds(1000)
    /// How long to wait after the session ended before rejoining. If `room.ended` arrives in this time, the room is
    /// not rejoined.
    private static let sessionPause = Duration.milliseconds(1000)
    /// Error codes for reasons that may pass: rejoining is tried again after a rejection with one of them.
    private static let passing: Set<ConfabError.Code> = [
        .roomFull, .roomLocked, .roomNotFound, .alreadyJoined, .rateLimited, .mediaUnavailable,
    ]

    var random: any RandomNumberGenerator & Sendable
    var room: RoomState?
    private var attempt: Attempt?
    private var attempts = 0
    private var password: String?
    /// The application's token, which is also used for rejoining; nil if this person joined without one.
    private var token: String?
    /// Whether requests to join are sent. This is false between the loss of a connection and the next connection. It
    /// becomes true again when the client has given up reconnecting, because the signal client then answers each
    /// request with the reason.
    private var mayAsk = true
    private var connection: ConnectionID?
    /// The number of the most recent session membership.
    private var membership = 0
    private var requests = Requests<Purpose>()
    /// The number of unanswered requests to join or leave. A request to join is sent only while this is 0, so that the
    /// answers to two requests cannot be confused.
    private var unsettled = 0
    /// When to rejoin the room, because its session ended; nil while this is not scheduled.
    private var sessionDeadline: Timestamp?

    init(random: any RandomNumberGenerator & Sendable) { self.random = random }

    // MARK: Commands

    mutating func handle(_ command: Command, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        switch command {
        case .join(let request):
            guard attempt == nil, room == nil else { return [.finish(caller, .failure(.inARoom))] }
            (password, token) = (request.password ?? request.options?.password, request.token)
            begin(request, caller, until: nil, askAt: now)
            return askIfPossible(now)
        case .leave: return leave(caller)
        case .verb(let verb):
            guard room != nil else { return [.finish(caller, .failure(.notInRoom))] }
            return send(verb, for: .verb(caller, verb))
        }
    }

    /// Stops joining and leaves the room, because the caller of `join` no longer waits.
    mutating func cancelled(_ caller: FeatureCaller, now: Timestamp) -> [Effect] {
        guard attempt?.caller == caller else { return [] }
        attempt = nil
        return endRoom(.left, nil) + sendLeave()
    }

    private mutating func leave(_ caller: FeatureCaller) -> [Effect] {
        let wasWaiting = attempt
        guard room != nil || wasWaiting != nil else { return [.finish(caller, .success(nil))] }
        attempt = nil
        let failed: [Effect] = wasWaiting?.caller.map { [.finish($0, .failure(.leftBeforeJoining))] } ?? []
        return endRoom(.left, nil) + failed + sendLeave(caller)
    }

    private mutating func sendLeave(_ caller: FeatureCaller? = nil) -> [Effect] {
        unsettled += 1
        return send(.leave, for: .leave(caller))
    }

    private mutating func send(_ verb: RoomVerb, for purpose: Purpose) -> [Effect] {
        let request = requests.sendFirst(.room(verb), for: purpose)
        return [.send(request.id, request.message)]
    }

    // MARK: Joining

    private mutating func begin(
        _ request: RoomVerb.Join, _ caller: FeatureCaller?, until: Timestamp?, askAt: Timestamp?
    ) {
        attempts += 1
        attempt = Attempt(number: attempts, request: request, caller: caller, until: until, askAt: askAt)
    }

    private mutating func askIfPossible(_ now: Timestamp) -> [Effect] {
        guard let waiting = attempt, waiting.phase == .idle, let askAt = waiting.askAt, askAt <= now, mayAsk,
            unsettled == 0
        else { return [] }
        attempt?.phase = .asking
        attempt?.askAt = nil
        unsettled += 1
        return send(.join(waiting.request), for: .join(attempt: waiting.number))
    }

    private mutating func joined(_ joined: RoomNotice.Joined) -> [Effect] {
        guard attempt != nil else { return [] }
        attempt?.phase = .answered
        let isFirst = room == nil
        let exit = leaveSession(isLost: false)
        var effects = room?.enter(joined, as: connection) ?? []
        if isFirst { room = RoomState(joined, as: connection) }
        room?.isInSession = true
        membership += 1
        sessionDeadline = nil
        effects += exit + [.perform(.enter(joined.admission, membership: membership))]
        guard room?.hasRaisedHand == true else { return effects }
        return effects + send(.hand(.init(raised: true)), for: .quiet)
    }

    /// Whether an event belongs to the current session membership.
    private func isCurrent(_ number: Int) -> Bool { number == membership && room?.isInSession == true }

    /// Finishes joining or rejoining, because the room's session is connected.
    mutating func sessionJoined(membership number: Int) -> [Effect] {
        guard isCurrent(number), let joined = attempt, let room else { return [] }
        attempt = nil
        guard let caller = joined.caller else { return reconnected() }
        self.room?.isReconnecting = false
        return [.tell(.joined(room.name)), .finish(caller, .success(nil))]
    }

    /// Handles a failure to join the session of the room. The room cannot be used without its session, so this leaves
    /// the room. A `join` call then fails; rejoining is tried again later.
    mutating func sessionFailed(_ error: ConfabError, membership number: Int, now: Timestamp) -> [Effect] {
        guard isCurrent(number) else { return [] }
        let exit = leaveSession(isLost: true)
        guard attempt != nil else { return exit + again(now) }
        // Leave the room, unless the connection was lost: then this person is no longer in the room.
        let left = error.code == .connectionRestarted ? [] : sendLeave()
        return exit + left + refused(error, passes: true, now)
    }

    /// Handles the end of the session: schedules rejoining after a pause. If the session ended because this person is
    /// no longer in the room, `room.ended` arrives during the pause and cancels the rejoining.
    mutating func sessionLost(membership number: Int, now: Timestamp) -> [Effect] {
        guard isCurrent(number), attempt == nil else { return [] }
        sessionDeadline = now + Self.sessionPause
        return leaveSession(isLost: true) + reconnecting()
    }

    private mutating func refused(_ error: ConfabError, passes: Bool? = nil, _ now: Timestamp) -> [Effect] {
        guard var refused = attempt else { return [] }
        if error.code == .connectionRestarted {
            // The request was lost with the connection. It is sent again over the next connection, which may already
            // exist.
            guard refused.phase != .idle else { return [] }
            (refused.phase, refused.askAt) = (.idle, now + refused.backoff.next(using: &random))
            attempt = refused
            return []
        }
        let mayPass =
            passes ?? (Self.passing.contains(error.code) || (error.isRetryable && error.code != .roomPassword))
        if let until = refused.until, mayPass, now < until {
            let pause = max(refused.backoff.next(using: &random), error.retryAfter ?? .zero)
            (refused.phase, refused.askAt) = (.idle, now + pause)
            attempt = refused
            return []
        }
        attempt = nil
        let ending: RoomEnding =
            switch error.code {
            case .roomBanned: .banned
            case .connectFailed: .connectionLost
            default: RoomEnding(rawValue: error.code.rawValue)
            }
        return endRoom(ending, error) + (refused.caller.map { [.finish($0, .failure(error))] } ?? [])
    }

    // MARK: Rejoining

    /// Leaves the session and prepares to join again, because the server has discarded this connection. The room may
    /// have ended too.
    private mutating func lost() -> [Effect] {
        mayAsk = false
        attempt?.phase = .idle
        attempt?.askAt = Timestamp(milliseconds: 0)
        return leaveSession(isLost: true) + (room == nil ? [] : reconnecting())
    }

    private mutating func again(_ now: Timestamp) -> [Effect] {
        guard let room, attempt == nil else { return [] }
        let pause = room.role == .host ? Duration.zero : Self.guestsPause * Double.random(in: 0.5...1, using: &random)
        begin(room.request(password: password, token: token), nil, until: now + Self.rejoinTime, askAt: now + pause)
        return reconnecting() + askIfPossible(now)
    }

    private mutating func reconnecting() -> [Effect] {
        guard room != nil, room?.isReconnecting == false else { return [] }
        room?.isReconnecting = true
        return [.tell(.reconnecting)]
    }

    private mutating func reconnected() -> [Effect] {
        guard room?.isReconnecting == true else { return [] }
        room?.isReconnecting = false
        return [.tell(.reconnected)]
    }

    private mutating func leaveSession(isLost: Bool) -> [Effect] {
        guard room?.isInSession == true else { return [] }
        room?.isInSession = false
        return [.perform(.exit(isLost: isLost))]
    }

    private mutating func endRoom(_ ending: RoomEnding, _ error: ConfabError?) -> [Effect] {
        guard room != nil else { return [] }
        let exit = leaveSession(isLost: ending != .left)
        (room, sessionDeadline) = (nil, nil)
        return exit + [.tell(.ended(ending, error))]
    }

    // MARK: The connection

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        switch news {
        case .connected(let welcome, let start): return connected(welcome, start, now)
        case .reconnecting: return reconnecting()
        case .expired: return lost()
        case .answered(let id, let result): return answered(id, result, now)
        case .event(.room(let notice)): return receive(notice, now)
        case .event: return []
        case .ended(let error):
            mayAsk = true
            let caller = attempt?.caller
            attempt = nil
            let failed: [Effect] = caller.map { [.finish($0, .failure(error ?? .closed))] } ?? []
            return endRoom(error == nil ? .left : .connectionLost, error) + failed
        }
    }

    private mutating func connected(_ welcome: Welcome, _ start: ConnectionEvent.Start, _ now: Timestamp) -> [Effect] {
        let former = start == .restarted ? lost() : []
        (mayAsk, connection) = (true, welcome.connection)
        if start == .resumed { return attempt == nil && sessionDeadline == nil ? reconnected() : askIfPossible(now) }
        if attempt != nil { return former + askIfPossible(now) }
        return former + again(now)
    }

    private mutating func answered(
        _ id: UInt64, _ answer: Result<ServerMessage, ConfabError>, _ now: Timestamp
    ) -> [Effect] {
        guard let purpose = requests.answered(id, answer) else { return [] }
        switch purpose {
        case .quiet: return []
        case .leave(let caller):
            unsettled -= 1
            let finished: [Effect] = caller.map { [.finish($0, .success(nil))] } ?? []
            return finished + askIfPossible(now)
        case .verb(let caller, let verb):
            if answer.failureCode == nil { done(verb) }
            return [.finish(caller, answer.optional)]
        case .join(let number):
            unsettled -= 1
            guard number == attempt?.number else { return askIfPossible(now) }
            switch answer {
            case .success(.room(.joined(let joined))): return self.joined(joined)
            case .success(.room(.waiting)): return waiting()
            case .success(.room(.refused(let refusal))): return refused(ConfabError(refusal), now)
            case .success(let other): return refused(.unexpected(other, for: "room.join"), now)
            case .failure(let error): return refused(error, now)
            }
        }
    }

    private mutating func done(_ verb: RoomVerb) {
        switch verb {
        case .hand(let hand): room?.hasRaisedHand = hand.raised
        case .set(let change): if let word = change.options.password { password = word.isEmpty ? nil : word }
        default: break
        }
    }

    private mutating func receive(_ notice: RoomNotice, _ now: Timestamp) -> [Effect] {
        switch notice {
        case .joined(let joined): return self.joined(joined)
        case .waiting: return waiting()
        case .refused(let refusal): return refused(ConfabError(refusal), now)
        case .ended(let ended):
            let caller = attempt?.caller
            attempt = nil
            let failed: [Effect] = caller.map { [.finish($0, .failure(.roomEndedMeanwhile))] } ?? []
            return endRoom(RoomEnding(rawValue: ended.reason.rawValue), nil) + failed
        default: return room?.receive(notice) ?? []
        }
    }

    private mutating func waiting() -> [Effect] {
        guard attempt != nil else { return [] }
        attempt?.phase = .answered
        return [.tell(.waiting)]
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        let askAt = mayAsk && unsettled == 0 && attempt?.phase == .idle ? attempt?.askAt : nil
        return [askAt, sessionDeadline].compactMap(\.self).min()
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        if let deadline = sessionDeadline, deadline <= now {
            sessionDeadline = nil
            // The room cannot be used without its session: leave it and rejoin.
            if room != nil, attempt == nil { effects = sendLeave() + again(now) }
        }
        return effects + askIfPossible(now)
    }
}

extension ConfabError {
    fileprivate init(_ refusal: RoomNotice.Refused) { self.init(WireError(refusal.code, refusal.message)) }
    fileprivate static let inARoom = ConfabError(.alreadyJoined, "Leave the room that you are in first.")
    fileprivate static let notInRoom = ConfabError(.notJoined, "You are no longer in the room. Join it again.")
    fileprivate static let leftBeforeJoining = ConfabError(.left, "You left before you were let in.")
    fileprivate static let roomEndedMeanwhile = ConfabError(
        .left, "The room ended while you were joining it. Join it again.")
}
