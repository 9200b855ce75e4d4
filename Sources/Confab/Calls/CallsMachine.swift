import Wire

/// The state machine of calls. Each call has one record until it ends, and each end is reported once, no matter how
/// often the server sends it.
///
/// Invariant: each `join` is followed by exactly one `leave` of the same call.
struct CallsMachine: FeatureMachine, Equatable {
    /// An event to report to the application.
    enum Event: Equatable, Sendable {
        case incoming(Call)
        case changed(Call)
        case ended(CallEnding)
    }

    /// An action that `CallsMedia` carries out.
    enum Action: Equatable, Sendable {
        /// Join the session of an accepted call.
        case join(CallID, Admission)
        /// Leave the session of a call. `isLost` is true if the server has already discarded the session.
        case leave(CallID, isLost: Bool)
        /// Turn this device's video on or off.
        case sendVideo(CallID, Bool)
    }

    /// A request from the application.
    enum Command: Equatable, Sendable {
        case start(PersonID, video: Bool)
        case accept(CallID, video: Bool)
        case decline(CallID)
        case end(CallID)
        case update(CallID, video: Bool)
        case rejoin(CallID)
        case log(CallVerb.LogPage)
        case forget(CallID?)
        case seen(CallID)
    }

    /// Determines how the answer to a request is handled.
    enum Purpose: Equatable, Sendable {
        case start(FeatureCaller)
        case accept(FeatureCaller?, CallID)
        case finish(FeatureCaller)
        case rejoin(FeatureCaller?, CallID)
        case ask(FeatureCaller)
        case quiet
        /// A request for the log, to look up the outcome of calls that rang before the connection was replaced and no
        /// longer ring.
        case unrung(generation: Int)
    }

    /// An outgoing call that has been requested from the server, which has not replied yet.
    struct Placing: Equatable, Sendable {
        var person: PersonID
        var video: Bool
    }

    /// How long to wait for the server to report how a call ended. Counted from the end of the call's ringing time, or
    /// from an error that suggests that the call has ended.
    static let endingGrace = Duration.seconds(5)
    /// How long to ask for a call whose node of a cluster was lost, until another node continues it.
    static let rejoinTime = Duration.seconds(30)
    /// The pause between these requests, if the server does not ask for another one.
    static let rejoinPause = Duration.seconds(1)
    /// Session errors that occur because the call or the connection has ended. That end is reported separately.
    static let explainedLater: Set<ConfabError.Code> = [
        .connectionRestarted, .connectionLost, .connectFailed, .left, .notConnected, .notJoined, .tokenMatchEnded,
    ]
    /// The maximum number of ended calls to remember. The server repeats only ends of the last few minutes.
    static let maxRemembered = 500
    /// The maximum number of calls that ring at a time. The server allows far fewer.
    static let maxRinging = 50

    /// The calls that have not ended, in the order in which they began.
    var calls: [Call] = []
    var placing: Placing?
    var requests = Requests<Purpose>()
    private var over: [CallID] = []
    /// The ids of calls that ended without a record on this device, until the application confirms with `seen` that it
    /// has shown them.
    var missed: Set<CallID> = []
    private var unrung: Set<CallID> = []
    private var generation = 0

    func call(_ id: CallID) -> Call? { calls.first { $0.id == id } }
    /// Returns the call that this person placed; nil if it has ended. If the two people called each other, it may
    /// already have the id of the other person's call.
    func started(_ id: CallID, with person: PersonID) -> Call? {
        call(id) ?? calls.first { $0.isOutgoing && $0.person.id == person }
    }
    func isOver(_ id: CallID) -> Bool { over.contains(id) }

    // MARK: Commands

    mutating func handle(_ command: Command, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        switch command {
        case .start(let person, let video): return start(person, video, caller)
        case .accept(let id, let video): return accept(id, video, caller, now)
        case .decline(let id), .end(let id): return finish(id, caller, now)
        case .update(let id, let video): return update(id, video, caller)
        case .rejoin(let id): return send(.rejoin(.init(call: id)), for: .rejoin(caller, id), caller)
        case .log(let page): return send(.log(page), for: .ask(caller), caller)
        case .forget(let id): return send(.forget(.init(call: id)), for: .ask(caller), caller)
        case .seen(let id):
            missed.remove(id)
            return send(.seen(.init(call: id)), for: .ask(caller), caller)
        }
    }

    private mutating func send(
        _ verb: CallVerb, for purpose: Purpose, _ caller: FeatureCaller, repeats: Bool = true
    ) -> [Effect] {
        requests.effects(of: .call(verb), for: purpose, caller, repeats: repeats)
    }

    /// Sends a request for which no caller waits. Returns no effects if the request is held, or if too many are held.
    mutating func send(_ verb: CallVerb, for purpose: Purpose = .quiet) -> [Effect] {
        guard let request = try? requests.send(.call(verb), for: purpose) else { return [] }
        return [.send(request.id, request.message)]
    }

    private mutating func start(_ person: PersonID, _ video: Bool, _ caller: FeatureCaller) -> [Effect] {
        guard placing == nil else { return [.finish(caller, .failure(.alreadyPlacing))] }
        let effects = send(.start(.init(person: person, video: video)), for: .start(caller), caller, repeats: false)
        let isRefused = effects.contains { if case .finish = $0 { true } else { false } }
        placing = isRefused ? nil : Placing(person: person, video: video)
        return effects
    }

    private mutating func accept(_ id: CallID, _ video: Bool, _ caller: FeatureCaller, _ now: Timestamp) -> [Effect] {
        guard call(id)?.state == .incoming else { return [.finish(caller, .failure(.notRinging))] }
        let changed = change(id) { call in
            (call.state, call.sendsVideo, call.reportedVideo, call.ringDeadline) = (.joining, video, video, nil)
        }
        return changed + [.perform(.sendVideo(id, video))]
            + send(.accept(.init(call: id, video: video)), for: .accept(caller, id), caller, repeats: false)
    }

    /// Ends a call on this device immediately, whatever the server answers.
    private mutating func finish(_ id: CallID, _ caller: FeatureCaller, _ now: Timestamp) -> [Effect] {
        guard let call = call(id) else {
            if isOver(id) { return [.finish(caller, .success(nil))] }
            // The application may know the call only from a push notification. Remember its end, so that it does not
            // ring on this device later.
            remember(id)
            return [.finish(caller, .failure(.noSuchCall))]
        }
        let reference = CallVerb.CallReference(call: id)
        let (request, outcome): (CallVerb, CallOutcome) =
            switch call.state {
            case .incoming: (.decline(reference), .declined)
            case .ringing: (.cancel(reference), .cancelled)
            case .joining, .active: (.end(reference), .ended)
            }
        return send(request, for: .finish(caller), caller) + end(id, .init(outcome), now: now)
    }

    private mutating func update(_ id: CallID, _ video: Bool, _ caller: FeatureCaller) -> [Effect] {
        guard let call = call(id) else { return [.finish(caller, .failure(.noSuchCall))] }
        let changed = change(id) { $0.sendsVideo = video } + [.perform(.sendVideo(id, video))]
        // Before the call is accepted, the other person need not be notified.
        guard call.acceptedAt != nil, call.reportedVideo != video else {
            return changed + [.finish(caller, .success(nil))]
        }
        _ = change(id) { $0.reportedVideo = video }
        return changed + send(.update(.init(call: id, video: video)), for: .ask(caller), caller)
    }

    // MARK: The connection

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        switch news {
        case .connected(_, let start):
            return (start == .resumed ? [] : lost() + beginAnew()) + requests.released()
        case .reconnecting: return []
        case .expired:
            requests.hold()
            return lost()
        case .answered(let id, let result): return answered(id, result, now)
        case .event(let message):
            if case .call(let notice) = message { return receive(notice, now) } else { return [] }
        case .ended(let error):
            let outcome: CallEnding.Outcome = error == nil ? .ended : .connectionLost
            let ended = calls.flatMap { end($0.id, outcome, error: error, isLost: true, now: now) }
            let failed = requests.endHeld().flatMap { finished($0, .failure(error ?? .closed), now) }
            return ended + failed
        }
    }

    /// Leaves the sessions of all accepted calls, because the sessions were lost with the connection. The calls may
    /// continue.
    private mutating func lost() -> [Effect] {
        calls.flatMap { call -> [Effect] in
            guard call.acceptedAt != nil else { return [] }
            let left: [Effect] = call.session == nil ? [] : [.perform(.leave(call.id, isLost: true))]
            return left
                + change(call.id) { call in
                    (call.session, call.isPartnerConnected, call.endDeadline) = (nil, false, nil)
                    (call.isRejoining, call.lateOutcome) = (true, .failed)
                    (call.rejoinAt, call.rejoinUntil) = (nil, nil)
                }
        }
    }

    /// Requests the state of calls that this device placed or joined, but not of calls that only rang on it. Such a
    /// call may be active on another device by now, and the request would move it to this one. If it still rings, the
    /// server announces it again.
    private mutating func beginAnew() -> [Effect] {
        var effects: [Effect] = []
        for call in calls where call.state != .incoming {
            _ = change(call.id) { ($0.rejoinAt, $0.rejoinUntil) = (nil, nil) }
            let verb = CallVerb.rejoin(.init(call: call.id))
            let request = requests.sendFirst(.call(verb), for: .rejoin(nil, call.id))
            effects.append(.send(request.id, request.message))
        }
        unrung = Set(calls.filter { $0.state == .incoming }.map(\.id))
        generation += 1
        guard !unrung.isEmpty else { return effects }
        // Request the log, to see which of these calls no longer ring. The request is sent after `presence.appear`,
        // so its answer arrives after all `call.incoming` messages.
        let request = requests.sendFirst(.call(.log(.init())), for: .unrung(generation: generation))
        return effects + [.send(request.id, request.message)]
    }

    mutating func rings(_ id: CallID) { unrung.remove(id) }

    private mutating func endUnrung(_ logged: [LoggedCall], now: Timestamp) -> [Effect] {
        defer { unrung = [] }
        return calls.filter { unrung.contains($0.id) && $0.state == .incoming }.flatMap { call -> [Effect] in
            // If the log has no such entry, another device accepted the call: an accepted call has a duration in the
            // log, and a call in progress is not in the log yet.
            let entry = logged.first { $0.call == call.id && $0.duration == nil }
            return end(call.id, entry.map { .init($0.outcome) } ?? .answeredElsewhere, now: now)
        }
    }

    // MARK: Answers

    private mutating func answered(
        _ id: UInt64, _ answer: Result<ServerMessage, ConfabError>, _ now: Timestamp
    ) -> [Effect] {
        guard let purpose = requests.answered(id, answer) else { return [] }
        var effects: [Effect] = []
        if case .success(.call(let notice)) = answer {
            if case .rejoin(.some, let id) = purpose { adopt(id, notice) }
            effects = receive(notice, now)
        }
        return effects + finished(purpose, answer.optional, now)
    }

    private mutating func finished(_ purpose: Purpose, _ result: FeatureResult, _ now: Timestamp) -> [Effect] {
        switch purpose {
        case .quiet: return []
        case .ask(let caller): return [.finish(caller, result)]
        case .start(let caller):
            placing = nil
            return [.finish(caller, result)]
        case .finish(let caller):
            // These errors are no failure for the caller: the call has already ended, or the connection has, which
            // ends every call.
            let harmless: [ConfabError.Code] = [.notFound, .callState, .notConnected, .left]
            let isHarmless = result.failureCode.map(harmless.contains) ?? false
            return [.finish(caller, isHarmless ? .success(nil) : result)]
        case .accept(let caller, let id): return accepted(id, caller, result, now)
        case .rejoin(let caller, let id): return rejoined(id, caller, result, now)
        case .unrung(let generation):
            guard generation == self.generation, result.failureCode != .connectionRestarted else { return [] }
            guard case .success(.call(.log(let log))) = result else { return endUnrung([], now: now) }
            return endUnrung(log.calls, now: now)
        }
    }

    private mutating func accepted(
        _ id: CallID, _ caller: FeatureCaller?, _ result: FeatureResult, _ now: Timestamp
    ) -> [Effect] {
        let finish = { (result: FeatureResult) -> [Effect] in caller.map { [.finish($0, result)] } ?? [] }
        guard case .failure(let error) = result else { return finish(result) }
        switch error.code {
        // This is no failure for the caller: after the restart, `rejoin` requests the outcome from the server.
        case .connectionRestarted: return finish(.success(nil))
        // Wait for the end of the call, which the server is about to send with the outcome.
        case .callState, .notFound: return change(id) { $0.endDeadline = now + Self.endingGrace } + finish(result)
        default:
            return send(.end(.init(call: id))) + end(id, .failed, error: error, now: now) + finish(result)
        }
    }

    private mutating func rejoined(
        _ id: CallID, _ caller: FeatureCaller?, _ result: FeatureResult, _ now: Timestamp
    ) -> [Effect] {
        let finish: [Effect] = caller.map { [.finish($0, result)] } ?? []
        switch result {
        case .success(.call(.incoming)):
            // The server did not receive the acceptance. Send it again.
            guard let call = call(id), call.state == .joining,
                let request = try? requests.send(
                    .call(.accept(.init(call: id, video: call.sendsVideo))), for: .accept(nil, id), repeats: false)
            else { return finish }
            return [.send(request.id, request.message)] + finish
        case .success: return finish
        case .failure(let error):
            // Do nothing after another restart, because the request is sent again.
            if error.code == .connectionRestarted { return finish }
            if error.code == .clusterUnavailable, let call = call(id), now < call.rejoinUntil ?? now + Self.rejoinTime {
                let waits = change(id) { call in
                    call.rejoinAt = now + (error.retryAfter ?? Self.rejoinPause)
                    call.rejoinUntil = call.rejoinUntil ?? now + Self.rejoinTime
                }
                return waits + finish
            }
            if error.code == .callState {
                let changed = change(id) {
                    ($0.endDeadline, $0.lateOutcome) = (now + Self.endingGrace, .connectionLost)
                }
                return changed + finish
            }
            let isElsewhere = error.code == .elsewhere && error.node == nil
            return end(id, isElsewhere ? .answeredElsewhere : .connectionLost, error: error, now: now) + finish
        }
    }

    // MARK: Records

    /// Changes a call, and notifies the application of a visible change.
    mutating func change(_ id: CallID, _ body: (inout Call) -> Void) -> [Effect] {
        guard let index = calls.firstIndex(where: { $0.id == id }) else { return [] }
        let former = calls[index]
        body(&calls[index])
        return calls[index].isSeen(as: former) ? [] : [.tell(.changed(calls[index]))]
    }

    mutating func end(
        _ id: CallID, _ outcome: CallEnding.Outcome, error: ConfabError? = nil, isLost: Bool = false,
        duration: Duration? = nil, now: Timestamp
    ) -> [Effect] {
        guard let index = calls.firstIndex(where: { $0.id == id }) else { return [] }
        let call = calls.remove(at: index)
        remember(id)
        let left: [Effect] = call.session == nil ? [] : [.perform(.leave(id, isLost: isLost))]
        let ending = CallEnding(
            id: id, outcome: outcome, person: call.person, isOutgoing: call.isOutgoing,
            duration: duration ?? call.acceptedAt.map { now - $0 }, error: error)
        let alone = calls.count == 1 ? change(calls[0].id) { $0.isWaiting = false } : []
        return left + [.tell(.ended(ending))] + alone
    }

    mutating func remember(_ id: CallID) {
        over.append(id)
        if over.count > Self.maxRemembered { missed.remove(over.removeFirst()) }
    }

    mutating func forgetEnd(of id: CallID) { over.removeAll { $0 == id } }

    // MARK: Time

    var nextTimeout: Timestamp? {
        calls.flatMap { [$0.ringDeadline, $0.endDeadline, $0.rejoinAt] }.compactMap(\.self).min()
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] {
        calls.flatMap { call -> [Effect] in
            if let deadline = call.endDeadline, deadline <= now {
                // End the call on the server, so that the other person does not stay in it. With any other outcome,
                // the server no longer has the call.
                let request = call.lateOutcome == .failed ? send(.end(.init(call: call.id))) : []
                return request + end(call.id, call.lateOutcome, now: now)
            }
            if let due = call.rejoinAt, due <= now {
                return change(call.id) { $0.rejoinAt = nil }
                    + send(.rejoin(.init(call: call.id)), for: .rejoin(nil, call.id))
            }
            guard let deadline = call.ringDeadline, deadline <= now else { return [] }
            return end(call.id, call.isOutgoing ? .unanswered : .missed, now: now)
        }
    }
}

extension Call {
    /// Whether this and another record of the same call look the same to an application.
    fileprivate func isSeen(as other: Call) -> Bool {
        var (one, two) = (self, other)
        for path in [\Call.acceptedAt, \.ringDeadline, \.endDeadline, \.rejoinAt, \.rejoinUntil] {
            (one[keyPath: path], two[keyPath: path]) = (nil, nil)
        }
        (one.session, two.session, one.reportedVideo, two.reportedVideo) = (nil, nil, nil, nil)
        // Ignore `isRejoining`, which is reported with `isPartnerConnected`, and `lateOutcome`, which is reported when
        // the call ends.
        (one.isRejoining, two.isRejoining) = (false, false)
        (one.lateOutcome, two.lateOutcome) = (.failed, .failed)
        return one == two
    }
}

extension ConfabError {
    static let alreadyPlacing = ConfabError(
        .callState, "You are already placing a call. Wait until it rings, or end it.", isRetryable: true)
    static let notRinging = ConfabError(.callState, "This call no longer rings.")
    static let noSuchCall = ConfabError(.notFound, "There is no such call. It may have ended.")
}
