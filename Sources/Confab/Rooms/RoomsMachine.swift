import Wire

/// The rules of joining a room, and of joining it again after the server has lost this connection.
///
/// Invariants: at most one room or one attempt to join. Each `enter` is followed by exactly one `exit` before the next.
struct RoomsMachine: WayMachine, Sendable {
    enum News: Equatable, Sendable {
        case joined(RoomName)
        /// A host must let this person in.
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

    enum Deed: Equatable, Sendable {
        /// Join the session of the room. The stays in sessions are counted, because what happens in one may be told late.
        case enter(Admission, stay: Int)
        /// Leave it. `isLost`: the server has already ended it.
        case exit(isLost: Bool)
    }

    enum Wish: Equatable, Sendable {
        case join(RoomVerb.Join)
        case leave
        /// A request that only works in the room.
        case verb(RoomVerb)
    }

    enum Purpose: Equatable, Sendable {
        case join(attempt: Int)
        case leave(WayCaller?)
        case verb(WayCaller, RoomVerb)
        case quiet
    }

    /// `idle` → `asking` → `answered`; all → `idle`, to ask again.
    enum Phase: Equatable, Sendable {
        case idle
        case asking
        /// In the lobby, or joining the session.
        case answered
    }

    struct Attempt: Equatable, Sendable {
        var number: Int
        var request: RoomVerb.Join
        /// Nil if the room is joined again.
        var caller: WayCaller?
        var phase = Phase.idle
        var backoff = WayBackoff(longest: .seconds(5))
        /// When to give up joining again; nil if the first refusal counts.
        var until: Timestamp?
        /// When to ask, while `idle`; nil when the connection is back.
        var askAt: Timestamp?
    }

    /// How long to try to join again, if the room refuses it for a reason that may pass.
    private static let rejoinTime = Duration.seconds(120)
    /// How long a person who is not host waits before joining again. After a restart of the server the first person becomes
    /// host, which should be who was host before.
    private static let guestsPause = Duration.milliseconds(1000)
    /// How long to wait for `room.ended` after the session ended, before joining again.
    private static let sessionPause = Duration.milliseconds(1000)
    /// Refusals that may pass by themselves.
    private static let passing: Set<ConfabError.Code> = [
        .roomFull, .roomLocked, .roomNotFound, .alreadyJoined, .rateLimited, .mediaUnavailable,
    ]

    var random: any RandomNumberGenerator & Sendable
    var room: RoomState?
    private var attempt: Attempt?
    private var attempts = 0
    private var password: String?
    /// The application's token, which also joins the room again.
    private var token: String?
    /// Whether requests are sent. Not between the loss of a connection and the next. Without a connection that follows by
    /// itself, the client line answers each request with the reason.
    private var mayAsk = true
    private var connection: ConnectionID?
    /// The number of the most recent stay.
    private var stay = 0
    private var requests = Requests<Purpose>()
    /// How many requests to join or leave have no answer. A new attempt waits for them, so that each has one answer.
    private var unsettled = 0
    /// When to look for another place, because the session of this one ended.
    private var sessionDeadline: Timestamp?

    init(random: any RandomNumberGenerator & Sendable) { self.random = random }

    // MARK: Wishes

    mutating func handle(_ wish: Wish, from caller: WayCaller, now: Timestamp) -> [Effect] {
        switch wish {
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

    /// Nobody waits for the room any longer.
    mutating func cancelled(_ caller: WayCaller, now: Timestamp) -> [Effect] {
        guard attempt?.caller == caller else { return [] }
        attempt = nil
        return endRoom(.left, nil) + sendLeave()
    }

    private mutating func leave(_ caller: WayCaller) -> [Effect] {
        let wasWaiting = attempt
        guard room != nil || wasWaiting != nil else { return [.finish(caller, .success(nil))] }
        attempt = nil
        let failed: [Effect] = wasWaiting?.caller.map { [.finish($0, .failure(.leftBeforeJoining))] } ?? []
        return endRoom(.left, nil) + failed + sendLeave(caller)
    }

    private mutating func sendLeave(_ caller: WayCaller? = nil) -> [Effect] {
        unsettled += 1
        return send(.leave, for: .leave(caller))
    }

    private mutating func send(_ verb: RoomVerb, for purpose: Purpose) -> [Effect] {
        let request = requests.sendFirst(.room(verb), for: purpose)
        return [.send(request.id, request.message)]
    }

    // MARK: Joining

    private mutating func begin(_ request: RoomVerb.Join, _ caller: WayCaller?, until: Timestamp?, askAt: Timestamp?) {
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
        stay += 1
        sessionDeadline = nil
        effects += exit + [.perform(.enter(joined.admission, stay: stay))]
        guard room?.hasRaisedHand == true else { return effects }
        return effects + send(.hand(.init(raised: true)), for: .quiet)
    }

    /// Whether what is told about a stay is about the present one.
    private func isCurrent(_ number: Int) -> Bool { number == stay && room?.isInSession == true }

    /// The session of the room can be used.
    mutating func sessionJoined(stay number: Int) -> [Effect] {
        guard isCurrent(number), let joined = attempt, let room else { return [] }
        attempt = nil
        guard let caller = joined.caller else { return reconnected() }
        self.room?.isReconnecting = false
        return [.tell(.joined(room.name)), .finish(caller, .success(nil))]
    }

    /// The session of the room could not be joined: without it, a place in the room is of no use.
    mutating func sessionFailed(_ error: ConfabError, stay number: Int, now: Timestamp) -> [Effect] {
        guard isCurrent(number) else { return [] }
        let exit = leaveSession(isLost: true)
        guard attempt != nil else { return exit + again(now) }
        // With the connection, the place is lost as well.
        let left = error.code == .connectionRestarted ? [] : sendLeave()
        return exit + left + refused(error, passes: true, now)
    }

    /// The session ended. Joins again, unless it ended because this person is no longer in the room: then `room.ended` follows.
    mutating func sessionLost(stay number: Int, now: Timestamp) -> [Effect] {
        guard isCurrent(number), attempt == nil else { return [] }
        sessionDeadline = now + Self.sessionPause
        return leaveSession(isLost: true) + reconnecting()
    }

    private mutating func refused(_ error: ConfabError, passes: Bool? = nil, _ now: Timestamp) -> [Effect] {
        guard var refused = attempt else { return [] }
        if error.code == .connectionRestarted {
            // Lost with the connection. It is sent again when there is another one, of which this machine may have heard.
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

    // MARK: Joining again

    /// The server no longer keeps this connection, and may have lost the room.
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

    mutating func handle(_ news: LineNews, now: Timestamp) -> [Effect] {
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

    private mutating func connected(_ welcome: Welcome, _ start: LineEvent.Start, _ now: Timestamp) -> [Effect] {
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
            // This place does not work: give it up for another one.
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
