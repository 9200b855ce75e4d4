import Foundation
import Wire

/// The state machine of a ``ConfabClient``: the state that the application sees, new signal clients after rejections,
/// credentials, and which sessions a restart has ended. A ``SignalClient`` does the rest.
///
/// Invariant: the state changes only along the transitions that ``ConfabClient/State`` lists.
struct ClientMachine: Sendable {
    /// A socket of one of the client's signal clients, each of which numbers its sockets from 1.
    struct Socket: Hashable, Sendable {
        let line: Int
        let socket: SignalClient.Socket
    }

    /// An event that the state machine handles.
    enum Input: Sendable {
        case connect
        case opened(Socket)
        case received([UInt8], on: Socket)
        case heard(Socket)
        case closed(Socket, CloseCode)
        case token(Result<String, ConfabError>, for: Socket)
        case request(SignalClient.RequestID, ClientMessage)
        case networkChanged(isAvailable: Bool)
        case leave
    }

    /// An effect that the state machine's owner carries out.
    enum Effect: Sendable {
        case askToken(Socket)
        case open(Socket)
        case send([UInt8], on: Socket)
        case close(Socket, CloseCode)
        case saveIdentity(String)
        case answered(SignalClient.RequestID, Result<ServerMessage, ConfabError>)
        case state(ConfabClient.State)
        case notice(ConfabClient.Notice)
        case line(ConnectionEvent)
        case log(LogEntry)
    }

    private(set) var state = ConfabClient.State.idle
    /// The identity's secret; nil until the server has created one, and with a user token.
    var identity: String?
    private let usesToken: Bool
    private let hello: Hello
    private let options: SignalClient.Options
    private var random: any RandomNumberGenerator & Sendable
    private(set) var line: SignalClient
    private var lineNumber = 0
    private var attempt = 0
    private var droppedAt: Timestamp?
    private var hasNetwork = true
    /// Whether the server has welcomed the current signal client. If so, a token that is rejected now must have
    /// expired since then, and the client fetches a new one automatically.
    private var wasWelcomed = false
    /// The socket to open when the application has returned a token; nil if no token is awaited.
    private var awaitingToken: Socket?
    /// Why the most recent token could not be fetched; nil if it could.
    private var credentialError: ConfabError?
    /// Whether this device now belongs to another person. A new signal client then starts after the server's next
    /// close.
    private var isAnotherPerson = false
    /// The ids of the sessions that this client is in.
    private(set) var sessions: Set<SessionID> = []

    init(
        hello: Hello, usesToken: Bool, options: SignalClient.Options, random: any RandomNumberGenerator & Sendable
    ) {
        (self.hello, self.usesToken, self.options, self.random) = (hello, usesToken, options, random)
        line = SignalClient(hello: hello, options: options, random: random)
    }

    /// The current signal client's most recent welcome; nil before the first.
    var welcome: Welcome? { line.welcome }
    var nextTimeout: Timestamp? { line.nextTimeout }

    mutating func handle(_ input: Input, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .connect: connect(now, &effects)
        case .opened(let socket): feed(socket, .opened(socket.socket), now, &effects)
        case .received(let bytes, let socket): feed(socket, .received(bytes, on: socket.socket), now, &effects)
        case .heard(let socket): feed(socket, .heard(socket.socket), now, &effects)
        case .closed(let socket, let code): closed(socket, code, now, &effects)
        case .token(let token, let socket): received(token, for: socket, now, &effects)
        case .request(let id, let message): request(id, message, now, &effects)
        case .networkChanged(let isAvailable):
            hasNetwork = isAvailable
            if isAvailable { translate(line.handle(.networkChanged, now: now), now, &effects) }
        case .leave: leave(now, &effects)
        }
        return effects
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        translate(line.handleTimeout(now: now), now, &effects)
        return effects
    }

    // MARK: Inputs

    private mutating func connect(_ now: Timestamp, _ effects: inout [Effect]) {
        switch state {
        case .idle: start(now, &effects)
        case .offline: if line.ending != nil { start(now, &effects) } else { retry(now, &effects) }
        case .connecting, .online, .reconnecting, .closed: break
        }
    }

    /// Starts the next attempt to connect now, instead of at the end of the pause.
    private mutating func retry(_ now: Timestamp, _ effects: inout [Effect]) {
        translate(line.handle(.networkChanged, now: now), now, &effects)
    }

    private mutating func start(_ now: Timestamp, _ effects: inout [Effect]) {
        lineNumber += 1
        (attempt, droppedAt, wasWelcomed, credentialError) = (0, nil, false, nil)
        var hello = hello
        if !usesToken { hello.identity = identity }
        // Each signal client gets its own generator, so that no two have the same delays.
        let seed = random.next()
        line = SignalClient(hello: hello, options: options, random: SplitMix(seed: seed))
        translate(line.handle(.connect, now: now), now, &effects)
    }

    private mutating func feed(
        _ socket: Socket, _ event: SignalClient.Event, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        guard socket.line == lineNumber else { return }
        translate(line.handle(event, now: now), now, &effects)
        // The signal client has no effect that reports a failed attempt, so report here when the next attempt begins.
        if line.nextAttempt != nil { dropped(&effects) }
    }

    private mutating func closed(
        _ socket: Socket, _ code: CloseCode, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        let isRestart = code == .serviceRestart || code == .goingAway
        if socket.line == lineNumber, isRestart, line.ending == nil { effects.append(.notice(.draining)) }
        feed(socket, .closed(socket.socket, code), now, &effects)
    }

    private mutating func received(
        _ token: Result<String, ConfabError>, for socket: Socket, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        // Ignore the token if the signal client abandoned the socket while the application fetched the token.
        guard socket == awaitingToken else { return }
        awaitingToken = nil
        switch token {
        case .success(let token):
            (line.hello.token, credentialError) = (token, nil)
            effects.append(.open(socket))
        case .failure(let error):
            credentialError = error
            effects.append(.log(LogEntry(.error, "The application returned no user token: \(error.message)")))
            feed(socket, .closed(socket.socket, .abnormal), now, &effects)
        }
    }

    private mutating func request(
        _ id: SignalClient.RequestID, _ message: ClientMessage, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        if case .session(.leave(let verb)) = message { sessions.remove(verb.session) }
        translate(line.handle(.request(id, message), now: now), now, &effects)
    }

    private mutating func leave(_ now: Timestamp, _ effects: inout [Effect]) {
        if case .closed = state { return }
        if line.ending == nil { translate(line.handle(.leave, now: now), now, &effects) } else { close(nil, &effects) }
    }

    // MARK: Effects of the signal client

    private mutating func translate(_ lineEffects: [SignalClient.Effect], _ now: Timestamp, _ effects: inout [Effect]) {
        for effect in lineEffects { translate(effect, now, &effects) }
    }

    private mutating func translate(_ effect: SignalClient.Effect, _ now: Timestamp, _ effects: inout [Effect]) {
        switch effect {
        case .open(let socket): open(Socket(line: lineNumber, socket: socket), now, &effects)
        case .send(let bytes, let socket):
            effects.append(.send(bytes, on: Socket(line: lineNumber, socket: socket)))
        case .close(let socket, let code):
            awaitingToken = nil
            effects.append(.close(Socket(line: lineNumber, socket: socket), code))
            dropped(&effects)
        case .connected(let welcome, let start): connected(welcome, start, &effects)
        case .reconnecting:
            droppedAt = now
            attempt = 0
            effects.append(.line(.reconnecting))
            dropped(&effects)
        case .expired:
            expired(&effects)
        case .answered(let id, let message): answered(id, message, &effects)
        case .failed(let id, let error):
            let isLost = isAnotherPerson && line.ending?.code == .replaced
            effects.append(.answered(id, .failure(isLost ? .connectionRestarted : ConfabError(error))))
        case .event(let message):
            note(message)
            effects.append(.line(.message(message)))
        case .unreadable(let message):
            effects.append(.log(LogEntry(.warning, "A message could not be decoded: \(message.error.message)")))
        case .ended(let ending): ended(ending, now, &effects)
        }
    }

    private mutating func open(_ socket: Socket, _ now: Timestamp, _ effects: inout [Effect]) {
        // After the client was closed, a socket only notifies the server that the client has left. It uses the
        // connection's existing token.
        if case .closed = state { return effects.append(.open(socket)) }
        attempt += 1
        if let droppedAt {
            enter(.reconnecting(since: droppedAt.date, attempt: attempt, nextTry: nil), &effects)
        } else {
            enter(.connecting(attempt: attempt), &effects)
        }
        if usesToken { awaitingToken = socket }
        effects.append(usesToken ? .askToken(socket) : .open(socket))
    }

    /// Reports when the next attempt to resume begins. If the previous connection can no longer be resumed, enters
    /// `offline` until the next attempt. While the client connects for the first time, the state does not change.
    private mutating func dropped(_ effects: inout [Effect]) {
        if let droppedAt {
            let nextTry = line.nextAttempt.map(\.date)
            enter(.reconnecting(since: droppedAt.date, attempt: attempt, nextTry: nextTry), &effects)
        } else if case .connecting = state, wasWelcomed, line.nextAttempt != nil {
            // Enter `offline` instead of staying in `connecting`, because a `connect` call ends the pause before the
            // next attempt only in the state `offline`.
            offline(&effects)
        }
    }

    private mutating func connected(_ welcome: Welcome, _ start: SignalClient.Start, _ effects: inout [Effect]) {
        if let secret = welcome.identity, !usesToken {
            identity = secret
            effects.append(.saveIdentity(secret))
            effects.append(.notice(.identityChanged))
        }
        (attempt, droppedAt, credentialError) = (0, nil, nil)
        let isReplacement = start == .first && wasLost
        if case .restarted = start { loseSessions(&effects) }
        enter(.online, &effects)
        if start == .resumed { effects.append(.notice(.resumed)) }
        if case .restarted = start { effects.append(.notice(.restarted(lost: takeLost()))) }
        if isReplacement { effects.append(.notice(.restarted(lost: takeLost()))) }
        (wasWelcomed, wasLost, isAnotherPerson) = (true, false, false)
        effects.append(.line(.connected(welcome, isReplacement ? .restarted : Self.start(start))))
    }

    private static func start(_ start: SignalClient.Start) -> ConnectionEvent.Start {
        switch start {
        case .first: .first
        case .resumed: .resumed
        case .restarted: .restarted
        }
    }

    private mutating func answered(
        _ id: SignalClient.RequestID, _ message: ServerMessage, _ effects: inout [Effect]
    ) {
        note(message)
        if case .session(.joined(let joined)) = message { sessions.insert(joined.session) }
        if case .error(let failure) = message {
            effects.append(.answered(id, .failure(ConfabError(failure.error))))
        } else {
            effects.append(.answered(id, .success(message)))
        }
    }

    /// Updates the sessions and the identity from a message. The feature that sent the request does not do this,
    /// because the server may close the connection before the feature handles the answer.
    private mutating func note(_ message: ServerMessage) {
        switch message {
        case .session(.left(let left)): sessions.remove(left.session)
        case .presence(.linked), .presence(.unlinked): isAnotherPerson = true
        case .presence(.deleted):
            isAnotherPerson = true
            // Forget the identity. The server rejects the secret of a deleted person, and creates a new identity for
            // a hello without one.
            if !usesToken { (identity, line.hello.identity) = (nil, nil) }
        default: break
        }
    }

    // MARK: Losing and ending

    /// The ids of sessions that a restart has ended. They are reported with the next welcome.
    private var lost: [SessionID] = []
    /// Whether a signal client that was connected has ended, so that the first welcome of the next one is a restart.
    private var wasLost = false

    private mutating func takeLost() -> [SessionID] {
        defer { lost = [] }
        return lost
    }

    private mutating func loseSessions(_ effects: inout [Effect]) {
        lost += sessions.sorted { $0.text < $1.text }
        sessions = []
    }

    private mutating func expired(_ effects: inout [Effect]) {
        loseSessions(&effects)
        if line.nextAttempt != nil {
            offline(&effects)
        } else {
            // An attempt is in progress. Its welcome changes the state from `connecting` to `online`.
            droppedAt = nil
            enter(.connecting(attempt: attempt), &effects)
        }
        effects.append(.line(.expired))
    }

    private mutating func offline(_ effects: inout [Effect]) {
        droppedAt = nil
        enter(.offline(hasNetwork ? .serverUnreachable : .noNetwork), &effects)
    }

    private mutating func ended(_ ending: SignalClient.Ending, _ now: Timestamp, _ effects: inout [Effect]) {
        let hadConnection = wasWelcomed
        loseSessions(&effects)
        droppedAt = nil
        guard let error = ending.error else { return close(nil, &effects) }
        wasLost = wasLost || hadConnection
        // Start again, because the application may have a newer token by now.
        if error.code.isToken, usesToken, hadConnection {
            effects.append(.line(.ended(ConfabError(error))))
            return start(now, &effects)
        }
        if isAnotherPerson, ending.code == .replaced {
            effects.append(.line(.expired))
            return start(now, &effects)
        }
        switch ending.code {
        case .replaced: return close(ConfabError(error), &effects)
        case .malformed where error.code == .versionUnsupported: enter(.offline(.tooOld), &effects)
        default:
            if let credentialError {
                enter(.offline(.refused(credentialError)), &effects)
            } else if error.code == .connectFailed || error.code == .connectionLost {
                offline(&effects)
            } else {
                enter(.offline(.refused(ConfabError(error))), &effects)
            }
        }
        effects.append(.line(.ended(credentialError ?? ConfabError(error))))
    }

    private mutating func close(_ error: ConfabError?, _ effects: inout [Effect]) {
        enter(.closed(error), &effects)
        effects.append(.line(.ended(error)))
    }

    private mutating func enter(_ next: ConfabClient.State, _ effects: inout [Effect]) {
        guard next != state else { return }
        assert(state.canBecome(next), "\(state) cannot become \(next)")
        state = next
        effects.append(.state(next))
        effects.append(.log(LogEntry(.info, "The connection is \(next.word).")))
    }
}

extension ConfabClient.State {
    /// Whether the documentation of this type lists the transition.
    func canBecome(_ next: Self) -> Bool {
        switch (self, next) {
        case (.closed, _): false
        case (_, .closed), (.idle, .connecting), (.offline, .connecting), (.connecting, .connecting): true
        case (.connecting, .online), (.connecting, .offline), (.offline, .offline): true
        case (.online, .reconnecting), (.online, .offline), (.online, .connecting): true
        case (.reconnecting, .reconnecting), (.reconnecting, .online): true
        case (.reconnecting, .offline), (.reconnecting, .connecting): true
        default: false
        }
    }

    /// The name of the state for the log.
    var word: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .online: "online"
        case .reconnecting: "reconnecting"
        case .offline: "offline"
        case .closed: "closed"
        }
    }
}

extension Timestamp {
    var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
}

/// A small random number generator (SplitMix64). Each signal client has its own.
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64
    package init(seed: UInt64) { state = seed }
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
