/// The client's side of a client connection (`protocol/README.md` §1 to §3): hello, numbering, acknowledgments,
/// requests, pings, reconnecting and resuming.
///
/// A signaling client has no I/O and no clock. Its owner reports events, carries out the returned effects, and calls
/// `handleTimeout` at the time `nextTimeout`. That time may change with every event and timeout.
///
/// ```swift
/// var client = SignalClient(hello: hello, random: SystemRandomNumberGenerator())
/// carryOut(client.handle(.connect, now: now))                              // .open(socket)
/// carryOut(client.handle(.opened(socket), now: now))                       // .send(hello, on: socket)
/// carryOut(client.handle(.received(bytes, on: socket), now: now))          // .connected(welcome, .first)
/// carryOut(client.handle(.request(id, .count), now: now))                  // .send(request, on: socket), later .answered(id, …)
/// ```
///
/// In a cluster, the client may move to another node, and sends the request there that made it move.
///
/// Invariants: each request gets exactly one `answered` or `failed`. Each numbered message of the server is delivered once,
/// in order, unless `restarted` or `ended` reports a possible loss. `Options` limits how many messages are kept.
public struct SignalClient: Sendable {
    /// The progress of connecting.
    ///
    /// Legal transitions: `idle` → `opening`, `ended`; `opening` → `greeting`, `waiting`, `ended`; `greeting` →
    /// `connected`, `waiting`, `ended`; `connected` → `waiting`, `ended`; `waiting` → `opening`, `ended`.
    enum State: Equatable, Sendable {
        case idle
        case opening(Socket, until: Timestamp)
        /// The hello was sent, and the welcome must arrive before `until`.
        case greeting(Socket, until: Timestamp)
        case connected(Socket, since: Timestamp)
        /// Waiting until the next attempt to connect. `isRequested` is true if the server requested this pause.
        case waiting(until: Timestamp, isRequested: Bool)
        case ended(Ending)
    }

    /// The id of this client connection, and the secret for resuming it on a new socket (`protocol/README.md` §3).
    struct Place: Equatable, Sendable {
        var connection: ConnectionID
        var secret: String
    }

    /// How long to wait after close codes 4408 and 4429 if the server does not specify a time.
    static let defaultPause = Duration.seconds(10)
    /// The longest pause before the next attempt that a server can request. The limit is needed because the
    /// application would seem to have stopped during a longer pause, and because a change of the network does not
    /// shorten a requested pause.
    static let longestPause = Duration.seconds(300)
    /// The number of missed pings after which the server drops a socket (`protocol/README.md` §1).
    private static let missedPings = 3
    /// The minimum silence before a ping. A welcome with a shorter time cannot make this client ping more often.
    private static let minSilence = Duration.seconds(1)

    /// The hello to send on each new socket. Its `resume` is set automatically, and so is its `identity` if a welcome
    /// contains a new one. If the token expires, set a new token in this property.
    public var hello: Hello
    /// The most recent welcome, which is kept while reconnecting and after this client has ended; nil before the first
    /// welcome.
    public private(set) var welcome: Welcome?
    let options: Options
    var random: any RandomNumberGenerator & Sendable
    private(set) var state = State.idle
    private(set) var socketCount: UInt64 = 0
    var exchange: Exchange
    /// The connection to resume and the secret for it; nil before the first welcome and while there is no connection
    /// to resume.
    private(set) var place: Place?
    /// The reason why the next welcome will start a new connection; nil if there is none.
    private var restartReason: WireError?
    /// The unnumbered error that was the server's last message. If the server then closes the socket, this is the
    /// reason. It is nil after any other message.
    private var lastError: WireError?
    private var backoff = Backoff()
    var nodes = NodeChoice()
    /// The request for which the client moves to another node; nil if there is none.
    var moving: Moving?
    private var liveness: Liveness?
    private var connectDeadline: Timestamp?
    /// The time at which the server gives up the dropped connection, so that it can no longer be resumed; nil while
    /// connected, and if there is no connection to resume.
    private(set) var placeDeadline: Timestamp?
    /// The delivery of a `leave` that was requested while the connection was down; nil if there is none to deliver.
    var pendingLeave: PendingLeave?

    /// Creates a signaling client that does nothing until ``Event/connect``.
    ///
    /// - Parameters:
    ///   - hello: the hello to send, which identifies the client. The member `resume` is ignored.
    ///   - options: timeouts and limits.
    ///   - random: the random number generator for the jitter of the backoff.
    public init(hello: Hello, options: Options = Options(), random: any RandomNumberGenerator & Sendable) {
        (self.hello, self.options, self.random) = (hello, options, random)
        exchange = Exchange(bounds: options.replay, maxRequests: options.maxRequests)
    }

    // MARK: State

    /// Whether the server has sent its welcome on the current socket.
    public var isConnected: Bool { if case .connected = state { true } else { false } }

    /// The reason why the signaling client ended; nil if it has not.
    public var ending: Ending? { if case .ended(let ending) = state { ending } else { nil } }

    /// The number of requests that have neither been answered nor failed, including requests that are waiting for a connection.
    public var unansweredCount: Int { exchange.unansweredCount + (moving == nil ? 0 : 1) }

    /// When the next attempt to connect begins; nil unless the signaling client is waiting for that time.
    public var nextAttempt: Timestamp? { if case .waiting(let until, _) = state { until } else { nil } }

    var socket: Socket? {
        switch state {
        case .opening(let socket, _), .greeting(let socket, _), .connected(let socket, _): socket
        case .idle, .waiting, .ended: nil
        }
    }

    // MARK: Events

    /// Processes an event.
    ///
    /// - Returns: the effects, in order.
    public mutating func handle(_ event: Event, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        if pendingLeave != nil { return depart(event, now) }
        switch event {
        case .connect: connect(now, &effects)
        case .opened(let opened):
            if case .opening(let socket, let until) = state, socket == opened { greet(on: socket, until, &effects) }
        case .received(let bytes, let socket):
            if socket == self.socket { receive(bytes, on: socket, now, &effects) }
        case .heard(let socket):
            if socket == self.socket { liveness?.heard(now: now) }
        case .closed(let socket, let code):
            if socket == self.socket { socketEnded(code, lastError ?? .closed(by: code), now, &effects) }
        case .request(let id, let message): request(message, as: id, &effects)
        case .networkChanged: networkChanged(now, &effects)
        case .leave: leave(&effects)
        }
        return effects
    }

    // MARK: Time

    /// When to call `handleTimeout`; nil if no timeout is pending. Read it again after each event and timeout.
    public var nextTimeout: Timestamp? {
        var next: Timestamp?
        func consider(_ time: Timestamp?) {
            if let time { next = min(next ?? time, time) }
        }
        switch state {
        case .idle: return nil
        case .ended: return pendingLeave?.nextTimeout
        case .opening(_, let until), .greeting(_, let until), .waiting(let until, _): consider(until)
        case .connected:
            consider(exchange.acknowledgementDeadline)
            consider(liveness?.deadline)
            consider(moving?.due)
        }
        consider(connectDeadline)
        consider(placeDeadline)
        return next
    }

    /// Does everything that is due by now. A call before `nextTimeout` is harmless.
    ///
    /// - Returns: the effects, in order.
    public mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        if pendingLeave != nil { return depart(nil, now) }
        if let deadline = connectDeadline, deadline <= now {
            if let socket { effects.append(.close(socket, .normal)) }
            end(.abnormal, lastError ?? .connectFailed, &effects)
            return effects
        }
        if let deadline = placeDeadline, deadline <= now { expire(&effects) }
        switch state {
        case .opening(let socket, let until), .greeting(let socket, let until):
            if until <= now { abandon(socket, lastError ?? .connectFailed, now, &effects) }
        case .waiting(let until, _): if until <= now { open(now, &effects) }
        case .connected(let socket, _):
            sendMoved(now, &effects)
            keepAlive(socket, now, &effects)
        case .idle, .ended: break
        }
        return effects
    }

    private mutating func keepAlive(_ socket: Socket, _ now: Timestamp, _ effects: inout [Effect]) {
        if let deadline = exchange.acknowledgementDeadline, deadline <= now { acknowledge(on: socket, &effects) }
        switch liveness?.check(now: now) {
        case .ping: send(.ping, on: socket, &effects)
        case .dead: abandon(socket, .silentServer, now, &effects)
        case nil: break
        }
    }

    // MARK: Connecting

    private mutating func connect(_ now: Timestamp, _ effects: inout [Effect]) {
        guard state == .idle else { return }
        connectDeadline = options.connectTimeout.map { now + $0 }
        open(now, &effects)
    }

    mutating func open(_ now: Timestamp, _ effects: inout [Effect]) {
        socketCount += 1
        let socket = Socket(number: socketCount, node: nodes.next(now: now))
        let until = now + options.welcomeTimeout
        state = .opening(socket, until: min(until, nodes.deadline ?? until))
        lastError = nil
        effects.append(.open(socket))
    }

    private mutating func greet(on socket: Socket, _ until: Timestamp, _ effects: inout [Effect]) {
        state = .greeting(socket, until: until)
        var hello = hello
        // The hello's member `received` also acknowledges messages, so no separate acknowledgment is necessary.
        hello.resume = place.map { Hello.Resume(secret: $0.secret, received: exchange.acknowledge()) }
        send(.hello(hello), on: socket, &effects)
    }

    private mutating func welcomed(
        _ welcome: Welcome, on socket: Socket, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        let fits = welcome.resumed ? welcome.connection == place?.connection : welcome.received == 0
        guard fits else { return startOver(socket, now, &effects) }
        if place != nil, !welcome.resumed { forgetPlace(because: lastError ?? .connectionRestarted, &effects) }
        guard let missing = exchange.replay(after: welcome.received) else { return startOver(socket, now, &effects) }
        self.welcome = welcome
        if let identity = welcome.identity, hello.token == nil { hello.identity = identity }
        place = Place(connection: welcome.connection, secret: welcome.resume.secret)
        state = .connected(socket, since: now)
        nodes.welcomed(by: welcome.at)
        moving?.due = now
        liveness = Liveness(now: now, silence: Self.silence(welcome))
        (lastError, connectDeadline, placeDeadline) = (nil, nil, nil)
        for bytes in missing { effects.append(.send(bytes, on: socket)) }
        let start = welcome.resumed ? Start.resumed : restartReason.map { .restarted(because: $0) } ?? .first
        restartReason = nil
        effects.append(.connected(welcome, start))
    }

    private static func silence(_ welcome: Welcome) -> Duration { max(welcome.ping, minSilence) }

    private mutating func networkChanged(_ now: Timestamp, _ effects: inout [Effect]) {
        switch state {
        case .waiting(_, isRequested: false):
            nodes.hurry()
            open(now, &effects)
        case .connected(let socket, _): if liveness?.ping(now: now) == true { send(.ping, on: socket, &effects) }
        case .idle, .opening, .greeting, .waiting, .ended: break
        }
    }

    // MARK: Sending

    func send(_ message: ClientMessage, ack: UInt64? = nil, on socket: Socket, _ effects: inout [Effect]) {
        effects.append(.send(Envelope(ack: ack, message: message).encode(), on: socket))
    }

    private mutating func acknowledge(on socket: Socket, _ effects: inout [Effect]) {
        send(.ack, ack: exchange.acknowledge(), on: socket, &effects)
    }

    mutating func request(_ message: ClientMessage, as id: RequestID, _ effects: inout [Effect]) {
        switch state {
        case .idle: return effects.append(.failed(id, .notConnected))
        case .ended(let ending): return effects.append(.failed(id, ending.error ?? .left))
        case .opening, .greeting, .connected, .waiting: break
        }
        do throws(WireError) {
            let limits = welcome?.limits ?? Welcome.Bounds()
            let bytes = try exchange.send(message, as: id, limits: limits, isConnected: isConnected)
            if case .connected(let socket, _) = state { effects.append(.send(bytes, on: socket)) }
        } catch {
            effects.append(.failed(id, error))
        }
    }

    // MARK: Receiving

    private mutating func receive(
        _ bytes: [UInt8], on socket: Socket, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        liveness?.heard(now: now)
        var mustAcknowledge = false
        do throws(UnreadableMessage) {
            let envelope = try Envelope<ServerMessage>.decode(bytes)
            if isConnected, let ack = envelope.ack { exchange.acknowledged(upTo: ack) }
            guard let seq = envelope.seq else {
                return receiveUnnumbered(envelope.message, on: socket, now, &effects)
            }
            lastError = nil
            guard count(seq, on: socket, now, &effects) else { return }
            if case .session(let notice) = envelope.message { mustAcknowledge = notice.awaitsAcknowledgement }
            if case .error(let failure) = envelope.message, move(because: failure, from: socket, now, &effects) {
                return
            }
            deliver(envelope.message, &effects)
        } catch {
            if isConnected, let ack = error.ack { exchange.acknowledged(upTo: ack) }
            if let seq = error.seq, !count(seq, on: socket, now, &effects) { return }
            effects.append(.unreadable(error))
            // An unreadable message from a newer server may be the answer to a request. Let that request fail. Only
            // numbered messages are answers.
            if error.seq != nil, let re = Exchange.answered(byUnreadable: bytes), let id = exchange.takeRequest(re) {
                effects.append(.failed(id, error.error))
            }
        }
        if mustAcknowledge || exchange.mustAcknowledge { acknowledge(on: socket, &effects) }
    }

    /// Counts a received numbered message.
    ///
    /// - Returns: false if it must not be delivered.
    private mutating func count(
        _ seq: UInt64, on socket: Socket, _ now: Timestamp, _ effects: inout [Effect]
    ) -> Bool {
        // Abandon the socket: before a welcome, it is unknown which connection the number belongs to.
        guard isConnected else {
            abandon(socket, .skippedMessage, now, &effects)
            return false
        }
        switch exchange.receive(seq: seq, now: now) {
        case .deliver: return true
        case .duplicate: return false
        case .gap:
            abandon(socket, .skippedMessage, now, &effects)
            return false
        }
    }

    private mutating func deliver(_ message: ServerMessage, _ effects: inout [Effect]) {
        if let re = message.re, let id = exchange.takeRequest(re) {
            effects.append(.answered(id, message))
        } else {
            effects.append(.event(message))
        }
    }

    private mutating func receiveUnnumbered(
        _ message: ServerMessage, on socket: Socket, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        switch message {
        case .welcome(let welcome):
            // Ignore a second welcome on the same socket.
            if case .greeting = state { welcomed(welcome, on: socket, now, &effects) }
        case .error(let error):
            if move(because: error, from: socket, now, &effects) { return }
            // Remember the error: it is the reason for what follows, a close or a welcome that does not resume the
            // connection.
            lastError = error.error
            if isConnected, let re = error.re, let id = exchange.takeRequest(re) {
                effects.append(.answered(id, message))
            }
        case .ack, .pong: lastError = nil
        default:
            lastError = nil
            let error = WireError(.malformed, "The server sent \"\(message.type)\" without a \"seq\". Connect again.")
            effects.append(.unreadable(UnreadableMessage(error: error)))
        }
    }

    // MARK: Dropping and ending

    /// Closes a broken socket with a code for which the server keeps the connection, so that it can be resumed.
    private mutating func abandon(
        _ socket: Socket, _ error: WireError, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        effects.append(.close(socket, .dropped))
        socketEnded(.abnormal, error, now, &effects)
    }

    private mutating func socketEnded(
        _ code: CloseCode, _ error: WireError, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        liveness = nil
        // The server found a gap in this client's numbers. Do not resume, because the server would find the same gap
        // again.
        let isMiscounted = code == .malformed && lastError?.code == .outOfOrder && place != nil
        // The node is about to stop, or has lost what this client used. It would send this client away again.
        let isSentAway = code == .serviceRestart && lastError?.code == .elsewhere && lastError?.at == nil
        guard options.reconnects, isMiscounted || code.isRetried else { return end(code, error, &effects) }
        if case .connected(_, let since) = state {
            if now - since >= Backoff.longest { backoff.reset() }
            if let welcome { placeDeadline = now + welcome.resume.grace + Self.silence(welcome) * Self.missedPings }
            effects.append(.reconnecting)
        }
        if isSentAway { nodes.forget() }
        let asked = lastError?.retryAfter ?? (code.requestsPause ? Self.defaultPause : .zero)
        let until = now + max(min(asked, Self.longestPause), backoff.next(using: &random))
        // Try another node as soon as the time of this one is over.
        let limit = asked > .zero ? until : max(now, nodes.deadline ?? until)
        state = .waiting(until: min(until, limit), isRequested: asked > .zero)
        if isMiscounted || isSentAway { expire(&effects) }
    }

    /// Handles a welcome that does not match this client's state. Sends `bye`, so that the server discards the
    /// connection, and starts a new one after the backoff. Without `Options.reconnects`, the signaling client ends.
    private mutating func startOver(_ socket: Socket, _ now: Timestamp, _ effects: inout [Effect]) {
        send(.bye, on: socket, &effects)
        effects.append(.close(socket, .normal))
        expire(&effects)
        socketEnded(.abnormal, .wrongWelcome, now, &effects)
    }

    mutating func expire(_ effects: inout [Effect]) {
        guard place != nil else { return }
        forgetPlace(because: .connectionRestarted, &effects)
        effects.append(.expired)
    }

    /// Discards the state for resuming, because the server no longer has the connection. Fails all unanswered
    /// requests, because their answers will never arrive.
    private mutating func forgetPlace(because reason: WireError, _ effects: inout [Effect]) {
        (place, placeDeadline, restartReason) = (nil, nil, reason)
        failAll(.connectionRestarted, &effects)
    }

    private mutating func failAll(_ error: WireError, _ effects: inout [Effect]) {
        if let moving { effects.append(.failed(moving.request.id, error)) }
        moving = nil
        for id in exchange.unanswered { effects.append(.failed(id, error)) }
        exchange = Exchange(bounds: options.replay, maxRequests: options.maxRequests)
    }

    mutating func end(_ code: CloseCode, _ error: WireError?, _ effects: inout [Effect]) {
        let ending = Ending(code: code, error: error)
        state = .ended(ending)
        (place, liveness, connectDeadline, placeDeadline) = (nil, nil, nil, nil)
        failAll(error ?? .left, &effects)
        effects.append(.ended(ending))
    }
}
