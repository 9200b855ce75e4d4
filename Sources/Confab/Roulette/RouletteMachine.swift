import Wire

/// The state machine of the roulette. It requests partners from the server, and keeps at most one match: the one that
/// the server announced last. The search survives a restart of the connection.
///
/// Invariant: each `begin` is followed by exactly one `end` of the same match, before the next `begin`.
struct RouletteMachine: FeatureMachine, Equatable {
    /// An event to report to the application.
    enum Event: Equatable, Sendable {
        case waiting(retryAfter: Duration?)
        case matched(RouletteNotice.Matched)
        case partner(PartnerState)
        case message(text: String, mine: Bool)
        case typing(Bool)
        case noStream
        case ended(MatchID, MatchEnding)
        case contactAsked(MatchID)
        case warned(RouletteNotice.Warning)
        case blur(BlurredVideo, Bool)
        case recovered
        case failed(ConfabError)
    }

    /// An action that `RouletteMedia` carries out.
    enum Action: Equatable, Sendable {
        /// Join the sessions of a match.
        case begin(RouletteNotice.Matched)
        /// Leave the sessions. `isLost` is true if the server has already discarded them.
        case end(MatchID, isLost: Bool)
        /// Send a signal in the partner's session.
        case signal(type: String, data: String)
    }

    /// A request from the application.
    enum Command: Equatable, Sendable {
        case start(RouletteVerb.Start)
        case next
        case stop
        /// A nil match means the current or most recent one.
        case report(String, MatchID?)
        case block(MatchID?)
        case count
        case typing(Bool)
    }

    typealias State = Roulette.State

    /// Determines how the answer to a request is handled.
    private enum Purpose: Equatable, Sendable {
        case start(FeatureCaller)
        case leave(FeatureCaller, stops: Bool)
        case ask(FeatureCaller)
        case recover

        /// Whether the request starts a search.
        var isStart: Bool {
            switch self {
            case .start, .recover: true
            case .leave, .ask: false
            }
        }
    }

    /// The current match.
    private struct Match: Equatable, Sendable {
        var details: RouletteNotice.Matched
        var streamDeadline: Timestamp?
        var typing = TypingClock()
    }

    /// How long to wait for the partner's media before reporting `noStream`, if the server sets no time
    /// (`protocol/README.md` §5).
    private static let streamTimeout = Duration.seconds(10)

    private(set) var state = State.idle
    /// The requested search; nil if none was started, or if it has ended.
    private var search: RouletteVerb.Start?
    private var match: Match?
    /// The id of the current or most recent match, which can be reported even after its end; nil before the first.
    private(set) var lastMatch: MatchID?
    private var requests = Requests<Purpose>()
    private var isConnected = false
    private var limits: Welcome.Bounds?

    /// Whether this device is searching or in a chat, or will be searching as soon as it is connected.
    var isBusy: Bool { search != nil || state != .idle }
    /// The current match.
    var currentMatch: RouletteNotice.Matched? { match?.details }

    // MARK: Commands

    mutating func handle(_ command: Command, from caller: FeatureCaller, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        switch command {
        case .start(let search):
            self.search = search
            send(.start(search), for: .start(caller), &effects)
        case .next:
            leave(.next(.init(match: match?.details.match)), caller, .next, match?.details.match, &effects)
        case .stop:
            search = nil
            leave(.stop, caller, .stopped, match?.details.match, &effects)
        case .report(let reason, let named):
            send(.report(.init(reason: reason, match: named ?? lastMatch)), for: .ask(caller), &effects)
        case .block(let named):
            let blocked = named ?? lastMatch
            leave(.block(.init(match: blocked)), caller, .blocked, blocked, &effects)
        case .count: send(.count, for: .ask(caller), &effects)
        case .typing(let isTyping):
            if match?.typing.mayTell(isTyping, now: now) == true { tellTyping(isTyping, &effects) }
            effects.append(.finish(caller, .success(nil)))
        }
        return effects
    }

    /// Resets the typing state, because a line of the chat was sent.
    mutating func said() { match?.typing.finished() }

    private func tellTyping(_ isTyping: Bool, _ effects: inout [Effect]) {
        guard match?.details.textChat == true else { return }
        effects.append(.perform(.signal(type: SignalType.typing, data: isTyping ? "1" : "0")))
    }

    private mutating func send(_ verb: RouletteVerb, for purpose: Purpose, _ effects: inout [Effect]) {
        // Send requests at once instead of holding them, so that none fails because too many are held. After a
        // restart, the search starts again anyway.
        let request = requests.sendFirst(.roulette(verb), for: purpose)
        effects.append(.send(request.id, request.message))
    }

    /// Sends a request that leaves a match. Without a connection to the server, ends the match immediately if it is
    /// the current one, because relayed media would continue without the server.
    private mutating func leave(
        _ verb: RouletteVerb, _ caller: FeatureCaller, _ ending: MatchEnding, _ left: MatchID?,
        _ effects: inout [Effect]
    ) {
        if !isConnected, left == match?.details.match { endMatch(ending, &effects) }
        send(verb, for: .leave(caller, stops: ending == .stopped), &effects)
    }

    // MARK: The connection

    mutating func handle(_ news: FeatureInput, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        switch news {
        case .connected(let welcome, let start):
            if case .restarted = start { lost(&effects) }
            (isConnected, limits) = (true, welcome.limits)
            // A request to start that is not answered yet moves to the new connection itself.
            if case .restarted = start, let search, !requests.contains(where: \.isStart) {
                send(.start(search), for: .recover, &effects)
            }
        case .reconnecting: isConnected = false
        case .expired: lost(&effects)
        case .answered(let id, let result): answered(id, result, now, &effects)
        case .event(let message): receive(message, now, &effects)
        case .ended(let error):
            let wasSearching = search != nil
            (isConnected, search) = (false, nil)
            lost(&effects)
            if let error, wasSearching { effects.append(.tell(.failed(error))) }
        }
        return effects
    }

    /// Ends the match, because the server no longer keeps this connection.
    private mutating func lost(_ effects: inout [Effect]) {
        isConnected = false
        endMatch(.connectionLost, &effects)
        if search == nil { state = .idle }
    }

    private mutating func answered(
        _ id: UInt64, _ answer: Result<ServerMessage, ConfabError>, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        guard let purpose = requests.answered(id, answer) else { return }
        let result = answer.optional
        if case .success(let message) = answer { receive(message, now, &effects) }
        let isRestart = result.failureCode == .connectionRestarted
        switch purpose {
        case .ask(let caller): effects.append(.finish(caller, result))
        case .start(let caller):
            // Keep the search after a restart, because it starts again automatically.
            if result.failureCode != nil, !isRestart, state == .idle { search = nil }
            effects.append(.finish(caller, isRestart ? .success(nil) : result))
        case .leave(let caller, let stops):
            if stops, result.failureCode == nil || isRestart || result.failureCode == .notConnected {
                endMatch(.stopped, &effects)
                if search == nil { state = .idle }
            }
            let isHarmless = isRestart || (stops && result.failureCode == .notConnected)
            effects.append(.finish(caller, isHarmless ? .success(nil) : result))
        case .recover:
            switch result {
            case .success: if search != nil { effects.append(.tell(.recovered)) }
            case .failure(let error): if !isRestart, search != nil { searchEnded(error, &effects) }
            }
        }
    }

    private mutating func searchEnded(_ error: ConfabError, _ effects: inout [Effect]) {
        search = nil
        endMatch(.stopped, &effects)
        state = .idle
        effects.append(.tell(.failed(error)))
    }

    private mutating func receive(_ message: ServerMessage, _ now: Timestamp, _ effects: inout [Effect]) {
        switch message {
        case .roulette(.waiting(let waiting)):
            guard search != nil else { return }
            // The end of the match is usually reported earlier. If not, the match ends now.
            endMatch(.partnerLeft, &effects)
            state = .waiting
            effects.append(.tell(.waiting(retryAfter: waiting.retryAfter)))
        case .roulette(.matched(let matched)): begin(matched, now, &effects)
        case .roulette(.partner(let partner)):
            if partner.match == match?.details.match { effects.append(.tell(.partner(partner.state))) }
        case .roulette(.ended(let ended)):
            if ended.reason == .banned { search = nil }
            if ended.match == match?.details.match { endMatch(MatchEnding(ended.reason), &effects) }
        case .roulette(.warning(let warning)):
            // The chat ends, and the application decides whether to search again.
            if warning.ends, warning.match == match?.details.match { search = nil }
            effects.append(.tell(.warned(warning)))
        case .roulette(.blur(let blur)):
            if blur.match == match?.details.match { effects.append(.tell(.blur(blur.whose, blur.blurred))) }
        case .contact(.asked(let meeting)):
            if let asked = meeting.match, asked == lastMatch { effects.append(.tell(.contactAsked(asked))) }
        case .error(let failure):
            // End the search if another tab or a call has replaced this device in the roulette.
            if failure.re == nil, failure.error.code == .elsewhere, failure.error.at == nil, search != nil {
                searchEnded(ConfabError(failure.error), &effects)
            }
        default: break
        }
    }

    // MARK: Matches

    private mutating func begin(
        _ matched: RouletteNotice.Matched, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        // Ignore a match if the search has been stopped in the meantime. The server is about to end that match.
        guard search != nil else { return }
        endMatch(.partnerLeft, &effects)
        let pause = limits?.streamTimeout ?? Self.streamTimeout
        match = Match(details: matched, streamDeadline: matched.mode == .video ? now + pause : nil)
        (lastMatch, state) = (matched.match, .matched)
        effects += [.tell(.matched(matched)), .perform(.begin(matched))]
    }

    private mutating func endMatch(_ ending: MatchEnding, _ effects: inout [Effect]) {
        guard let match = match?.details.match else { return }
        self.match = nil
        state = ending.isFinal ? .idle : .waiting
        effects += [.perform(.end(match, isLost: ending == .connectionLost)), .tell(.ended(match, ending))]
    }

    /// Cancels the deadline for media, because the partner's media has arrived.
    mutating func streamArrived() { match?.streamDeadline = nil }

    /// Reports a media error of the current match. Ignores errors that are normal when a match ends.
    mutating func mediaFailed(_ error: ConfabError, in failed: MatchID) -> [Effect] {
        let expected: [ConfabError.Code] = [
            .tokenMatchEnded, .connectionRestarted, .notJoined, .left, .notConnected,
        ]
        return failed == match?.details.match && !expected.contains(error.code) ? [.tell(.failed(error))] : []
    }

    /// Handles a signal in the session of the current match.
    mutating func heard(_ type: String, _ data: String, mine: Bool, now: Timestamp) -> [Effect] {
        guard match != nil else { return [] }
        switch type {
        case SignalType.chat:
            let stopped = !mine && match?.typing.heard(false, now: now) == true
            return (stopped ? [.tell(.typing(false))] : []) + [.tell(.message(text: data, mine: mine))]
        case SignalType.typing:
            let isTyping = data == "1"
            return !mine && match?.typing.heard(isTyping, now: now) == true ? [.tell(.typing(isTyping))] : []
        default: return []
        }
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        [match?.streamDeadline, match?.typing.deadline].compactMap(\.self).min()
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        if let deadline = match?.streamDeadline, deadline <= now {
            match?.streamDeadline = nil
            effects.append(.tell(.noStream))
        }
        if let deadline = match?.typing.deadline, deadline <= now, match?.typing.heard(false, now: now) == true {
            effects.append(.tell(.typing(false)))
        }
        return effects
    }
}

/// The types of the signals in a match (`protocol/README.md` §5).
enum SignalType {
    static let chat = "chat"
    static let typing = "typing"
}

/// Why a match ended.
public enum MatchEnding: String, Hashable, Sendable, CaseIterable {
    /// This person requested the next partner.
    case next
    /// This person stopped the search or accepted a call, or the search could not continue.
    case stopped
    /// This person blocked the partner.
    case blocked
    /// The partner requested the next person, or blocked this person.
    case partnerNext
    /// The partner stopped, did not reconnect in time, or was banned.
    case partnerLeft
    /// This person was banned.
    case banned
    /// The connection to the server was lost for too long. The search continues when the client has reconnected.
    case connectionLost

    init(_ reason: EndReason) {
        switch reason {
        case .next: self = .next
        case .stopped: self = .stopped
        case .blocked: self = .blocked
        case .partnerNext: self = .partnerNext
        case .partnerLeft: self = .partnerLeft
        case .banned: self = .banned
        }
    }

    /// Whether the search has ended too.
    public var isFinal: Bool { self == .stopped || self == .banned }
}
